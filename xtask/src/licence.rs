//! Licence expressions: `(MIT OR Apache-2.0) AND Unicode-3.0`, and the older `MIT/Apache-2.0`.

/// Whether the licences in `allowed` are enough to use something under `expression`.
pub(crate) fn permits(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let mut words: Vec<&str> = spaced.split_whitespace().rev().collect();
    any(&mut words, allowed) && words.is_empty()
}

/// Alternatives; `words` is reversed, so that the next word is the last.
fn any(words: &mut Vec<&str>, allowed: &[String]) -> bool {
    let mut permitted = all(words, allowed);
    while words.pop_if(|word| *word == "OR").is_some() {
        permitted |= all(words, allowed);
    }
    permitted
}

fn all(words: &mut Vec<&str>, allowed: &[String]) -> bool {
    let mut permitted = one(words, allowed);
    while words.pop_if(|word| *word == "AND").is_some() {
        permitted &= one(words, allowed);
    }
    permitted
}

fn one(words: &mut Vec<&str>, allowed: &[String]) -> bool {
    if words.pop_if(|word| *word == "(").is_some() {
        return any(words, allowed) && words.pop_if(|word| *word == ")").is_some();
    }
    let Some(licence) = words.pop() else {
        return false;
    };
    let exception = words
        .pop_if(|word| *word == "WITH")
        .and_then(|_| words.pop());
    let name = match exception {
        Some(exception) => format!("{licence} WITH {exception}"),
        None => licence.to_owned(),
    };
    allowed.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::permits;

    #[test]
    fn expressions_are_read_as_spdx_says() {
        let allowed = ["MIT", "Unicode-3.0"].map(str::to_owned);
        for (expression, expected) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("GPL-3.0 OR MIT", true),
            ("MIT/Apache-2.0", true),
            ("MIT AND GPL-3.0", false),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
            ("MIT OR Apache-2.0 AND GPL-3.0", true),
            ("(MIT OR Apache-2.0) AND GPL-3.0", false),
            ("MIT WITH LLVM-exception", false),
            ("Apache-2.0 WITH LLVM-exception OR MIT", true),
            ("MIT Unicode-3.0", false),
            ("(MIT", false),
            ("", false),
        ] {
            assert_eq!(permits(expression, &allowed), expected, "{expression}");
        }
    }
}
