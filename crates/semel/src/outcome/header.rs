//! Header values as text. HTTP allows any byte in them, and old services send Latin-1; records and letters
//! keep text. A value of UTF-8 is kept as it is. In any other, each byte from 0x80 on stands as a
//! character of the private use area, U+F780 to U+F7FF, and so does each byte of a value that has
//! such characters itself: the way back is never in doubt.

use std::borrow::Cow;

/// U+F700 + a byte.
const STAND_INS: u32 = 0xF700;

/// The text by which the bytes of a header value are kept.
///
/// ```
/// use semel::outcome::{bytes_of, text_of};
///
/// assert_eq!(text_of(b"na\xefve"), "na\u{f7ef}ve");
/// for value in [&b"plain"[..], "na\u{ef}ve".as_bytes(), b"na\xefve", "\u{f7ef}".as_bytes()] {
///     assert_eq!(*bytes_of(&text_of(value)), *value);
/// }
/// ```
#[must_use]
pub fn text_of(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(is_stand_in) => text.to_owned(),
        Ok(_) | Err(_) => bytes.iter().map(|byte| stand_in(*byte)).collect(),
    }
}

/// The bytes of a header value, from the text that keeps them.
#[must_use]
pub fn bytes_of(text: &str) -> Cow<'_, [u8]> {
    if !text.chars().any(is_stand_in) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut bytes = Vec::with_capacity(text.len());
    for c in text.chars() {
        let byte = u8::try_from(u32::from(c).wrapping_sub(STAND_INS));
        match byte {
            Ok(byte) if is_stand_in(c) => bytes.push(byte),
            Ok(_) | Err(_) => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Cow::Owned(bytes)
}

const fn is_stand_in(c: char) -> bool {
    matches!(c, '\u{F780}'..='\u{F7FF}')
}

fn stand_in(byte: u8) -> char {
    if byte.is_ascii() {
        return char::from(byte);
    }
    char::from_u32(STAND_INS + u32::from(byte)).expect("the private use area is all characters")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_comes_back_byte_for_byte() {
        let all: Vec<u8> = (0..=255).collect();
        let two_forms = [b"\xef\x9e\x80".as_slice(), b"\xff"].concat();
        for value in [
            &all[..],
            &two_forms,
            b"",
            b"a",
            "\u{e9} \u{f7ff} x".as_bytes(),
        ] {
            let text = text_of(value);
            assert_eq!(*bytes_of(&text), *value, "{text:?}");
        }
    }

    #[test]
    fn text_that_others_wrote_is_read_as_utf_8() {
        assert_eq!(*bytes_of("caf\u{e9}"), *"caf\u{e9}".as_bytes());
        assert_eq!(text_of("caf\u{e9}".as_bytes()), "caf\u{e9}");
    }
}
