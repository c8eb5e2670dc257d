//! Promises: what a route guarantees of its effects, and what it says of where they end up.

use std::fmt;
use std::time::Duration;

/// What a route guarantees of its effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// Never two; none only while the sender or an open letter still holds the work.
    ExactlyOnce,
    /// Never two.
    AtMostOnce,
    /// None only while the sender or an open letter still holds the work.
    AtLeastOnce,
}

/// What becomes of an effect that reaches its end a second time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Downstream {
    /// What it knows a repeat by.
    pub keys: DownstreamKeys,
    /// How long it remembers.
    pub window: Duration,
}

/// Which keys a handler passes on to a downstream that drops repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DownstreamKeys {
    /// The key of the work (`Idempotency-Key`): the same for every run.
    Key,
    /// Those of its steps: the same for every run that the store remembers as one piece of work.
    Steps,
}

// === impl Promise ===

impl Promise {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::ExactlyOnce, Self::AtMostOnce, Self::AtLeastOnce];

    /// The word for it, in settings and log lines.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::ExactlyOnce => "exactly-once",
            Self::AtMostOnce => "at-most-once",
            Self::AtLeastOnce => "at-least-once",
        }
    }

    /// Whether whoever keeps this one keeps the other, too.
    #[must_use]
    pub fn implies(self, other: Self) -> bool {
        self == Self::ExactlyOnce || self == other
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
