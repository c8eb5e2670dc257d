//! Values: how plain settings are written, a function each. What they mean for a route is in `route_values`.

use super::mistakes::Location;
use super::tree::{Node, Value};
use semel::store::RETENTION_MAX;
use std::fmt::Display;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// A value that was read, or all that is wrong with it.
pub(crate) type Read<T> = Result<T, Vec<Wrong>>;

/// Why a value cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// It is something else altogether.
    Kind(Location, &'static str),
    /// It is of the right kind, but.
    Says(Location, String),
}

/// No time is longer than a record can be kept, and none leads beyond what clocks can tell.
pub(crate) const DURATION_MAX: Duration = RETENTION_MAX;

const DURATION_UNITS: [(&str, u64); 5] = [
    ("ms", 1),
    ("s", 1_000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

const SIZE_UNITS: [(&str, usize); 4] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("B", 1),
];

// === impl Wrong ===

impl Wrong {
    pub(crate) fn kind<T>(value: &Value) -> Read<T> {
        Err(vec![Self::Kind(value.location, value.found())])
    }

    pub(crate) fn says<T>(value: &Value, says: impl Display) -> Read<T> {
        Err(vec![Self::Says(value.location, says.to_string())])
    }

    /// What was found, or what to say when nothing was.
    pub(crate) fn unless<T, S: Display>(
        value: &Value,
        found: Option<T>,
        says: impl FnOnce() -> S,
    ) -> Read<T> {
        found.map_or_else(|| Self::says(value, says()), Ok)
    }

    pub(crate) const fn location(&self) -> Location {
        match self {
            Self::Kind(location, _) | Self::Says(location, _) => *location,
        }
    }
}

// === Plain values ===

pub(crate) fn text(value: &Value) -> Read<String> {
    let Node::Text(text) = &value.node else {
        return Wrong::kind(value);
    };
    Ok(text.clone())
}

/// A file of this machine; whether it is there and good is judged where it is used.
pub(crate) fn path(value: &Value) -> Read<PathBuf> {
    let path = text(value)?;
    let named = Some(path).filter(|path| !path.is_empty());
    Wrong::unless(value, named.map(PathBuf::from), || "the path is empty")
}

pub(crate) fn switch(value: &Value) -> Read<bool> {
    let Node::Switch(switch) = &value.node else {
        return Wrong::kind(value);
    };
    Ok(*switch)
}

pub(crate) fn integer(value: &Value) -> Read<u64> {
    let Node::Integer(integer) = &value.node else {
        return Wrong::kind(value);
    };
    u64::try_from(*integer)
        .or_else(|_| Wrong::says(value, format!("{integer} is less than nothing")))
}

pub(crate) fn count(value: &Value) -> Read<usize> {
    usize::try_from(integer(value)?).or_else(|_| Wrong::says(value, "the number is too large"))
}

pub(crate) fn small_count(value: &Value) -> Read<u32> {
    u32::try_from(integer(value)?).or_else(|_| Wrong::says(value, "the number is too large"))
}

pub(crate) fn at_least_one(value: &Value) -> Read<usize> {
    let some = Some(count(value)?).filter(|count| *count > 0);
    let says = || "0 would let nothing through: write at least 1";
    Wrong::unless(value, some, says)
}

/// A list of what `item` reads.
pub(crate) fn list<T>(item: impl Fn(&Value) -> Read<T>) -> impl Fn(&Value) -> Read<Vec<T>> {
    move |value| {
        let Node::List(items) = &value.node else {
            return Wrong::kind(value);
        };
        let (mut good, mut wrongs) = (Vec::new(), Vec::new());
        for one in items {
            match item(one) {
                Ok(one) => good.push(one),
                Err(wrong) => wrongs.extend(wrong),
            }
        }
        if wrongs.is_empty() {
            Ok(good)
        } else {
            Err(wrongs)
        }
    }
}

pub(crate) fn address(value: &Value) -> Read<SocketAddr> {
    let text = text(value)?;
    text.parse().or_else(|_| {
        let help = "write an IP address and a port, as in \"127.0.0.1:8080\" or \"[::1]:8080\"";
        Wrong::says(value, format!("{text:?} is not an address: {help}"))
    })
}

pub(crate) fn duration(value: &Value) -> Read<Duration> {
    let text = text(value)?;
    let found = Wrong::unless(value, read_duration(&text), || {
        let help = "write a whole number and ms, s, m, h or d, as in \"500ms\" or \"24h\"";
        format!("{text:?} is not a duration: {help}")
    })?;
    let short = (found <= DURATION_MAX).then_some(found);
    Wrong::unless(value, short, || {
        format!("{text:?} is too long: write 366d at the most")
    })
}

/// A whole number and a unit.
pub(crate) fn read_duration(text: &str) -> Option<Duration> {
    let found = DURATION_UNITS.iter().find_map(|(unit, ms)| {
        let count = number::<u64>(text.strip_suffix(unit)?)?;
        count.checked_mul(*ms)
    });
    found.map(Duration::from_millis)
}

pub(crate) fn size(value: &Value) -> Read<usize> {
    let Node::Text(text) = &value.node else {
        return count(value);
    };
    let found = SIZE_UNITS.iter().find_map(|(unit, bytes)| {
        let count = number::<usize>(text.strip_suffix(unit)?)?;
        count.checked_mul(*bytes)
    });
    Wrong::unless(value, found, || {
        let help = "write a whole number and B, KiB, MiB or GiB, as in \"16MiB\"";
        format!("{text:?} is not a size: {help}")
    })
}

/// Text that its own type can read.
pub(crate) fn parsed<T: FromStr<Err: Display>>(value: &Value) -> Read<T> {
    text(value)?
        .parse()
        .or_else(|error| Wrong::says(value, error))
}

/// Digits only: no sign, no spaces.
fn number<T: FromStr>(text: &str) -> Option<T> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// A duration as a person would write it, in the largest unit that fits.
pub(crate) fn written(duration: Duration) -> String {
    let ms = duration.as_millis();
    let fits = |unit: u64| ms.is_multiple_of(u128::from(unit));
    // 24h is read more easily than 1d, and 90m more easily than nothing.
    let unit = DURATION_UNITS.iter().rev().find(|(name, unit)| {
        fits(*unit) && (*name != "d" || ms >= 2 * u128::from(*unit)) && ms > 0
    });
    match unit {
        Some((name, unit)) => format!("{}{name}", ms / u128::from(*unit)),
        None => "0s".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(text: &str) -> Value {
        Value::given("a test", text)
    }

    #[test]
    fn durations_are_a_whole_number_and_a_unit() {
        let good = [
            ("500ms", 500),
            ("30s", 30_000),
            ("10m", 600_000),
            ("24h", 86_400_000),
            ("7d", 604_800_000),
            ("0s", 0),
        ];
        for (written_so, ms) in good {
            let read = duration(&given(written_so)).unwrap();
            assert_eq!(read, Duration::from_millis(ms));
            assert_eq!(written(read), written_so);
        }
        for bad in [
            "",
            "s",
            "30",
            "1.5s",
            "-1s",
            " 1s",
            "1 s",
            "1w",
            "99999999999999999999s",
            "367d",
            "18446744073709551615ms",
        ] {
            assert!(duration(&given(bad)).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn sizes_are_bytes_or_a_number_and_a_unit() {
        assert_eq!(size(&given("16MiB")), Ok(16 << 20));
        assert_eq!(size(&given("7B")), Ok(7));
        for bad in ["16MB", "MiB", "16", "99999999999999999GiB"] {
            assert!(size(&given(bad)).is_err(), "{bad:?}");
        }
    }
}
