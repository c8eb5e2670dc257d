//! How long something takes, for people.

use std::time::Duration;

/// A duration as people say it: 0.3 ms, 41 ms, 8.2 s, 14 min, 2 h, 3 d.
#[must_use]
pub fn span(duration: Duration) -> String {
    let micros = duration.as_micros();
    let seconds = duration.as_secs();
    match seconds {
        0 if micros == 0 => "0 s".into(),
        0 if micros < 10_000 => tenths(micros / 100, "ms"),
        0 => format!("{} ms", micros / 1000),
        1..10 => tenths(micros / 100_000, "s"),
        10..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => both(seconds / 3600, "h", seconds / 60 % 60, "min"),
        _ => both(seconds / 86_400, "d", seconds / 3600 % 24, "h"),
    }
}

fn both(whole: u64, unit: &str, rest: u64, smaller: &str) -> String {
    match rest {
        0 => format!("{whole} {unit}"),
        rest => format!("{whole} {unit} {rest} {smaller}"),
    }
}

fn tenths(tenths: u128, unit: &str) -> String {
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_short() {
        for (micros, said) in [
            (0, "0 s"),
            (300, "0.3 ms"),
            (41_000, "41 ms"),
            (8_200_000, "8.2 s"),
            (840_000_000, "14 min"),
            (7_500_000_000, "2 h 5 min"),
            (260_000_000_000, "3 d"),
        ] {
            assert_eq!(span(Duration::from_micros(micros)), said);
        }
    }
}
