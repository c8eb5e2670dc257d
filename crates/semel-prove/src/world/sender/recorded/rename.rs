//! Another identity for a recorded request. Only what is the identity as a whole is replaced: an order called `1` does
//! not change a price of 1100.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// From one identity to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rename<'a> {
    pub(super) from: &'a str,
    pub(super) to: &'a str,
}

// === impl Rename ===

impl Rename<'_> {
    /// A header's value, or one segment of it, quoted or not.
    pub(super) fn header(self, value: &str) -> String {
        if value == self.from {
            return self.to.to_owned();
        }
        self.parts(value, |c| matches!(c, '/' | '"'))
    }

    /// A segment of a path, or a value of its query.
    pub(super) fn path(self, path: &str) -> String {
        self.parts(path, |c| matches!(c, '/' | '?' | '&' | '='))
    }

    /// Values of JSON; words of anything else.
    pub(super) fn body(self, body: &str) -> String {
        match serde_json::from_str::<Value>(body) {
            Ok(json) => self.json(body, &json),
            Err(_) => self.parts(body, |c| !c.is_alphanumeric() && !matches!(c, '-' | '_')),
        }
    }

    /// The text stays as it was written but for the values that are replaced. A push carries its data in base64: it is
    /// read in there, too.
    fn json(self, text: &str, json: &Value) -> String {
        let data = json.pointer("/message/data").and_then(Value::as_str);
        let plain = data.and_then(|data| String::from_utf8(STANDARD.decode(data).ok()?).ok());
        let inside = plain.map(|plain| STANDARD.encode(self.body(&plain)));
        let mut renamed = String::with_capacity(text.len());
        for (token, is_value) in tokens(text) {
            let meant = match serde_json::from_str(token) {
                Ok(Value::String(text)) if is_value => Some(text),
                Ok(Value::Number(_)) => Some(token.to_owned()),
                Ok(_) | Err(_) => None,
            };
            match (meant, &inside) {
                (Some(meant), _) if meant == self.from => {
                    renamed.push_str(&Value::from(self.to).to_string());
                }
                (Some(meant), Some(inside)) if Some(meant.as_str()) == data => {
                    renamed.push_str(&Value::from(inside.as_str()).to_string());
                }
                (Some(_) | None, _) => renamed.push_str(token),
            }
        }
        renamed
    }

    /// Whole parts between separators, which stay.
    fn parts(self, text: &str, separates: impl Fn(char) -> bool) -> String {
        let mut renamed = String::with_capacity(text.len());
        let mut rest = text;
        loop {
            let end = rest.find(&separates).unwrap_or(rest.len());
            let (part, behind) = rest.split_at(end);
            renamed.push_str(if part == self.from { self.to } else { part });
            let Some(separator) = behind.chars().next() else {
                return renamed;
            };
            renamed.push(separator);
            rest = behind.split_at(separator.len_utf8()).1;
        }
    }
}

/// The pieces of valid JSON: strings, numbers and words, and what stands between. With each string comes whether it is a
/// value: the name of a member is not.
fn tokens(text: &str) -> Vec<(&str, bool)> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let between = |c: char| matches!(c, ',' | ':' | '[' | ']' | '{' | '}') || c.is_whitespace();
        let end = if first == '"' {
            string_end(rest)
        } else if between(first) {
            first.len_utf8()
        } else {
            rest.find(|c| between(c) || c == '"').unwrap_or(rest.len())
        };
        let (token, behind) = rest.split_at(end);
        tokens.push((token, !behind.trim_start().starts_with(':')));
        rest = behind;
    }
    tokens
}

/// Where a string that begins here ends.
fn string_end(text: &str) -> usize {
    let mut escaped = true;
    for (at, character) in text.char_indices() {
        match character {
            '"' if !escaped => return at + 1,
            '\\' if !escaped => escaped = true,
            _ => escaped = false,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Rename<'_> = Rename {
        from: "1",
        to: "a7",
    };

    #[test]
    fn only_whole_values_of_json_are_renamed_and_the_rest_is_as_it_was() {
        let body = r#"{ "id": "1", "n":1, "cents": 1100, "x": [1.0, "1", "21", "\"1\""], "1": {"b":1e1, "a":null} }"#;
        assert_eq!(
            ONE.body(body),
            r#"{ "id": "a7", "n":"a7", "cents": 1100, "x": [1.0, "a7", "21", "\"1\""], "1": {"b":1e1, "a":null} }"#
        );
    }

    #[test]
    fn only_whole_segments_are_renamed() {
        assert_eq!(
            ONE.path("/v1/orders/1?id=1&page=10"),
            "/v1/orders/a7?id=a7&page=10"
        );
        assert_eq!(ONE.header("\"1\""), "\"a7\"");
        assert_eq!(ONE.header("queues/1/tasks/11"), "queues/a7/tasks/11");
        assert_eq!(ONE.header("text/html; q=0.1"), "text/html; q=0.1");
        assert_eq!(ONE.body("id=1&cents=1100"), "id=a7&cents=1100");
        let whole = Rename {
            from: "a/b 1",
            to: "a7",
        };
        assert_eq!(whole.header("a/b 1"), "a7");
    }

    #[test]
    fn push_is_renamed_inside_its_data() {
        let data = STANDARD.encode(r#"{"id":"77","cents":7700}"#);
        let body = format!(r#"{{"message": {{"messageId": "77", "data": "{data}"}}}}"#);
        let rename = Rename {
            from: "77",
            to: "a7",
        };
        let renamed: Value = serde_json::from_str(&rename.body(&body)).unwrap();
        assert_eq!(renamed["message"]["messageId"], "a7");
        let data = STANDARD
            .decode(renamed["message"]["data"].as_str().unwrap())
            .unwrap();
        assert_eq!(data, br#"{"id":"a7","cents":7700}"#);
    }
}
