//! Which messages a subscription wants: Google's filter language, over attributes.
//!
//! A filter is comparisons joined by `AND` or by `OR`; the two are mixed only with parentheses, as in production.

use crate::filter::{self, Dialect, Filter, FilterError, Syntax, Token, Tokens, unexpected};
use std::collections::HashMap;

/// A longer filter is refused.
const FILTER_BYTES_MAX: usize = 256;

/// What a subscription wants.
pub(super) type MessageFilter = Filter<AttributeTest>;

/// What is said of one attribute.
#[derive(Debug)]
pub(super) enum AttributeTest {
    /// `attributes:key`
    Has(String),
    /// `attributes.key = "value"`
    Is(String, String),
    /// `attributes.key != "value"`; true of a message without the key.
    IsNot(String, String),
    /// `hasPrefix(attributes.key, "prefix")`
    HasPrefix(String, String),
}

/// Parses a filter; an empty one wants everything.
pub(super) fn read(text: &str) -> Result<Option<MessageFilter>, String> {
    if text.len() > FILTER_BYTES_MAX {
        return Err(format!("it is longer than {FILTER_BYTES_MAX} bytes"));
    }
    filter::parse::<AttributeTest>(text).map_err(|error| error.to_string())
}

/// Whether a message with these attributes is wanted.
pub(super) fn wants(filter: &MessageFilter, attributes: &HashMap<String, String>) -> bool {
    let value = |key: &String| attributes.get(key);
    filter.matches(&|test| match test {
        AttributeTest::Has(key) => attributes.contains_key(key),
        AttributeTest::Is(key, wanted) => value(key) == Some(wanted),
        AttributeTest::IsNot(key, unwanted) => value(key) != Some(unwanted),
        AttributeTest::HasPrefix(key, prefix) => {
            value(key).is_some_and(|it| it.starts_with(prefix))
        }
    })
}

// === impl AttributeTest ===

impl Dialect for AttributeTest {
    const SYNTAX: Syntax = Syntax {
        symbols: &["!=", "=", "(", ")", ",", ".", ":", "-"],
        quotes: &['"'],
        escapes: true,
        reserved: false,
        loose: false,
        begins_word: |it| it.is_ascii_alphanumeric() || it == '_',
        in_word: |it| it.is_ascii_alphanumeric() || it == '_' || it == '-',
    };

    fn term(tokens: &mut Tokens) -> Result<Self, FilterError> {
        if tokens.takes("hasPrefix") {
            tokens.expect("(")?;
            tokens.expect("attributes")?;
            tokens.expect(".")?;
            let key = key(tokens)?;
            tokens.expect(",")?;
            let prefix = text(tokens)?;
            tokens.expect(")")?;
            return Ok(Self::HasPrefix(key, prefix));
        }
        tokens.expect("attributes")?;
        if tokens.takes(":") {
            return Ok(Self::Has(key(tokens)?));
        }
        tokens.expect(".")?;
        let key = key(tokens)?;
        if tokens.takes("!=") {
            return Ok(Self::IsNot(key, text(tokens)?));
        }
        tokens.expect("=")?;
        Ok(Self::Is(key, text(tokens)?))
    }
}

fn key(tokens: &mut Tokens) -> Result<String, FilterError> {
    match tokens.next() {
        Some(Token::Word(key) | Token::Quoted(key)) => Ok(key),
        other => Err(unexpected(other, "an attribute's key")),
    }
}

fn text(tokens: &mut Tokens) -> Result<String, FilterError> {
    match tokens.next() {
        Some(Token::Quoted(text)) => Ok(text),
        other => Err(unexpected(other, "a text in double quotes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_wanted(filter: &str, attributes: &[(&str, &str)]) -> bool {
        let attributes = attributes.iter();
        let attributes = attributes.map(|(key, value)| ((*key).into(), (*value).into()));
        let filter = read(filter).unwrap().unwrap();
        wants(&filter, &attributes.collect())
    }

    #[test]
    fn filters_choose_by_attributes() {
        let eu = [("region", "eu-west"), ("iana.org/kind", "a\"b")];
        for (filter, wanted) in [
            ("attributes:region", true),
            ("attributes:zone", false),
            ("attributes.region = \"eu-west\"", true),
            ("attributes.region=\"eu\"", false),
            ("attributes.region != \"us\"", true),
            ("attributes.region != \"eu-west\"", false),
            ("attributes.zone != \"us\"", true),
            ("attributes:zone AND attributes.zone != \"us\"", false),
            ("NOT attributes.zone = \"us\"", true),
            ("hasPrefix(attributes.region, \"eu\")", true),
            ("hasPrefix(attributes.region,\"us\")", false),
            ("NOT attributes:zone", true),
            ("-attributes:region", false),
            ("NOT hasPrefix(attributes.region, \"eu\")", false),
            ("attributes:region AND attributes:zone", false),
            ("attributes:region OR attributes:zone", true),
            (
                "attributes:a AND (attributes:b OR attributes:region)",
                false,
            ),
            (
                "attributes:region AND NOT (attributes:a OR attributes:b)",
                true,
            ),
            ("attributes:\"iana.org/kind\"", true),
            ("attributes.\"iana.org/kind\" = \"a\\\"b\"", true),
            ("  attributes:region  ", true),
            (r#"attributes.region = "e\u0075-\x77\145st""#, true),
            (r#"hasPrefix(attributes.region, "\U00000065u")"#, true),
            (r#"attributes:"\n""#, false),
        ] {
            assert_eq!(is_wanted(filter, &eu), wanted, "{filter}");
        }
    }

    #[test]
    fn an_empty_filter_wants_everything() {
        assert!(read("").unwrap().is_none());
    }

    #[test]
    fn what_is_not_a_filter_is_refused() {
        for filter in [
            "region = \"eu\"",
            "attributes",
            "attributes.region",
            "attributes.region = eu",
            "attributes.region = \"eu",
            "attributes.region > \"eu\"",
            "attributes:region AND",
            "attributes:region attributes:zone",
            "attributes:a AND attributes:b OR attributes:c",
            "attributes:a and attributes:b",
            "(attributes:region",
            "attributes:region)",
            "hasPrefix(attributes.region)",
            "hasPrefix(attributes.region, \"a\"",
            "data = \"x\"",
            "NOT",
            r#"attributes:"\q""#,
            r#"attributes:"\u12""#,
            r#"attributes:"\UFFFFFFFF""#,
        ] {
            assert!(read(filter).is_err(), "{filter}");
        }
        let long = format!("attributes.k = \"{}\"", "x".repeat(256));
        assert!(read(&long).is_err());
        let deep = "(".repeat(250);
        assert!(read(&deep).is_err());
    }
}
