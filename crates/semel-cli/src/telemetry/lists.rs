//! Lists in variables: `name=value,name=value`, with what is special in a value as `%` and two hex digits.

use http::{HeaderMap, HeaderName, HeaderValue};

/// The pairs of a list, or what is wrong with it. The values may be secret: they are not in the message.
pub(super) fn pairs(variable: &str, text: &str) -> Result<Vec<(String, String)>, String> {
    let members = text
        .split(',')
        .map(str::trim)
        .filter(|pair| !pair.is_empty());
    let read = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        Some((decoded(name.trim())?, decoded(value.trim())?))
    };
    let pairs: Option<Vec<_>> = members.map(read).collect();
    pairs.ok_or_else(|| {
        format!("{variable} is not a list like name=value,name=value; it is not used")
    })
}

/// The headers of a list.
pub(super) fn header_map(text: &str) -> Result<HeaderMap, String> {
    const VARIABLE: &str = "OTEL_EXPORTER_OTLP_HEADERS";
    let mut headers = HeaderMap::new();
    for (name, value) in pairs(VARIABLE, text)? {
        let read = (HeaderName::try_from(&name), HeaderValue::try_from(&value));
        let (Ok(name), Ok(mut value)) = read else {
            return Err(format!(
                "{VARIABLE} has what cannot be a header; no header is sent"
            ));
        };
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            plain => plain,
        });
    }
    String::from_utf8(bytes).ok()
}
