//! The query: what every Google API understands, and fields of the request.

use super::error::ErrorResponse;
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
const IGNORED: [&str; 23] = [
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
    pub(crate) fn parse(text: &'a str) -> Result<Self, ErrorResponse> {
        let mut query = Self {
            style: Style::default(),
            fields: Vec::new(),
        };
        for (name, value) in form_urlencoded::parse(text.as_bytes()) {
            match &*name {
                "$alt" | "alt" => query.style.enums_as_numbers |= form(&name, &value)?,
                "prettyPrint" | "$prettyPrint" => query.style.pretty = is_yes(&value),
                name if IGNORED.contains(&name) => {}
                _ => query.fields.push((name, value)),
            }
        }
        Ok(query)
    }
}

/// Whether enums are wanted as numbers, as in `json;enum-encoding=int`. JSON is the only form.
fn form(name: &str, value: &str) -> Result<bool, ErrorResponse> {
    let mut words = value.split(';').map(str::trim);
    match words.next() {
        Some("" | "json") | None => Ok(words.any(|word| word == "enum-encoding=int")),
        Some(_) => Err(ErrorResponse::invalid(format!(
            "Invalid value \"{value}\" for query parameter '{name}'"
        ))),
    }
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
        let parse = |text| Query::parse(text).unwrap();
        let query = parse(text);
        assert!(query.style.enums_as_numbers && !query.style.pretty);
        let fields: Vec<_> = query.fields.iter().map(|(n, v)| (&**n, &**v)).collect();
        assert_eq!(fields, [("pageSize", "3"), ("a", "b c")]);
        assert!(parse("$alt=json;enum-encoding=int").style.enums_as_numbers);
        assert!(Query::parse("alt=xml").is_err());
        let plain = parse("alt=json").style;
        assert!(plain.pretty && !plain.enums_as_numbers);
    }
}
