//! The variables in braces that a scenario may use.

use std::collections::BTreeMap;
use std::fmt::Display;

/// What each name stands for. Everything else in braces is left alone: bodies are often JSON.
#[derive(Clone, Debug, Default)]
pub(crate) struct Variables(BTreeMap<String, String>);

// === impl Variables ===

impl Variables {
    /// The same variables, and one more.
    pub(crate) fn with(mut self, name: impl Into<String>, value: impl Display) -> Self {
        self.0.insert(name.into(), format!("{value}"));
        self
    }

    /// The text with every known name replaced, in one pass: what a name stands for is not looked at again.
    pub(crate) fn expand(&self, text: &str) -> String {
        let mut expanded = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            expanded.push_str(before);
            rest = match self.value(after) {
                Some((value, rest_after)) => {
                    expanded.push_str(value);
                    rest_after
                }
                None => {
                    expanded.push('{');
                    after
                }
            };
        }
        expanded.push_str(rest);
        expanded
    }

    /// The words of a command line as a shell splits it, each expanded.
    pub(crate) fn expand_command(&self, line: &str) -> Result<Vec<String>, String> {
        let words = shlex::split(line).ok_or_else(|| format!("`{line}` is not a command"))?;
        Ok(words.iter().map(|word| self.expand(word)).collect())
    }

    fn value<'a, 't>(&'a self, after: &'t str) -> Option<(&'a str, &'t str)> {
        let (name, rest_after) = after.split_once('}')?;
        Some((self.0.get(name)?, rest_after))
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
        let variables = Variables::default().with("id", "a7").with("n", 3);
        assert_eq!(
            variables.expand(r#"{"order": "{id}", "n": {n}, "x": {"y": {}}}"#),
            r#"{"order": "a7", "n": 3, "x": {"y": {}}}"#
        );
    }

    #[test]
    fn meaning_is_not_read_again() {
        let variables = Variables::default().with("body", "{id}").with("id", "a7");
        assert_eq!(variables.expand("{body} {id}"), "{id} a7");
    }

    #[test]
    fn named_ports_are_found() {
        assert_eq!(ports_named("http://h:{port.gate}/{port.b}"), ["gate", "b"]);
    }
}
