//! Texts of others, made safe to show: a terminal obeys control characters, and XML may not hold some.

/// Every control character but the line break, and the two that are not characters at all, become spaces.
pub(crate) fn plain(text: &str) -> String {
    let shown = |character: char| match character {
        '\n' => '\n',
        '\u{fffe}' | '\u{ffff}' => ' ',
        other if other.is_control() => ' ',
        other => other,
    };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_gone() {
        assert_eq!(plain("a\x1b[31mb\r\u{9b}c\nd\u{ffff}"), "a [31mb  c\nd ");
    }
}
