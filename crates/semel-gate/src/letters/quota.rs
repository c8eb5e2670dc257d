//! The quota of a route: how many letters, and how many bytes of them, the store may keep for it.
//!
//! What the store keeps is counted once a minute (`reconcile`); in between, each gate adds what it put itself. So
//! several gates on one store may exceed a quota together, each by what it puts within a minute.

use crate::rate_limited_log::RateLimitedLog;
use crate::settings::LetterLimits;
use semel::letter::{Attempt, LetterHead, Reason};
use std::sync::{Mutex, MutexGuard};

/// The quota of one route, and what is known to be used of it.
#[derive(Debug)]
pub(crate) struct Quota {
    limits: LetterLimits,
    used: Mutex<Used>,
}

/// Room for one letter; given back unless it was used.
#[derive(Debug)]
#[must_use]
pub(crate) struct QuotaReservation<'a> {
    quota: &'a Quota,
    letter: Option<Count>,
}

/// How many letters there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    all: Load,
    /// Those among them that anybody can cause who can deliver: invalid and mismatched ones.
    unasked: Load,
    /// Number of them that only an operator can finish.
    for_operator: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Load {
    letters: u64,
    bytes: u64,
}

#[derive(Debug, Default)]
struct Used {
    /// What reconciliation counted.
    stored: Count,
    /// What this gate put since.
    since: Count,
    alarm: RateLimitedLog,
}

/// Part of the quota that is reserved for attempts that may be the last: other senders deliver again.
const RESERVED_PART: u64 = 4;

// === impl Quota ===

impl Quota {
    pub(crate) fn new(limits: LetterLimits) -> Self {
        Self {
            limits,
            used: Mutex::default(),
        }
    }

    /// Room for a letter; `None` when there is none. A quarter is reserved for attempts that may be the last.
    pub(crate) fn take(&self, letter: Count, attempt: Attempt) -> Option<QuotaReservation<'_>> {
        let mut used = self.lock();
        if !self.limits.hold(used.sum().plus(letter), attempt) {
            return None;
        }
        used.since = used.since.plus(letter);
        Some(QuotaReservation {
            quota: self,
            letter: Some(letter),
        })
    }

    /// Whether work that is given up now could be kept as a letter of this many bytes. While it could not, nothing is given
    /// up.
    pub(crate) fn has_room(&self, bytes: u64, attempt: Attempt) -> bool {
        let letter = Count::of(Reason::Parked, bytes);
        self.limits.hold(self.lock().sum().plus(letter), attempt)
    }

    /// A letter that this gate put is closed again.
    pub(crate) fn closed(&self, letter: Count) {
        let mut used = self.lock();
        used.since = used.since.minus(letter);
    }

    /// What this gate put since the last count.
    pub(crate) fn since(&self) -> Count {
        self.lock().since
    }

    /// Learns what the store keeps. `before` is what this gate had put when the count began: that is
    /// in it.
    pub(crate) fn counted(&self, stored: Count, before: Count) {
        let mut used = self.lock();
        used.stored = stored;
        used.since = used.since.minus(before);
    }

    /// Whether the full quota is to be told in the log now; the next time is a minute later.
    pub(crate) fn alarms(&self) -> bool {
        self.lock().alarm.is_due()
    }

    pub(crate) const fn limits(&self) -> LetterLimits {
        self.limits
    }

    fn lock(&self) -> MutexGuard<'_, Used> {
        self.used.lock().expect("no holder of this lock panics")
    }
}

impl LetterLimits {
    fn hold(&self, count: Count, attempt: Attempt) -> bool {
        let within =
            |load: Load, letters: u64, bytes: u64| load.letters <= letters && load.bytes <= bytes;
        let reserved = match attempt {
            Attempt::OneOfMany => |max: u64| max / RESERVED_PART,
            Attempt::MayBeLast => |_: u64| 0,
        };
        let ordinary = |max: u64| max - reserved(max);
        within(
            count.all,
            ordinary(self.count_max),
            ordinary(self.bytes_max),
        ) && within(count.unasked, self.count_max / 2, self.bytes_max / 2)
    }
}

// === impl QuotaReservation ===

impl QuotaReservation<'_> {
    /// The letter is in the store.
    pub(crate) fn used(mut self) {
        self.letter = None;
    }
}

impl Drop for QuotaReservation<'_> {
    fn drop(&mut self) {
        if let Some(letter) = self.letter {
            let mut used = self.quota.lock();
            used.since = used.since.minus(letter);
        }
    }
}

// === impl Used ===

