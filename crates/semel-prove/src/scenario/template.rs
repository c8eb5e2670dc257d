//! The words in braces that a scenario may use.

use std::collections::BTreeMap;
use std::fmt::Display;

/// What each word stands for. Everything else in braces is left alone: bodies are often JSON.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words(BTreeMap<String, String>);

// === impl Words ===

impl Words {
    /// The same words, and one more.
    pub(crate) fn with(mut self, word: impl Into<String>, meaning: impl Display) -> Self {
        self.0.insert(word.into(), format!("{meaning}"));
        self
    }

    /// The text with every known word replaced, in one pass: what a word stands for is not looked at again.
    pub(crate) fn fill(&self, text: &str) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            filled.push_str(before);
            rest = match self.meaning(after) {
                Some((meaning, behind)) => {
                    filled.push_str(meaning);
                    behind
                }
                None => {
                    filled.push('{');
                    after
                }
            };
        }
        filled.push_str(rest);
        filled
    }

    fn meaning<'a, 't>(&'a self, after: &'t str) -> Option<(&'a str, &'t str)> {
        let (word, behind) = after.split_once('}')?;
        Some((self.0.get(word)?, behind))
    }
}

/// The names in `{port.NAME}`.
pub(crate) fn ports_named(text: &str) -> Vec<&str> {
    text.split("{port.")
        .skip(1)
        .filter_map(|after| after.split_once('}'))
        .map(|(name, _)| name)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_words_are_replaced_and_json_is_left_alone() {
        let words = Words::default().with("id", "a7").with("n", 3);
        assert_eq!(
            words.fill(r#"{"order": "{id}", "n": {n}, "x": {"y": {}}}"#),
            r#"{"order": "a7", "n": 3, "x": {"y": {}}}"#
        );
    }

    #[test]
    fn meaning_is_not_read_again() {
        let words = Words::default().with("body", "{id}").with("id", "a7");
        assert_eq!(words.fill("{body} {id}"), "{id} a7");
    }

    #[test]
    fn named_ports_are_found() {
        assert_eq!(ports_named("http://h:{port.gate}/{port.b}"), ["gate", "b"]);
    }
}
