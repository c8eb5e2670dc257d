//! Numbers: which literals are numbers, and the one text that all spellings of a number have.

use super::{Unfit, shown};
use std::borrow::Cow;

/// The longest literal of an integer of 64 bits, in bytes.
const INTEGER_BYTES_MAX: usize = 20;

/// The longest literal that is an integer of 64 bits whatever its digits, in bytes.
const SMALL_BYTES_MAX: usize = 18;

/// The most digits in the exponent of a number whose spellings have one text.
const EXPONENT_DIGITS_MAX: usize = 18;

/// The most digits of an integer that is written without an exponent, as ECMAScript does.
const PLAIN_DIGITS_MAX: i64 = 21;

/// Zeros before the digits of a fraction, or behind those of an integer.
const ZEROS: &str = "000000000000000000000";

/// A number by its own digits, however it is written: 0.digits × 10^point.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decimal<'a> {
    is_negative: bool,
    /// Without zeros at either end; a literal's point may stand between two runs of them.
    digits: Digits<'a>,
    point: i64,
}

/// Two runs of digits, one behind the other.
#[derive(Clone, Copy, Debug)]
struct Digits<'a>(&'a str, &'a str);

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

/// The text in a key: that of an integer literal of 64 bits, or of a number that is the same decimal as the
/// shortest text of the nearest double, as RFC 8785 writes it.
pub(super) fn canonical(literal: &str) -> Result<Cow<'_, str>, Unfit> {
    if is_small(literal) {
        return Ok(Cow::Borrowed(literal));
    }
    if literal.contains(['.', 'e', 'E']) {
        let double: f64 = literal.parse().unwrap_or(f64::INFINITY);
        if double.is_infinite() {
            return Err(Unfit::NumberOverflow(shown(literal.chars())));
        }
        let text = ryu_js::Buffer::new().format(double).to_owned();
        if !Decimal::of(literal).is_some_and(|decimal| decimal.is_written(&text)) {
            return Err(Unfit::InexactNumber(shown(literal.chars())));
        }
        return Ok(Cow::Owned(text));
    }
    let integer = Some(literal).filter(|literal| literal.len() <= INTEGER_BYTES_MAX);
    match integer.and_then(|literal| literal.parse::<i128>().ok()) {
        Some(n) if (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&n) => {
            Ok(Cow::Owned(n.to_string()))
        }
        Some(_) | None => Err(Unfit::WideInteger(shown(literal.chars()))),
    }
}

// === impl Decimal ===

impl<'a> Decimal<'a> {
    /// `None` when the exponent has too many digits to count with.
    pub(super) fn of(literal: &'a str) -> Option<Self> {
        let (is_negative, rest) = match literal.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, literal),
        };
        let (mantissa, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let whole = whole.trim_start_matches('0');
        let fraction = fraction.trim_end_matches('0');
        let (digits, point) = match (whole, fraction) {
            ("", _) => {
                let digits = fraction.trim_start_matches('0');
                (Digits(digits, ""), -length(fraction) + length(digits))
            }
            (_, "") => (Digits(whole.trim_end_matches('0'), ""), length(whole)),
            (_, _) => (Digits(whole, fraction), length(whole)),
        };
        if digits.len() == 0 {
            return Some(Self {
                is_negative: false,
                digits,
                point: 0,
            });
        }
        Some(Self {
            is_negative,
            digits,
            point: point + exponent_value(exponent)?,
        })
    }

    /// The one text of all spellings, in pieces: as ECMAScript lays out digits. Zeros at the end of an integer are
    /// left to the caller, who gets their count.
    pub(super) fn pieces(self, mut each: impl FnMut(&str)) -> usize {
        let (digits, point) = (self.digits, self.point);
        if digits.len() == 0 {
            each("0");
            return 0;
        }
        if self.is_negative {
            each("-");
        }
        if (digits.len()..=PLAIN_DIGITS_MAX).contains(&point) {
            digits.pieces(&mut each);
            return usize::try_from(point - digits.len()).unwrap_or_default();
        }
        if (1..=PLAIN_DIGITS_MAX).contains(&point) {
            let (before, behind) = digits.split_at(point);
            before.pieces(&mut each);
            each(".");
            behind.pieces(&mut each);
        } else if (-5..=0).contains(&point) {
            each("0.");
            each(zeros(usize::try_from(-point).unwrap_or_default()));
            digits.pieces(&mut each);
        } else {
            let (first, rest) = digits.split_at(1);
            first.pieces(&mut each);
            each(if rest.len() == 0 { "" } else { "." });
            rest.pieces(&mut each);
            each(&format!("e{:+}", point - 1));
        }
        0
    }

    /// Whether this is its text.
    fn is_written(self, text: &str) -> bool {
        let mut rest = Some(text);
        let zeros_behind = self.pieces(|piece| {
            rest = rest.and_then(|rest| rest.strip_prefix(piece));
        });
        rest == Some(zeros(zeros_behind))
    }
}

