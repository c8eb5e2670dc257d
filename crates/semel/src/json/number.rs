//! Numbers: which literals are numbers, and the one text that all spellings of a number have.

use super::{Unfit, shown};
use std::borrow::Cow;

/// The longest literal of an integer of 64 bits, in bytes.
const INTEGER_BYTES_MAX: usize = 20;

/// The longest literal that is an integer of 64 bits whatever its digits, in bytes.
const SMALL_BYTES_MAX: usize = 18;

/// The number that a text begins with, by the grammar of RFC 8259:
/// `-? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?`.
pub(super) fn literal(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    let whole = usize::from(bytes.first() == Some(&b'-'));
    let mut end = digits(bytes, whole)?;
    if bytes.get(whole) == Some(&b'0') && end > whole + 1 {
        return None;
    }
    if bytes.get(end) == Some(&b'.') {
        end = digits(bytes, end + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(end) {
        let signed = matches!(bytes.get(end + 1), Some(b'+' | b'-'));
        end = digits(bytes, end + 1 + usize::from(signed))?;
    }
    text.get(..end)
}

/// Where the digits end that begin here; there must be one.
fn digits(bytes: &[u8], begin: usize) -> Option<usize> {
    let mut end = begin;
    while let Some(b'0'..=b'9') = bytes.get(end) {
        end += 1;
    }
    (end > begin).then_some(end)
}

/// Whether a literal is an integer that is its own canonical text.
fn is_small(literal: &str) -> bool {
    literal.len() <= SMALL_BYTES_MAX && digits(literal.as_bytes(), 0) == Some(literal.len())
}

/// The canonical text: an integer literal of 64 bits as its digits, every other number as RFC 8785
/// writes the nearest double.
pub(super) fn canonical(literal: &str) -> Result<Cow<'_, str>, Unfit> {
    if is_small(literal) {
        return Ok(Cow::Borrowed(literal));
    }
    if literal.contains(['.', 'e', 'E']) {
        let double: f64 = literal.parse().unwrap_or(f64::INFINITY);
        if double.is_infinite() {
            return Err(Unfit::NumberOverflow(shown(literal.chars())));
        }
        return Ok(Cow::Owned(ryu_js::Buffer::new().format(double).to_owned()));
    }
    let integer = Some(literal).filter(|literal| literal.len() <= INTEGER_BYTES_MAX);
    match integer.and_then(|literal| literal.parse::<i128>().ok()) {
        Some(n) if (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&n) => {
            Ok(Cow::Owned(n.to_string()))
        }
        Some(_) | None => Err(Unfit::WideInteger(shown(literal.chars()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_ends_where_the_grammar_says() {
        for number in ["0", "-0", "7", "-10", "0.5", "1e9", "1E+9", "-1.50e-09"] {
            assert_eq!(literal(number), Some(number));
            assert_eq!(literal(&format!("{number},1")), Some(number));
        }
        for none in ["", "-", "01", "-01", "1.", "1.e1", "1e", "1e+", "+1", ".5"] {
            assert_eq!(literal(none), None, "{none}");
        }
    }

    #[test]
    fn all_spellings_of_a_number_have_one_text() {
        for one in ["1", "1.0", "1e0", "10e-1", "0.1E1"] {
            assert_eq!(canonical(one).unwrap(), "1");
        }
        for zero in ["0", "-0", "0.0", "-0e5", "1e-400"] {
            assert_eq!(canonical(zero).unwrap(), "0");
        }
        assert_eq!(
            canonical("18446744073709551615").unwrap(),
            "18446744073709551615"
        );
        let wide = "18446744073709551616".to_owned();
        assert_eq!(canonical(&wide), Err(Unfit::WideInteger(wide.clone())));
        assert_eq!(
            canonical("-1e400"),
            Err(Unfit::NumberOverflow("-1e400".into()))
        );
    }
}
