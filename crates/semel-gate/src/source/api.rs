//! API clients: a request with an `Idempotency-Key`, or a webhook whose key rule names its parts.

use super::refuse;
use crate::delivery::Invalid;
use http::HeaderMap;
use std::borrow::Cow;

/// The longest key that a client may choose: what the common APIs take.
const KEY_CHARS_MAX: usize = 255;

/// The key that a client chose: quoted, as the IETF draft says, or bare, as most clients send it.
/// Both spellings of one key are equal.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Result<Option<Cow<'_, str>>, Invalid> {
    let mut values = headers.get_all("idempotency-key").iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(refuse(
            "idempotency-key-repeated",
            "the header Idempotency-Key is there more than once: send it once",
        ));
    }
    let sent = value.as_bytes().trim_ascii();
    let key = match sent {
        [b'"', rest @ ..] => unquote(rest)?,
        bare => Cow::Borrowed(visible(bare)?),
    };
    match key.len() {
        0 => Err(refuse(
            "idempotency-key-empty",
            "the Idempotency-Key is empty: send a new UUID for each new piece of work",
        )),
        1..=KEY_CHARS_MAX => Ok(Some(key)),
        _ => Err(refuse(
            "idempotency-key-too-long",
            format!("the Idempotency-Key has more than {KEY_CHARS_MAX} characters: send a UUID"),
        )),
    }
}

/// A bare key. A space is refused: it is how a proxy joins two headers into one (`a, b`).
fn visible(bytes: &[u8]) -> Result<&str, Invalid> {
    match std::str::from_utf8(bytes) {
        Ok(text) if bytes.iter().all(u8::is_ascii_graphic) => Ok(text),
        Ok(_) | Err(_) => Err(bad_character()),
    }
}

/// The rest of an RFC 8941 string behind its first quote. Spaces belong to it; parameters do not.
fn unquote(rest: &[u8]) -> Result<Cow<'_, str>, Invalid> {
    let mut key = String::new();
    let mut bytes = rest.iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            b'"' if bytes.as_slice().is_empty() => return Ok(Cow::Owned(key)),
            b'"' => return Err(bad_quotes()),
            b'\\' => match bytes.next() {
                Some(escaped @ (b'"' | b'\\')) => key.push(char::from(*escaped)),
                Some(_) | None => return Err(bad_quotes()),
            },
            b' '..=b'~' => key.push(char::from(byte)),
            _ => return Err(bad_character()),
        }
    }
    Err(bad_quotes())
}

fn bad_character() -> Invalid {
    refuse(
        "idempotency-key-characters",
        "the Idempotency-Key has characters other than visible ASCII: send a UUID",
    )
}

fn bad_quotes() -> Invalid {
    refuse(
        "idempotency-key-quotes",
        "the Idempotency-Key begins with a quote but is not one quoted string: \
         send \"KEY\" with nothing behind it and only \\\" and \\\\ as escapes, or send it bare",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn key_of(value: &[u8]) -> Result<String, &'static str> {
        let mut headers = HeaderMap::new();
        headers.insert("idempotency-key", HeaderValue::from_bytes(value).unwrap());
        match idempotency_key(&headers) {
            Ok(key) => Ok(key.unwrap().into_owned()),
            Err(invalid) => Err(invalid.code),
        }
    }

    #[test]
    fn quoted_and_bare_keys_are_equal() {
        let uuid = "8e03978e-40d5-43dd-bc93-6894a57f9324";
        assert_eq!(key_of(uuid.as_bytes()).unwrap(), uuid);
        assert_eq!(key_of(format!("\"{uuid}\"").as_bytes()).unwrap(), uuid);
        assert_eq!(key_of(format!(" {uuid}\t").as_bytes()).unwrap(), uuid);
    }

    #[test]
    fn escapes_are_read_only_inside_quotes() {
        assert_eq!(key_of(br#""a\"b\\c""#).unwrap(), r#"a"b\c"#);
        assert_eq!(key_of(br"a\b").unwrap(), r"a\b");
        assert_eq!(key_of(br#"a"b"#).unwrap(), r#"a"b"#);
        assert_eq!(key_of(br#""two words""#).unwrap(), "two words");
    }

    #[test]
    fn malformed_keys_are_refused_by_name() {
        let cases: [(&[u8], &str); 15] = [
            (b"", "idempotency-key-empty"),
            (b"  ", "idempotency-key-empty"),
            (b"\"\"", "idempotency-key-empty"),
            (b"\"", "idempotency-key-quotes"),
            (b"\"a", "idempotency-key-quotes"),
            (b"\"a\\\"", "idempotency-key-quotes"),
            (b"\"a\\n\"", "idempotency-key-quotes"),
            (b"\"a\\", "idempotency-key-quotes"),
            (b"\"a\" ;p=1", "idempotency-key-quotes"),
            (b"\"a\", \"b\"", "idempotency-key-quotes"),
            (b"a b", "idempotency-key-characters"),
            (b"a\tb", "idempotency-key-characters"),
            (b"\"a\tb\"", "idempotency-key-characters"),
            ("schlüssel".as_bytes(), "idempotency-key-characters"),
            (b"\"\xff\"", "idempotency-key-characters"),
        ];
        for (sent, code) in cases {
            assert_eq!(key_of(sent), Err(code), "{}", sent.escape_ascii());
        }
    }

    #[test]
    fn the_length_is_counted_without_the_quotes() {
        let longest = "k".repeat(255);
        assert_eq!(key_of(longest.as_bytes()).unwrap(), longest);
        assert_eq!(
            key_of(format!("\"{longest}\"").as_bytes()).unwrap(),
            longest
        );
        let longer = "k".repeat(256);
        assert_eq!(key_of(longer.as_bytes()), Err("idempotency-key-too-long"));
        assert_eq!(
            key_of(format!("\"{longer}\"").as_bytes()),
            Err("idempotency-key-too-long")
        );
    }

    #[test]
    fn a_missing_key_is_no_error_and_a_second_one_is() {
        let mut headers = HeaderMap::new();
        assert_eq!(idempotency_key(&headers), Ok(None));
        headers.append("idempotency-key", HeaderValue::from_static("same"));
        headers.append("idempotency-key", HeaderValue::from_static("same"));
        assert_eq!(
            idempotency_key(&headers).unwrap_err().code,
            "idempotency-key-repeated"
        );
    }
}