// === impl Digits ===

impl<'a> Digits<'a> {
    fn len(self) -> i64 {
        length(self.0) + length(self.1)
    }

    fn split_at(self, at: i64) -> (Self, Self) {
        let at = usize::try_from(at).unwrap_or_default();
        let beyond = at.saturating_sub(self.0.len());
        let (first, second) = (cut(self.0, at), cut(self.1, beyond));
        (Digits(first.0, second.0), Digits(first.1, second.1))
    }

    fn pieces(self, each: &mut impl FnMut(&'a str)) {
        each(self.0);
        each(self.1);
    }
}

fn length(digits: &str) -> i64 {
    i64::try_from(digits.len()).unwrap_or(i64::MAX)
}

fn cut(digits: &str, at: usize) -> (&str, &str) {
    digits.split_at_checked(at).unwrap_or((digits, ""))
}

fn zeros(count: usize) -> &'static str {
    ZEROS.get(..count).unwrap_or(ZEROS)
}

/// An exponent with its sign, unless it has too many digits.
fn exponent_value(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    match digits.trim_start_matches('0') {
        "" => Some(0),
        digits if digits.len() <= EXPONENT_DIGITS_MAX => Some(sign * digits.parse::<i64>().ok()?),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own_digits(literal: &str) -> Option<String> {
        let mut text = String::new();
        let behind = Decimal::of(literal)?.pieces(|piece| text.push_str(piece));
        Some(text + zeros(behind))
    }

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
        for zero in ["0", "-0", "0.0", "-0e5", "0e99999999999999999999"] {
            assert_eq!(canonical(zero).unwrap(), "0");
            assert_eq!(own_digits(zero).unwrap(), "0");
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

    #[test]
    fn a_number_that_a_double_would_round_has_no_text_in_a_key() {
        for literal in [
            "1.000000000000000001",
            "0.10000000000000001",
            "9007199254740993.0",
            "1e-400",
            "-1e-99999999999999999999",
        ] {
            let inexact = Unfit::InexactNumber(literal.into());
            assert_eq!(canonical(literal), Err(inexact), "{literal}");
        }
    }

    #[test]
    fn digits_are_laid_out_as_ecmascript_does() {
        for (literal, text) in [
            ("1.000000000000000001", "1.000000000000000001"),
            ("-1000000000000000001000E-21", "-1.000000000000000001"),
            ("120e2", "12000"),
            ("0.0000012", "0.0000012"),
            ("0.00000012", "1.2e-7"),
            ("00.10e1", "1"),
            ("123456789012345678901", "123456789012345678901"),
            ("1234567890123456789012", "1.234567890123456789012e+21"),
            ("1e999999999", "1e+999999999"),
            ("12.5e-0000000000000000000003", "0.0125"),
            ("-1e999999999999999999", "-1e+999999999999999999"),
        ] {
            assert_eq!(own_digits(literal).as_deref(), Some(text), "{literal}");
        }
        assert_eq!(own_digits("1e1000000000000000000"), None);
    }
}
