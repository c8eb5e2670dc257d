//! Rust source as a list of tokens: words, `::` and single characters, without comments, strings and test modules.

/// Returns the tokens of `text`, each with its line, counted from 1.
pub(super) fn tokens(text: &str) -> Vec<(&str, usize)> {
    without_tests(&lex(text))
}

fn lex(text: &str) -> Vec<(&str, usize)> {
    let mut tokens = Vec::new();
    let mut rest = text;
    let mut line = 1;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => block_comment(rest),
            '"' => string(rest),
            '\'' => character(rest),
            'r' | 'b' | 'c' if prefixed_string(rest) > 0 => prefixed_string(rest),
            _ if is_word(first) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            ':' if rest.starts_with("::") => 2,
            _ => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        let is_text = token.starts_with("//") || token.starts_with("/*") || token.contains('"');
        if !is_text && !first.is_whitespace() {
            tokens.push((token, line));
        }
        line += token.matches('\n').count();
        rest = after;
    }
    tokens
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Rust's block comments nest.
fn block_comment(text: &str) -> usize {
    let mut depth = 0;
    let mut rest = text.as_bytes();
    loop {
        rest = match rest {
            [b'/', b'*', rest @ ..] => {
                depth += 1;
                rest
            }
            [b'*', b'/', rest @ ..] if depth == 1 => return text.len() - rest.len(),
            [b'*', b'/', rest @ ..] => {
                depth -= 1;
                rest
            }
            [_, rest @ ..] => rest,
            [] => return text.len(),
        };
    }
}

fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of `r"…"`, `r#"…"#`, `b"…"` and the like; 0 for a plain word.
fn prefixed_string(text: &str) -> usize {
    let letters = text.find(|c| !matches!(c, 'r' | 'b' | 'c')).unwrap_or(0);
    let (prefix, after) = text.split_at(letters);
    if letters > 2 {
        return 0;
    }
    if !prefix.contains('r') {
        let quoted = after.starts_with('"');
        return if quoted { letters + string(after) } else { 0 };
    }
    let hashes = after.len() - after.trim_start_matches('#').len();
    if !after[hashes..].starts_with('"') {
        return 0;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let start = letters + hashes + 1;
    text[start..]
        .find(&end)
        .map_or(text.len(), |at| start + at + end.len())
}

/// A character literal, or the quote alone of a lifetime.
fn character(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some(_)) => text[3..].find('\'').map_or(1, |at| at + 4),
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

/// Drops each item behind `#[cfg(test)]`.
fn without_tests<'a>(mut tokens: &[(&'a str, usize)]) -> Vec<(&'a str, usize)> {
    const TEST: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::with_capacity(tokens.len());
    while let [first, rest @ ..] = tokens {
        let is_test = rest.len() > TEST.len() && tokens.iter().zip(TEST).all(|(a, b)| a.0 == b);
        if is_test {
            tokens = tokens.get(item(tokens)..).unwrap_or_default();
        } else {
            kept.push(*first);
            tokens = rest;
        }
    }
    kept
}

/// The number of tokens up to the item's `;` or its closing brace.
fn item(tokens: &[(&str, usize)]) -> usize {
    let mut depth = 0;
    for (at, (token, _)) in tokens.iter().enumerate() {
        match *token {
            "{" => depth += 1,
            "}" if depth <= 1 => return at + 1,
            "}" => depth -= 1,
            ";" if depth == 0 => return at + 1,
            _ => {}
        }
    }
    tokens.len()
}