impl Used {
    fn sum(&self) -> Count {
        self.stored.plus(self.since)
    }
}

// === impl Count ===

impl Count {
    /// One letter.
    pub(crate) fn of(reason: Reason, bytes: u64) -> Self {
        let one = Load { letters: 1, bytes };
        let unasked = if reason.is_of_own_key() {
            Load::default()
        } else {
            one
        };
        Self {
            all: one,
            unasked,
            for_operator: 0,
        }
    }

    /// One letter of a list.
    pub(crate) fn of_head(head: &LetterHead) -> Self {
        Self {
            for_operator: u64::from(head.is_for_operator()),
            ..Self::of(head.reason, head.bytes)
        }
    }

    #[must_use]
    pub(crate) fn plus(self, other: Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    fn minus(self, other: Self) -> Self {
        self.with(other, u64::saturating_sub)
    }

    fn with(self, other: Self, calculate: fn(u64, u64) -> u64) -> Self {
        let load = |one: Load, other: Load| Load {
            letters: calculate(one.letters, other.letters),
            bytes: calculate(one.bytes, other.bytes),
        };
        Self {
            all: load(self.all, other.all),
            unasked: load(self.unasked, other.unasked),
            for_operator: calculate(self.for_operator, other.for_operator),
        }
    }

    pub(crate) const fn letters(self) -> u64 {
        self.all.letters
    }

    pub(crate) const fn bytes(self) -> u64 {
        self.all.bytes
    }

    pub(crate) const fn for_operator(self) -> u64 {
        self.for_operator
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota(count_max: u64, bytes_max: u64) -> Quota {
        Quota::new(LetterLimits {
            count_max,
            bytes_max,
        })
    }

    fn put(quota: &Quota, reason: Reason, bytes: u64) -> bool {
        quota
            .take(Count::of(reason, bytes), Attempt::MayBeLast)
            .map(QuotaReservation::used)
            .is_some()
    }

    #[test]
    fn invalid_and_mismatched_letters_together_get_half_of_each() {
        for (quota, bytes) in [(quota(4, 1_000), 1), (quota(1_000, 4), 1)] {
            assert!(put(&quota, Reason::Invalid, bytes));
            assert!(put(&quota, Reason::Mismatched, bytes));
            assert!(!put(&quota, Reason::Invalid, bytes));
            assert!(!put(&quota, Reason::Mismatched, bytes));
            assert!(put(&quota, Reason::Parked, bytes));
            assert!(quota.has_room(bytes, Attempt::MayBeLast));
            assert!(put(&quota, Reason::Failed, bytes));
            assert!(!quota.has_room(bytes, Attempt::MayBeLast));
            assert!(!put(&quota, Reason::Parked, bytes));
        }
    }

    #[test]
    fn room_that_was_not_used_is_given_back() {
        let quota = quota(1, 1_000);
        drop(quota.take(Count::of(Reason::Parked, 10), Attempt::MayBeLast));
        assert_eq!(quota.since(), Count::default());
        assert!(put(&quota, Reason::Parked, 10));
        quota.closed(Count::of(Reason::Parked, 10));
        assert!(put(&quota, Reason::Parked, 10));
    }

    #[test]
    fn a_count_covers_what_was_put_before_it_began() {
        let quota = quota(3, 1_000);
        assert!(put(&quota, Reason::Parked, 10));
        let before = quota.since();
        // Put during a count: it may or may not have been seen, so it counts.
        assert!(put(&quota, Reason::Parked, 20));
        quota.counted(Count::of(Reason::Parked, 10), before);
        assert_eq!(quota.lock().sum().letters(), 2);
        assert_eq!(quota.lock().sum().bytes(), 30);
        quota.counted(Count::default(), quota.since());
        assert!(quota.has_room(1_000, Attempt::MayBeLast));
    }

    #[test]
    fn a_quarter_is_reserved_for_attempts_that_may_be_the_last() {
        for (quota, bytes) in [(quota(8, 1_000), 1), (quota(1_000, 8), 1)] {
            let put = |attempt| {
                let room = quota.take(Count::of(Reason::Unfinished, bytes), attempt);
                room.map(QuotaReservation::used).is_some()
            };
            assert!((0..6).all(|_| put(Attempt::OneOfMany)));
            assert!(!put(Attempt::OneOfMany) && !quota.has_room(bytes, Attempt::OneOfMany));
            assert!((0..2).all(|_| put(Attempt::MayBeLast)));
            assert!(!put(Attempt::MayBeLast));
        }
        assert!(quota(1, 1_000).has_room(1, Attempt::OneOfMany));
    }
}
