//! The query: what every Google API understands, and fields of the request.

use super::write::Style;
use std::borrow::Cow;
use url::form_urlencoded;

/// A query, taken apart.
#[derive(Debug)]
pub(crate) struct Query<'a> {
    /// How the answer is to be written.
    pub(crate) style: Style,
    /// Fields of the request, by name.
    pub(crate) fields: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

/// Parameters that every Google API takes, and that change nothing here.
const TOLERATED: [&str; 23] = [
    "$.xgafv",
    "$apiKey",
    "$callback",
    "$fields",
    "$key",
    "$quotaUser",
    "$trace",
    "$unique",
    "$uploadType",
    "$upload_protocol",
    "$userProject",
    "access_token",
    "bearer_token",
    "callback",
    "fields",
    "key",
    "oauth_token",
    "passwd",
    "pp",
    "quotaUser",
    "uploadType",
    "upload_protocol",
    "userIp",
];

// === impl Query ===

impl<'a> Query<'a> {
    pub(crate) fn parse(text: &'a str) -> Self {
        let mut query = Self {
            style: Style::default(),
            fields: Vec::new(),
        };
        for (name, value) in form_urlencoded::parse(text.as_bytes()) {
            match &*name {
                "$alt" | "alt" => query.style.enums_as_numbers |= numbers_are_wanted(&value),
                "prettyPrint" | "$prettyPrint" => query.style.pretty = is_yes(&value),
                name if TOLERATED.contains(&name) => {}
                _ => query.fields.push((name, value)),
            }
        }
        query
    }
}

/// As in `json;enum-encoding=int`.
fn numbers_are_wanted(alt: &str) -> bool {
    alt.split(';')
        .any(|word| word.trim() == "enum-encoding=int")
}

fn is_yes(value: &str) -> bool {
    !matches!(value, "false" | "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_parameters_are_no_fields() {
        let text = "%24alt=json%3Benum-encoding%3Dint&prettyPrint=false&key=k&pageSize=3&a=b+c";
        let query = Query::parse(text);
        assert!(query.style.enums_as_numbers && !query.style.pretty);
        let fields: Vec<_> = query.fields.iter().map(|(n, v)| (&**n, &**v)).collect();
        assert_eq!(fields, [("pageSize", "3"), ("a", "b c")]);
        assert!(
            Query::parse("$alt=json;enum-encoding=int")
                .style
                .enums_as_numbers
        );
        let plain = Query::parse("alt=json").style;
        assert!(plain.pretty && !plain.enums_as_numbers);
    }
}
