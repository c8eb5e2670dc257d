//! Fields of a form body (`application/x-www-form-urlencoded`).

use super::KeyError;

/// The text of a field. `None`: the field is not there, or its value is broken or not UTF-8.
///
/// # Errors
/// When the field is there twice: two readers could see two values.
pub(crate) fn field(body: &[u8], name: &str) -> Result<Option<String>, KeyError> {
    let pairs = body.split(|byte| *byte == b'&').map(|pair| {
        let mut halves = pair.splitn(2, |byte| *byte == b'=');
        let half = halves.next().unwrap_or_default();
        (half, halves.next().unwrap_or_default())
    });
    let mut named = pairs.filter(|(written, _)| means(written, name));
    let Some((_, value)) = named.next() else {
        return Ok(None);
    };
    if named.next().is_some() {
        return Err(KeyError::DuplicateMember { name: name.into() });
    }
    let bytes: Option<Vec<u8>> = Bytes { rest: value }.collect();
    Ok(bytes.and_then(|bytes| String::from_utf8(bytes).ok()))
}

/// Whether a name as it is written means this text.
fn means(written: &[u8], name: &str) -> bool {
    Bytes { rest: written }.eq(name.bytes().map(Some))
}

/// The bytes that a name or value means; `None` for an escape that is broken.
struct Bytes<'a> {
    rest: &'a [u8],
}

// === impl Bytes ===

impl Iterator for Bytes<'_> {
    type Item = Option<u8>;

    fn next(&mut self) -> Option<Option<u8>> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(match first {
            b'+' => Some(b' '),
            b'%' => rest.first_chunk::<2>().and_then(|digits| {
                self.rest = rest.get(2..).unwrap_or_default();
                let mut byte = [0; 1];
                hex::decode_to_slice(digits, &mut byte).ok()?;
                byte.first().copied()
            }),
            other => Some(*other),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_however_it_is_written() {
        let body = b"From=%2B49+30&Message%53id=SM%31&a=b=c&flag&%zz=1&x=%FF&twice=1&twice=1&%c3%A4=%F0%9f%98%80";
        let text = |name| field(body, name).unwrap();
        assert_eq!(text("From").as_deref(), Some("+49 30"));
        assert_eq!(text("MessageSid").as_deref(), Some("SM1"));
        assert_eq!(text("a").as_deref(), Some("b=c"));
        assert_eq!(text("flag").as_deref(), Some(""));
        assert_eq!(text("ä").as_deref(), Some("😀"));
        for none in ["x", "%zz", "messagesid", "missing"] {
            assert_eq!(text(none), None, "{none}");
        }
        assert_eq!(field(body, "twice").unwrap_err().code(), "duplicate_member");
    }
}
