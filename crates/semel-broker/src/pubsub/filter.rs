//! Which messages a subscription wants: Google's filter language, over attributes.
//!
//! A filter is comparisons joined by `AND` or by `OR`; the two are mixed only with parentheses, as in production.

mod read;

use std::collections::HashMap;

/// A longer filter is refused.
const FILTER_BYTES_MAX: usize = 256;

/// A filter that was understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Filter {
    /// `attributes:key`
    Has(String),
    /// `attributes.key = "value"`
    Is(String, String),
    /// `attributes.key != "value"`; also true of a message without the key.
    IsNot(String, String),
    /// `hasPrefix(attributes.key, "prefix")`
    HasPrefix(String, String),
    /// `NOT` or `-`
    Not(Box<Self>),
    And(Vec<Self>),
    Or(Vec<Self>),
}

/// Why a filter was not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct BadFilter(String);

// === impl Filter ===

impl Filter {
    /// Reads a filter; an empty one wants everything.
    pub(super) fn read(text: &str) -> Result<Option<Self>, BadFilter> {
        if text.len() > FILTER_BYTES_MAX {
            let why = format!("it is longer than {FILTER_BYTES_MAX} bytes");
            return Err(BadFilter(why));
        }
        match text.trim().is_empty() {
            true => Ok(None),
            false => read::whole(text).map(Some),
        }
    }

    /// Whether a message with these attributes is wanted.
    pub(super) fn wants(&self, attributes: &HashMap<String, String>) -> bool {
        let value = |key: &String| attributes.get(key);
        match self {
            Self::Has(key) => attributes.contains_key(key),
            Self::Is(key, wanted) => value(key) == Some(wanted),
            Self::IsNot(key, unwanted) => value(key) != Some(unwanted),
            Self::HasPrefix(key, prefix) => value(key).is_some_and(|it| it.starts_with(prefix)),
            Self::Not(inner) => !inner.wants(attributes),
            Self::And(all) => all.iter().all(|it| it.wants(attributes)),
            Self::Or(any) => any.iter().any(|it| it.wants(attributes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wants(filter: &str, attributes: &[(&str, &str)]) -> bool {
        let attributes = attributes.iter();
        let attributes = attributes.map(|(key, value)| ((*key).into(), (*value).into()));
        let filter = Filter::read(filter).unwrap();
        filter.unwrap().wants(&attributes.collect())
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
            ("attributes.zone != \"us\"", true),
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
            assert_eq!(wants(filter, &eu), wanted, "{filter}");
        }
    }

    #[test]
    fn an_empty_filter_wants_everything() {
        assert_eq!(Filter::read("").unwrap(), None);
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
            assert!(Filter::read(filter).is_err(), "{filter}");
        }
        let long = format!("attributes.k = \"{}\"", "x".repeat(256));
        assert!(Filter::read(&long).is_err());
        let deep = "(".repeat(250);
        assert!(Filter::read(&deep).is_err());
    }
}
