//! How values are written for people: exact where it matters, and short where it does not.

use jiff::Timestamp;
use semel::clock::Time;
pub(super) use semel_ui::span;
use semel_ui::{Markup, html};

/// A number with commas: 2,114,806.
pub(super) fn number(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// How many of something: "1 letter", "2 letters".
pub(super) fn count(value: u64, one: &str, many: &str) -> String {
    let word = if value == 1 { one } else { many };
    format!("{} {word}", number(value))
}

/// How many bytes.
pub(super) fn bytes(count: u64) -> String {
    match count {
        0..10_000 => format!("{} B", number(count)),
        10_000..10_485_760 => format!("{} KiB", number(count / 1024)),
        _ => format!("{} MiB", number(count / 1024 / 1024)),
    }
}

/// How long ago it was.
pub(super) fn ago(time: Time, now: Time) -> String {
    format!("{} ago", span(now.since(time)))
}

/// The time of day to the millisecond, in UTC; with its day, if that is another one.
pub(super) fn clock(time: Time, now: Time) -> String {
    let (Some(at), Some(today)) = (timestamp(time), timestamp(now)) else {
        return "–".into();
    };
    let same_day = at.strftime("%F").to_string() == today.strftime("%F").to_string();
    let format = if same_day { "%T%.3f" } else { "%b %d %T%.3f" };
    at.strftime(format).to_string()
}

/// The whole time, RFC 3339.
pub(super) fn whole(time: Time) -> String {
    timestamp(time).map_or_else(|| "–".into(), |at| format!("{at:.3}"))
}

/// How long ago, with the whole time for whoever points at it.
pub(super) fn since(time: Time, now: Time) -> Markup {
    let whole = whole(time);
    html! { time datetime=(whole) title=(whole) { (ago(time, now)) } }
}

fn timestamp(time: Time) -> Option<Timestamp> {
    Timestamp::from_microsecond(i64::try_from(time.0).ok()?).ok()
}

/// The beginning of a long word; the whole for whoever points at it.
pub(super) fn shortened(text: &str, chars_max: usize) -> Markup {
    if text.chars().count() <= chars_max {
        return html! { code { (text) } };
    }
    let begin: String = text.chars().take(chars_max).collect();
    html! { code title=(text) { (begin) "…" } }
}

/// What is said of how old numbers are.
pub(super) fn as_of(at: Time, now: Time) -> Markup {
    html! { "as of " (since(at, now)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn numbers_have_commas() {
        for (value, said) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (2_114_806, "2,114,806"),
        ] {
            assert_eq!(number(value), said);
        }
        assert_eq!(count(1, "letter", "letters"), "1 letter");
        assert_eq!(count(1200, "letter", "letters"), "1,200 letters");
    }

    #[test]
    fn times_are_exact_and_in_utc() {
        let at = Time(1_763_297_667_004_112);
        assert_eq!(clock(at, at), "12:54:27.004");
        assert_eq!(
            clock(at, at.plus(Duration::from_secs(86_400))),
            "Nov 16 12:54:27.004"
        );
        assert_eq!(whole(at), "2025-11-16T12:54:27.004Z");
        assert_eq!(clock(Time(u64::MAX), at), "–");
    }
}
