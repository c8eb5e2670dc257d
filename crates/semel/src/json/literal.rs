//! The literal of a JSON string: what it means is told piece by piece, so that a long one is never
//! copied.

use super::Refused;
use std::cmp::Ordering;
use std::str;

/// A string as it stands in the text, between its quotes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Literal<'a> {
    raw: &'a str,
}

/// The characters that a literal means.
struct Characters<'a> {
    rest: str::Chars<'a>,
}

// === impl Literal ===

impl<'a> Literal<'a> {
    /// A literal that [`end`] has found to be good.
    pub(super) const fn new(raw: &'a str) -> Self {
        Self { raw }
    }

    pub(super) const fn raw(self) -> &'a str {
        self.raw
    }

    /// The characters that it means.
    pub(super) fn chars(self) -> impl Iterator<Item = char> + 'a {
        Characters {
            rest: self.raw.chars(),
        }
    }

    /// What it means, in pieces: runs without escapes as they stand, and single characters.
    pub(super) fn pieces(self, mut each: impl FnMut(&str)) {
        let mut rest = self.raw;
        while let Some((run, behind)) = rest.split_once('\\') {
            if !run.is_empty() {
                each(run);
            }
            let (character, left) = unescape(behind);
            each(character.encode_utf8(&mut [0; 4]));
            rest = left;
        }
        if !rest.is_empty() {
            each(rest);
        }
    }

    /// Whether it means this text.
    pub(super) fn means(self, text: &str) -> bool {
        if self.is_plain() {
            self.raw == text
        } else {
            self.chars().eq(text.chars())
        }
    }

    /// By what they mean: the order of the characters, which is that of UTF-8.
    pub(super) fn order(self, other: Self) -> Ordering {
        if self.is_plain() && other.is_plain() {
            self.raw.cmp(other.raw)
        } else {
            self.chars().cmp(other.chars())
        }
    }

    /// By what they mean, in the order of UTF-16, as RFC 8785 sorts members.
    pub(super) fn order_utf16(self, other: Self) -> Ordering {
        fn units(character: char) -> impl Iterator<Item = u16> {
            let mut units = [0; 2];
            let count = character.encode_utf16(&mut units).len();
            units.into_iter().take(count)
        }
        let ours = self.chars().flat_map(units);
        ours.cmp(other.chars().flat_map(units))
    }

    /// Whether it stands for itself, without escapes.
    pub(super) fn is_plain(self) -> bool {
        !self.raw.contains('\\')
    }
}

// === impl Characters ===

impl Iterator for Characters<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        let character = self.rest.next()?;
        if character != '\\' {
            return Some(character);
        }
        let (character, left) = unescape(self.rest.as_str());
        self.rest = left.chars();
        Some(character)
    }
}

/// The character that an escape means, and what is behind it; `text` begins behind the backslash.
fn unescape(text: &str) -> (char, &str) {
    let after = |bytes| text.get(bytes..).unwrap_or_default();
    let plain = match text.as_bytes().first() {
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return unescape_unit(text),
        Some(&other) => char::from(other),
        None => char::REPLACEMENT_CHARACTER,
    };
    (plain, after(1))
}

fn unescape_unit(text: &str) -> (char, &str) {
    let bytes = text.as_bytes();
    let units = [unit(bytes.get(1..)), unit(bytes.get(7..))].map(Option::unwrap_or_default);
    // A high half is never alone: the scan has seen to it.
    let (count, length) = if is_high(units[0]) { (2, 11) } else { (1, 5) };
    let mut decoded = char::decode_utf16(units.into_iter().take(count));
    let character = decoded.next().and_then(Result::ok);
    (
        character.unwrap_or(char::REPLACEMENT_CHARACTER),
        text.get(length..).unwrap_or_default(),
    )
}

/// The four hex digits that a text begins with.
fn unit(text: Option<&[u8]>) -> Option<u16> {
    let digits = text?.first_chunk::<4>()?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u16::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}

