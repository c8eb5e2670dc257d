//! Durations as people write them, and as JSON does.

use prost_types::Duration as ProtoDuration;
use std::time::Duration;

/// As far as JSON's durations go: ten thousand years.
const SECONDS_MAX: i64 = 315_576_000_000;

/// `500ms`, `0.1s`, `10m`, `2h`, `7d`.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    let number = text.trim_end_matches(|it: char| it.is_ascii_alphabetic());
    let unit = match text.get(number.len()..)? {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86400.0,
        _ => return None,
    };
    let digits = |it: u8| it.is_ascii_digit() || it == b'.';
    let number: f64 = number.bytes().all(digits).then(|| number.parse().ok())??;
    // A float is not exact; nobody means less than a microsecond.
    let nanos = Duration::try_from_secs_f64(number * unit).ok()?.as_nanos();
    let micros = u64::try_from((nanos + 500) / 1000).ok()?;
    Some(Duration::from_micros(micros))
}

/// The same without a fraction.
pub(crate) fn parse_whole(text: &str) -> Option<Duration> {
    parse(text).filter(|_| !text.contains('.'))
}

/// `3.5s`, as JSON writes the duration of a message; or why it is not one, in Google's words.
pub(crate) fn parse_json(text: &str) -> Result<ProtoDuration, &'static str> {
    let number = text
        .strip_suffix('s')
        .ok_or("Illegal duration format; duration must end with 's'")?;
    let (sign, number) = match number.strip_prefix('-') {
        Some(number) => (-1, number),
        None => (1, number),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|it| it.is_ascii_digit());
    if whole.is_empty() || !digits(whole) {
        return Err("Invalid duration format, failed to parse seconds");
    }
    if fraction.len() > 9 || !digits(fraction) || number.ends_with('.') {
        return Err("Invalid duration format, failed to parse nano seconds");
    }
    let seconds = whole.parse().ok().filter(|it| *it <= SECONDS_MAX);
    let seconds: i64 = seconds.ok_or("Duration value exceeds limits")?;
    let nanos: i32 = format!("{fraction:0<9}").parse().expect("nine digits");
    Ok(ProtoDuration {
        seconds: i64::from(sign) * seconds,
        nanos: sign * nanos,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        for (text, seconds) in [
            ("2s", 2),
            ("5m", 300),
            ("1h", 3600),
            ("7d", 604_800),
            ("0s", 0),
        ] {
            assert_eq!(parse_whole(text), Some(Duration::from_secs(seconds)));
        }
        assert_eq!(parse_whole("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(parse("0.1s"), Some(Duration::from_millis(100)));
        for text in [
            "",
            "5",
            "s",
            "1.5s",
            "-1s",
            "1w",
            "1 s",
            "s1",
            "1e3s",
            "99999999999999999d",
        ] {
            assert_eq!(parse_whole(text), None, "{text}");
        }
    }
}
