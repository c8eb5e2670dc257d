//! What is counted of deliveries, and by which words.

use crate::disposition::{Disposition, NotKept, Undelivered};
use semel::protocol::Ending;
use semel::run::Failed;
use semel::work::FailureKind;
use std::time::Duration;

/// What became of a delivery, in as few words as a chart has colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Became {
    /// It ran, and took effect.
    Ran,
    /// The work had succeeded before, and its answer was told again: an effect that was not repeated.
    Replayed,
    /// The work had failed for good before, and its sender heard so again.
    FailedBefore,
    /// The same work was running or not due, or too much was in hand: its sender comes again.
    Busy,
    /// It ran and failed.
    Failed,
    /// It ran, and may or may not have taken effect.
    InDoubt,
    /// A person must look first.
    Parked,
    /// Its key stands for other work.
    Mismatched,
    /// It can have no key.
    Invalid,
    /// The gate could not do its part: no store, no room, not recorded, overtaken.
    Refused,
}

/// How many deliveries came to what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    became: [u64; Became::ALL.len()],
    /// How many of them ran nothing because the same work was settled, running or not due.
    pub(crate) duplicates: u64,
}

/// How late duplicates come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lateness([u64; Late::ALL.len()]);

/// How long after the first delivery of its work a duplicate came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Late {
    Second,
    Minute,
    TenMinutes,
    Hour,
    SixHours,
    Day,
    More,
    /// The first one was not seen by this gate, or too long ago, and its sender does not say when it was published.
    Unknown,
}

// === impl Became ===

impl Became {
    pub(crate) const ALL: [Self; 10] = [
        Self::Ran,
        Self::Replayed,
        Self::FailedBefore,
        Self::Busy,
        Self::Failed,
        Self::InDoubt,
        Self::Parked,
        Self::Mismatched,
        Self::Invalid,
        Self::Refused,
    ];

    pub(crate) fn of(disposition: &Disposition) -> Self {
        match disposition {
            Disposition::Ran(recorded) if recorded.ending == Ending::Failed => Self::Failed,
            Disposition::Ran(_) => Self::Ran,
            Disposition::Replayed(recorded) if recorded.ending == Ending::Failed => {
                Self::FailedBefore
            }
            Disposition::Replayed(_) => Self::Replayed,
            Disposition::Retryable(failed) => Self::of_failed(failed),
            Disposition::Running { .. }
            | Disposition::Busy { .. }
            | Disposition::NotYet { .. }
            | Disposition::Full { .. } => Self::Busy,
            Disposition::Parked => Self::Parked,
            Disposition::Mismatched => Self::Mismatched,
            Disposition::Invalid(_) | Disposition::Fault(_) => Self::Invalid,
            Disposition::Unrecorded(_)
            | Disposition::Unread
            | Disposition::Stale
            | Disposition::FaultNotLanded(_)
            | Disposition::Store(_)
            | Disposition::NoRoom
            | Disposition::NotKept(_, NotKept::Full) => Self::Refused,
            Disposition::Letter(why)
            | Disposition::NotKept(why, NotKept::Unsettled | NotKept::Store) => {
                Self::of_undelivered(why)
            }
        }
    }

    fn of_failed(failed: &Failed) -> Self {
        match failed.failure.kind {
            FailureKind::InDoubt | FailureKind::StillInDoubt | FailureKind::Park => Self::InDoubt,
            FailureKind::NotStarted
            | FailureKind::Withdrawn
            | FailureKind::Retryable
            | FailureKind::Final => Self::Failed,
        }
    }

    fn of_undelivered(why: &Undelivered) -> Self {
        match why {
            Undelivered::Failed(_) => Self::Failed,
            Undelivered::FailedBefore(_) => Self::FailedBefore,
            Undelivered::Parked(_) | Undelivered::ParkedBefore => Self::Parked,
            Undelivered::Mismatched => Self::Mismatched,
            Undelivered::Invalid(_) => Self::Invalid,
            Undelivered::Exhausted(it) => Self::of(it),
        }
    }

    /// Its place in [`ALL`](Self::ALL).
    const fn place(self) -> usize {
        self as usize
    }
}

// === impl Counts ===

impl Counts {
    pub(super) fn add(&mut self, became: Became, is_duplicate: bool) {
        if let Some(count) = self.became.get_mut(became.place()) {
            *count += 1;
        }
        self.duplicates += u64::from(is_duplicate);
    }

    pub(crate) fn of(&self, became: Became) -> u64 {
        self.became.get(became.place()).copied().unwrap_or_default()
    }

    /// These and those.
    pub(crate) fn plus(&self, other: &Self) -> Self {
        let mut sum = *self;
        for (count, more) in sum.became.iter_mut().zip(other.became) {
            *count += more;
        }
        sum.duplicates += other.duplicates;
        sum
    }

    #[cfg(test)]
    pub(crate) fn of_one(became: Became) -> Self {
        let mut counts = Self::default();
        counts.add(became, false);
        counts
    }

    /// Deliveries of work that had succeeded, answered from its record.
    pub(crate) fn not_repeated(&self) -> u64 {
        self.of(Became::Replayed)
    }

    /// All deliveries.
    pub(crate) fn sum(&self) -> u64 {
        self.became.iter().sum()
    }
}

// === impl Lateness ===

impl Lateness {
    pub(super) fn add(&mut self, late: Option<Duration>) {
        if let Some(count) = self.0.get_mut(Late::of(late) as usize) {
            *count += 1;
        }
    }

    /// Each span with its count, in the order of [`Late::ALL`].
    pub(crate) fn all(&self) -> impl Iterator<Item = (Late, u64)> {
        Late::ALL.into_iter().zip(self.0)
    }
}

// === impl Late ===

impl Late {
    pub(crate) const ALL: [Self; 8] = [
        Self::Second,
        Self::Minute,
        Self::TenMinutes,
        Self::Hour,
        Self::SixHours,
        Self::Day,
        Self::More,
        Self::Unknown,
    ];

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Second => "< 1 s",
            Self::Minute => "< 1 min",
            Self::TenMinutes => "< 10 min",
            Self::Hour => "< 1 h",
            Self::SixHours => "< 6 h",
            Self::Day => "< 24 h",
            Self::More => "24 h or more",
            Self::Unknown => "not known",
        }
    }

    fn of(late: Option<Duration>) -> Self {
        match late.map(|late| late.as_secs()) {
            None => Self::Unknown,
            Some(0) => Self::Second,
            Some(1..60) => Self::Minute,
            Some(60..600) => Self::TenMinutes,
            Some(600..3_600) => Self::Hour,
            Some(3_600..21_600) => Self::SixHours,
            Some(21_600..86_400) => Self::Day,
            Some(86_400..) => Self::More,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_has_its_own_counter() {
        let mut counts = Counts::default();
        for became in Became::ALL {
            counts.add(became, became == Became::Replayed);
        }
        assert!(Became::ALL.iter().all(|became| counts.of(*became) == 1));
        assert_eq!((counts.sum(), counts.duplicates), (10, 1));
        assert_eq!(counts.of(Became::Refused), 1);
    }

    #[test]
    fn lateness_is_told_apart_up_to_a_day() {
        let mut lateness = Lateness::default();
        for seconds in [0, 59, 60, 3_599, 21_599, 86_399, 86_400] {
            lateness.add(Some(Duration::from_secs(seconds)));
        }
        lateness.add(None);
        assert!(lateness.all().all(|(_, count)| count == 1), "{lateness:?}");
    }
}