const fn is_high(unit: u16) -> bool {
    matches!(unit, 0xd800..=0xdbff)
}

const fn is_low(unit: u16) -> bool {
    matches!(unit, 0xdc00..=0xdfff)
}

// === Scanning ===

/// Where the literal that begins here ends: the place of its closing quote. Whatever is not allowed
/// between quotes is refused.
pub(super) fn end(text: &[u8], begin: usize) -> Result<usize, Refused> {
    let mut at = begin;
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..=0x1f);
        let run = rest.iter().position(special).ok_or(Refused::NotJson)?;
        at += run;
        match rest.get(run) {
            Some(b'"') => return Ok(at),
            Some(b'\\') => at += escape_bytes(rest.get(run + 1..).unwrap_or_default())?,
            Some(_) | None => return Err(Refused::NotJson),
        }
    }
}

/// How long an escape is, its backslash included; `text` begins behind it.
fn escape_bytes(text: &[u8]) -> Result<usize, Refused> {
    match text.first() {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(2),
        Some(b'u') => {
            let first = unit(text.get(1..)).ok_or(Refused::NotJson)?;
            let follows = text.get(5..7) == Some(b"\\u");
            let second = unit(text.get(7..)).filter(|_| follows);
            match (is_high(first), second) {
                (true, Some(second)) if is_low(second) => Ok(12),
                (true, Some(_) | None) => Err(Refused::LoneSurrogate),
                (false, _) if is_low(first) => Err(Refused::LoneSurrogate),
                (false, _) => Ok(6),
            }
        }
        Some(_) | None => Err(Refused::NotJson),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(raw: &str) -> String {
        let quoted = format!("{raw}\"");
        assert_eq!(end(quoted.as_bytes(), 0), Ok(raw.len()), "{raw}");
        let literal = Literal::new(raw);
        let mut pieces = String::new();
        literal.pieces(|piece| pieces.push_str(piece));
        assert_eq!(pieces, literal.chars().collect::<String>());
        assert!(literal.means(&pieces));
        pieces
    }

    #[test]
    fn escapes_mean_what_serde_reads() {
        let raws = [
            "",
            "plain é 😀",
            r#"\"\\\/\b\f\n\r\t"#,
            r"\u0041\u00e9\ud83d\uDE00x",
            r"\\u0041\\",
            r"a\u0000b",
            r"\ud800\udc00\udbff\udfff",
        ];
        for raw in raws {
            let read: String = serde_json::from_str(&format!("\"{raw}\"")).unwrap();
            assert_eq!(meant(raw), read, "{raw}");
        }
    }

    #[test]
    fn what_may_not_stand_between_quotes_is_refused() {
        let refusals = [
            (r"\ud800", Refused::LoneSurrogate),
            (r"\udc00\ud800", Refused::LoneSurrogate),
            (r"\ud83d\u0041", Refused::LoneSurrogate),
            (r"\ud83dx\ude00", Refused::LoneSurrogate),
            (r"\x41", Refused::NotJson),
            (r"\u41", Refused::NotJson),
            (r"\u+041", Refused::NotJson),
            ("a\nb", Refused::NotJson),
        ];
        for (raw, refused) in refusals {
            let quoted = format!("{raw}\"");
            assert_eq!(end(quoted.as_bytes(), 0), Err(refused), "{raw}");
        }
        assert_eq!(end(b"never closed", 0), Err(Refused::NotJson));
        assert_eq!(end(b"never closed\\", 0), Err(Refused::NotJson));
    }

    #[test]
    fn order_is_by_meaning() {
        let [a, b] = [Literal::new(r"\u0061b"), Literal::new("ab")];
        assert_eq!(a.order(b), Ordering::Equal);
        // U+E000 comes before U+10000 in UTF-8 and behind it in UTF-16.
        let [private, beyond] = [Literal::new("\u{e000}"), Literal::new(r"\ud800\udc00")];
        assert_eq!(private.order(beyond), Ordering::Less);
        assert_eq!(private.order_utf16(beyond), Ordering::Greater);
    }
}
