//! Values: how plain settings are written. What they mean for a route is in `route_values`.

use super::mistakes::Location;
use super::tree::{Node, Value};
use semel::store::RETENTION_MAX;
use std::fmt::Display;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::str::FromStr;
use std::time::Duration;

/// Something a field can hold.
pub(crate) trait Setting: Sized {
    /// Reads it, or says all that is wrong with it.
    fn read(value: &Value) -> Read<Self>;
}

pub(crate) type Read<T> = Result<T, Vec<Wrong>>;

/// Why a value cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// It is something else altogether.
    Kind(Location, &'static str),
    /// It is of the right kind, but.
    Says(Location, String),
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) usize);

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

    pub(crate) const fn location(&self) -> Location {
        match self {
            Self::Kind(location, _) | Self::Says(location, _) => *location,
        }
    }
}

// === impl Setting ===

impl Setting for String {
    fn read(value: &Value) -> Read<Self> {
        match &value.node {
            Node::Text(text) => Ok(text.clone()),
            Node::Integer(_)
            | Node::Switch(_)
            | Node::List(_)
            | Node::Table(_)
            | Node::Other(_) => Wrong::kind(value),
        }
    }
}

impl Setting for bool {
    fn read(value: &Value) -> Read<Self> {
        match &value.node {
            Node::Switch(switch) => Ok(*switch),
            Node::Text(_) | Node::Integer(_) | Node::List(_) | Node::Table(_) | Node::Other(_) => {
                Wrong::kind(value)
            }
        }
    }
}

impl Setting for u64 {
    fn read(value: &Value) -> Read<Self> {
        match &value.node {
            Node::Integer(integer) => Self::try_from(*integer)
                .or_else(|_| Wrong::says(value, format!("{integer} is less than nothing"))),
            Node::Text(_) | Node::Switch(_) | Node::List(_) | Node::Table(_) | Node::Other(_) => {
                Wrong::kind(value)
            }
        }
    }
}

impl Setting for usize {
    fn read(value: &Value) -> Read<Self> {
        Self::try_from(u64::read(value)?).or_else(|_| Wrong::says(value, "the number is too large"))
    }
}

impl Setting for u32 {
    fn read(value: &Value) -> Read<Self> {
        Self::try_from(u64::read(value)?).or_else(|_| Wrong::says(value, "the number is too large"))
    }
}

impl Setting for NonZeroUsize {
    fn read(value: &Value) -> Read<Self> {
        Self::try_from(usize::read(value)?)
            .or_else(|_| Wrong::says(value, "0 would let nothing through: write at least 1"))
    }
}

impl<T: Setting> Setting for Vec<T> {
    fn read(value: &Value) -> Read<Self> {
        let Node::List(items) = &value.node else {
            return Wrong::kind(value);
        };
        let (mut good, mut wrongs) = (Self::new(), Vec::new());
        for item in items {
            match T::read(item) {
                Ok(item) => good.push(item),
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

impl Setting for SocketAddr {
    fn read(value: &Value) -> Read<Self> {
        let text = String::read(value)?;
        text.parse().or_else(|_| {
            let help = "write an IP address and a port, as in \"127.0.0.1:8080\" or \"[::1]:8080\"";
            Wrong::says(value, format!("{text:?} is not an address: {help}"))
        })
    }
}

impl Setting for Duration {
    fn read(value: &Value) -> Read<Self> {
        let text = String::read(value)?;
        let found = DURATION_UNITS.iter().find_map(|(unit, ms)| {
            let count = number::<u64>(text.strip_suffix(unit)?)?;
            count.checked_mul(*ms)
        });
        match found.map(Self::from_millis) {
            Some(duration) if duration > DURATION_MAX => Wrong::says(
                value,
                format!("{text:?} is too long: write 366d at the most"),
            ),
            Some(duration) => Ok(duration),
            None => {
                let help = "write a whole number and ms, s, m, h or d, as in \"500ms\" or \"24h\"";
                Wrong::says(value, format!("{text:?} is not a duration: {help}"))
            }
        }
    }
}

impl Setting for Size {
    fn read(value: &Value) -> Read<Self> {
        let Node::Text(text) = &value.node else {
            return usize::read(value).map(Self);
        };
        let found = SIZE_UNITS.iter().find_map(|(unit, bytes)| {
            let count = number::<usize>(text.strip_suffix(unit)?)?;
            count.checked_mul(*bytes)
        });
        found.map(Self).map_or_else(
            || {
                let help = "write a whole number and B, KiB, MiB or GiB, as in \"16MiB\"";
                Wrong::says(value, format!("{text:?} is not a size: {help}"))
            },
            Ok,
        )
    }
}

/// Text that its own type can read.
pub(crate) fn parsed<T: FromStr<Err: Display>>(value: &Value) -> Read<T> {
    String::read(value)?
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

    fn text(text: &str) -> Value {
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
            let read = Duration::read(&text(written_so)).unwrap();
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
            assert!(Duration::read(&text(bad)).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn sizes_are_bytes_or_a_number_and_a_unit() {
        assert_eq!(Size::read(&text("16MiB")), Ok(Size(16 << 20)));
        assert_eq!(Size::read(&text("7B")), Ok(Size(7)));
        for bad in ["16MB", "MiB", "16", "99999999999999999GiB"] {
            assert!(Size::read(&text(bad)).is_err(), "{bad:?}");
        }
    }
}
