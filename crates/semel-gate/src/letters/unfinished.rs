//! Unfinished work: the moments at which its delivery becomes a letter. A sender may give up before the work has succeeded, and
//! from then on the letter alone holds it.
//!
//! A sender that delivers once, or does not count, may give up after any attempt, so its letter is durable before the run is
//! sent. One that counts has a letter from the first run that ends without success. One without a limit has a letter once half
//! of the time for which it delivers is over, and may give up at any time in the last tenth of it.

use crate::flow::Flow;
use crate::settings::Redelivery;
use jiff::Timestamp;
use semel::letter::{Attempt, LetterId};
use std::collections::{HashSet, VecDeque};
use std::sync::Mutex;
use std::time::Duration;

/// A moment of a delivery at which its work is unfinished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Its run is about to be sent.
    BeforeRun,
    /// Its run is still going at half of the sender's deadline.
    StillRunning,
    /// It was refused before a run.
    Refused,
    /// Its run has ended without success.
    Ended,
}

/// Memory of letters that are known to be open: a duplicate of their work need not ask the store. The oldest are dropped, which
/// costs a call; once a minute the keeper drops those that were closed elsewhere.
#[derive(Debug, Default)]
pub(crate) struct OpenLetters {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    ids: HashSet<LetterId>,
    order: VecDeque<LetterId>,
}

/// Number of letters that are remembered per route: as many as its default quota holds.
const KNOWN_MAX: usize = 10_000;

/// Attempts of a sender without a limit that count as a tenth of its time, where it says no time: the pauses of a queue
/// double, so that 15 attempts reach its longest pause.
const ATTEMPTS_OF_A_TENTH: u64 = 3;

/// Tenths of the time for which a sender delivers, from which on its unfinished work has a letter, and from which on any attempt
/// may be its last.
const LETTER_TENTHS: u32 = 5;
const MAY_BE_LAST_TENTHS: u32 = 9;

// === impl Flow ===

impl Flow {
    /// The number of attempts of this delivery's sender, by its route and by the delivery itself.
    pub(crate) fn redelivery(&self) -> Redelivery {
        let terms = self.route.settings.terms(self.source);
        Redelivery::of_delivery(self.source, terms.sender_attempts, &self.transport)
    }

    /// The expectation that its sender delivers it again.
    pub(crate) fn attempt(&self) -> Attempt {
        let redelivery = self.redelivery();
        let is_unlimited = redelivery == Redelivery::Unlimited;
        if is_unlimited && self.is_delivered_for(MAY_BE_LAST_TENTHS) {
            return Attempt::MayBeLast;
        }
        redelivery.attempt(self.transport.attempt())
    }

    /// Whether its sender is known not to deliver it again.
    pub(crate) fn is_last_attempt(&self) -> bool {
        self.redelivery().is_last(self.transport.attempt())
    }

    /// Whether its unfinished work needs a letter at this moment.
    pub(crate) fn needs_letter(&self, moment: Moment) -> bool {
        let route = &self.route.settings;
        if !self.source.is_broker() || !route.keeps_records() || self.is_redrive {
            return false;
        }
        if self.attempt() == Attempt::MayBeLast {
            return true;
        }
        match (self.redelivery(), moment) {
            (_, Moment::BeforeRun) => false,
            (Redelivery::Counted(most), Moment::Refused) => {
                let number = self.transport.attempt().unwrap_or(u64::MAX);
                number.saturating_mul(2) >= u64::from(most)
            }
            (Redelivery::Counted(_), Moment::StillRunning | Moment::Ended) => true,
            (_, Moment::StillRunning) => {
                route.terms(self.source).outlasts_sender() || self.is_delivered_for(LETTER_TENTHS)
            }
            (_, Moment::Ended) => self.is_delivered_for(LETTER_TENTHS),
            // Nothing else would ever tell that the sender's time is over.
            (_, Moment::Refused) if self.is_bounded() && !self.has_age() => true,
            (_, Moment::Refused) => self.is_delivered_for(LETTER_TENTHS),
        }
    }

    /// Returns whether this number of tenths of its sender's time is over.
    #[allow(
        clippy::disallowed_methods,
        reason = "publish times and births are compared with the wall clock, to within hours"
    )]
    fn is_delivered_for(&self, tenths: u32) -> bool {
        let Some(delivers_for) = self.route.settings.terms(self.source).delivers_for else {
            return false;
        };
        let Some(first) = self.first_delivery() else {
            let attempts = ATTEMPTS_OF_A_TENTH * u64::from(tenths);
            return self.transport.attempt() >= Some(attempts);
        };
        let Some(now) = micros(Timestamp::now()) else {
            return false;
        };
        Duration::from_micros(now.saturating_sub(first)) >= delivers_for / 10 * tenths
    }

    /// The publish time, or the first run's, in microseconds.
    fn first_delivery(&self) -> Option<u64> {
        let published = self.transport.published_at.and_then(micros);
        let born = self.lease.as_ref().map(|lease| lease.born.0);
        published.into_iter().chain(born).min()
    }

    /// Returns whether it is known for how long its sender delivers.
    fn is_bounded(&self) -> bool {
        let terms = self.route.settings.terms(self.source);
        terms.delivers_for.is_some()
    }

    /// Returns whether anything tells how long it has been delivered: a time, or the number of its attempt.
    fn has_age(&self) -> bool {
        self.first_delivery().is_some() || self.transport.attempt().is_some()
    }
}

fn micros(time: Timestamp) -> Option<u64> {
    u64::try_from(time.as_microsecond()).ok()
}

// === impl Moment ===

impl Moment {
    /// The sentence on a letter that is kept then. It says nothing of what happens later: the record does.
    pub(crate) const fn why(self) -> &'static str {
        match self {
            Self::BeforeRun => "kept before its run",
            Self::StillRunning => "kept while its run was going",
            Self::Refused => "kept after a delivery that began no run",
            Self::Ended => "kept after a run that recorded no success",
        }
    }
}

// === impl OpenLetters ===

impl OpenLetters {
    pub(crate) fn note(&self, id: LetterId) {
        let mut known = self.lock();
        if known.ids.insert(id) {
            known.order.push_back(id);
        }
        if known.order.len() > KNOWN_MAX
            && let Some(oldest) = known.order.pop_front()
        {
            known.ids.remove(&oldest);
        }
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<LetterId> {
        self.lock().ids.iter().copied().collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().ids.is_empty()
    }

    pub(crate) fn has(&self, id: &LetterId) -> bool {
        self.lock().ids.contains(id)
    }

    pub(crate) fn drop(&self, id: &LetterId) {
        // Its place in the order stays until its turn comes.
        self.lock().ids.remove(id);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().expect("no holder of this lock panics")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_letters_are_dropped_first() {
        let open = OpenLetters::default();
        let id = |number: usize| {
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&number.to_be_bytes());
            LetterId(bytes)
        };
        for number in 0..=KNOWN_MAX {
            open.note(id(number));
        }
        assert!(!open.has(&id(0)));
        assert!(open.has(&id(1)) && open.has(&id(KNOWN_MAX)));
        open.drop(&id(1));
        assert!(!open.has(&id(1)));
        assert_eq!(open.lock().order.len(), KNOWN_MAX);
    }
}
