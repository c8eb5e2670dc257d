//! The limits on repeating: when a run that did not succeed was the last one before a person must look.

use super::{Claim, Fail, Record};
use crate::clock::Time;
use std::num::NonZeroU32;
use std::time::Duration;

/// How many runs there must have been before `park_after` parks: work that is old because nobody tried it is tried.
pub const PARK_AFTER_ATTEMPTS: u32 = 5;

/// Limit on runs that end in doubt. Both conditions must hold: an outage makes many doubts at once, and says nothing of the
/// work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DoubtLimit {
    /// Number of runs in doubt.
    pub runs: NonZeroU32,
    /// Minimum age of the first doubt.
    pub age: Duration,
}

/// The limits that a claim or a failure names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    max_attempts: Option<NonZeroU32>,
    max_in_doubt: Option<DoubtLimit>,
    park_after: Option<Duration>,
}

// === impl Limits ===

impl Limits {
    pub(super) const fn of_claim(claim: &Claim) -> Self {
        Self {
            max_attempts: claim.max_attempts,
            max_in_doubt: claim.max_in_doubt,
            park_after: claim.park_after,
        }
    }

    pub(super) const fn of_failure(how: &Fail) -> Self {
        Self {
            max_attempts: how.max_attempts,
            max_in_doubt: how.max_in_doubt,
            park_after: how.park_after,
        }
    }

    /// Whether a record whose run has just ended is not to be run again unasked.
    pub(super) fn are_reached(&self, record: &Record, now: Time) -> bool {
        reached(record.attempts, self.max_attempts)
            || (record.in_doubt
                && self
                    .max_in_doubt
                    .is_some_and(|max| max.is_reached(record, now)))
            || self.park_after.is_some_and(|after| {
                record.attempts >= PARK_AFTER_ATTEMPTS && record.age(now) >= after
            })
    }
}

fn reached(count: u32, max: Option<NonZeroU32>) -> bool {
    max.is_some_and(|max| count >= max.get())
}

// === impl DoubtLimit ===

impl DoubtLimit {
    fn is_reached(self, record: &Record, now: Time) -> bool {
        let doubted_for = record.doubted_at.map(|first| now.since(first));
        record.doubts >= self.runs.get() && doubted_for >= Some(self.age)
    }
}

// === impl Record ===

impl Record {
    /// How long ago this incarnation began: its first fence is a time of the store's clock.
    pub(super) fn age(&self, now: Time) -> Duration {
        now.since(Time(self.born.0))
    }
}
