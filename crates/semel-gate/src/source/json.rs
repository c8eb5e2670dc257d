//! One JSON object, member by member, each as it stands in the text. Nothing here recurses, so no
//! depth of nesting costs stack; nothing is unescaped before somebody asks for it.

use super::refuse;
use crate::delivery::Invalid;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// The most members that are kept of one object. Pub/Sub allows 100 attributes.
const MEMBERS_MAX: usize = 256;

/// The wanted members of an object.
#[derive(Debug)]
pub(crate) struct Members<'a>(BTreeMap<String, &'a RawValue>);

/// Why there are none.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum JsonError {
    /// It begins as something else than an object.
    NotAnObject,
    /// It begins as an object, and then is not JSON.
    Broken { line: usize, column: usize },
    /// A wanted member is there twice: two readers could see two values.
    Repeated,
    /// There are more than [`MEMBERS_MAX`].
    TooMany,
}

/// Reads an object and keeps the members whose names are wanted.
pub(crate) fn members(
    text: &[u8],
    wanted: impl Fn(&str) -> bool,
) -> Result<Members<'_>, JsonError> {
    if text.trim_ascii_start().first() != Some(&b'{') {
        return Err(JsonError::NotAnObject);
    }
    let mut json = serde_json::Deserializer::from_slice(text);
    let listed = Collect(wanted).deserialize(&mut json)?;
    json.end()?;
    if listed.len() > MEMBERS_MAX {
        return Err(JsonError::TooMany);
    }
    let mut members = BTreeMap::new();
    for (name, value) in listed {
        if members.insert(name, value).is_some() {
            return Err(JsonError::Repeated);
        }
    }
    Ok(Members(members))
}

/// The text of a JSON string; `None` for every other value and for lone surrogates.
pub(crate) fn text(value: &RawValue) -> Option<Cow<'_, str>> {
    let quoted = value.get();
    let inside = quoted.strip_prefix('"')?.strip_suffix('"')?;
    if inside.contains('\\') {
        serde_json::from_str(quoted).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inside))
    }
}

struct Collect<F>(F);

// === impl Members ===

impl<'a> Members<'a> {
    /// A member; `null` is the same as none.
    pub(crate) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.get_even_null(name)
            .filter(|value| value.get() != "null")
    }

    /// A member, `null` or not.
    pub(crate) fn get_even_null(&self, name: &str) -> Option<&'a RawValue> {
        self.0.get(name).copied()
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }
}

// === impl JsonError ===

impl JsonError {
    /// The refusal, where `what` names the object and `fix` says what to do.
    pub(crate) fn refuse(&self, what: &str, fix: &str) -> Invalid {
        match self {
            Self::NotAnObject => refuse(
                "json-not-object",
                format!("{what} is not a JSON object: {fix}"),
            ),
            // Only the place is told: the parser's own words would quote the text.
            Self::Broken { line, column } => refuse(
                "json-broken",
                format!("{what} is not JSON from line {line}, column {column} on: {fix}"),
            ),
            Self::Repeated => refuse(
                "json-repeated-member",
                format!(
                    "{what} has two members of one name, so two readers could see two values: send each once"
                ),
            ),
            Self::TooMany => refuse(
                "json-too-many-members",
                format!("{what} has more than {MEMBERS_MAX} members: send fewer"),
            ),
        }
    }
}

impl From<serde_json::Error> for JsonError {
    fn from(error: serde_json::Error) -> Self {
        Self::Broken {
            line: error.line(),
            column: error.column(),
        }
    }
}

// === impl Collect ===

impl<'de, F: Fn(&str) -> bool> DeserializeSeed<'de> for Collect<F> {
    type Value = Vec<(String, &'de RawValue)>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de, F: Fn(&str) -> bool> Visitor<'de> for Collect<F> {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        let mut listed = Vec::new();
        while let Some(name) = object.next_key::<String>()? {
            // One more than allowed is kept, to be counted.
            if listed.len() <= MEMBERS_MAX && (self.0)(&name) {
                listed.push((name, object.next_value()?));
            } else {
                object.next_value::<IgnoredAny>()?;
            }
        }
        Ok(listed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Result<Members<'_>, JsonError> {
        members(text.as_bytes(), |_| true)
    }

    #[test]
    fn members_stand_as_they_were_written() {
        let found = all(r#" {"a": { "b" : 1.0 }, "n": null, "s": "x\u0079"} "#).unwrap();
        assert_eq!(found.get("a").unwrap().get(), r#"{ "b" : 1.0 }"#);
        assert!(found.get("n").is_none() && found.get_even_null("n").is_some());
        assert_eq!(text(found.get("s").unwrap()).unwrap(), "xy");
        assert_eq!(text(found.get("a").unwrap()), None);
    }

    #[test]
    fn what_is_no_object_is_told_apart_from_what_is_broken() {
        for other in ["", "  ", "[]", "1", "null", "hello", "\"{}\""] {
            assert_eq!(all(other).unwrap_err(), JsonError::NotAnObject, "{other}");
        }
        for broken in ["{", "{\"a\"}", "{} x", "{\"a\":01}", "{\"a\":\"\n\"}"] {
            let trouble = all(broken).unwrap_err();
            assert!(matches!(trouble, JsonError::Broken { .. }), "{broken}");
        }
        let not_utf8 = members(b"{\"a\":\"\xff\"}", |_| true).unwrap_err();
        assert!(matches!(not_utf8, JsonError::Broken { .. }));
    }

    #[test]
    fn a_repeated_member_is_refused_only_when_it_is_wanted() {
        let twice = br#"{"a":1,"b":1,"\u0061":2}"#;
        assert_eq!(
            members(twice, |name| name == "a").unwrap_err(),
            JsonError::Repeated
        );
        assert!(members(twice, |name| name == "b").is_ok());
    }

    #[test]
    fn only_so_many_members_are_kept() {
        let object = |count: usize| {
            let listed: Vec<String> = (0..count).map(|n| format!("\"m{n}\":{n}")).collect();
            format!("{{{}}}", listed.join(","))
        };
        assert!(all(&object(MEMBERS_MAX)).is_ok());
        assert_eq!(
            all(&object(MEMBERS_MAX + 1)).unwrap_err(),
            JsonError::TooMany
        );
        assert!(members(object(9999).as_bytes(), |name| name == "m9").is_ok());
    }

    #[test]
    fn deep_nesting_costs_no_stack() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(1 << 20), "]".repeat(1 << 20));
        assert!(all(&deep).is_ok());
        assert!(members(deep.as_bytes(), |_| false).is_ok());
    }

    #[test]
    fn a_lone_surrogate_is_no_text() {
        let found = all(r#"{"a":"\ud800"}"#).unwrap();
        assert_eq!(text(found.get("a").unwrap()), None);
    }
}
