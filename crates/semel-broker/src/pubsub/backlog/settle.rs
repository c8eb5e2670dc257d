//! How deliveries end: acknowledged, refused, extended, late.

use super::{Backlog, Kept, Out, Place, Standing};
use crate::clock::Time;
use std::time::Duration;

/// What became of one acknowledgement, refusal or extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Fate {
    /// The message is leaving: write that down, then say so with [`Backlog::left`].
    Leaves,
    /// There is nothing to write down.
    Done,
    /// With exactly-once delivery: this delivery does not count any more.
    Invalid,
}

/// A delivery that ended, for the history.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) struct Ended {
    pub(in super::super) dispatches: Vec<u64>,
    pub(in super::super) since: Time,
    pub(in super::super) end: End,
}

/// How a delivery ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum End {
    Acknowledged,
    /// It was acknowledged, and a fault made that go unheard.
    Unheard,
    Refused,
    Late,
}

// === impl Backlog ===

impl Backlog {
    /// A delivery is acknowledged.
    pub(in super::super) fn acknowledge(
        &mut self,
        place: Place,
        delivery: u64,
        now: Time,
    ) -> (Fate, Option<Ended>) {
        let exactly_once = self.rules.exactly_once;
        let Some(kept) = self.messages.get_mut(&place) else {
            return (unknown(exactly_once), None);
        };
        let current = kept.is_current(delivery);
        match &mut kept.standing {
            Standing::Leaving if exactly_once && delivery != kept.delivery => (Fate::Invalid, None),
            // Its end is not in storage yet: whoever says so again waits for that too.
            Standing::Leaving => (Fate::Leaves, None),
            Standing::Dying => (unknown(exactly_once), None),
            Standing::Acknowledged => (unknown(exactly_once), None),
            Standing::Waiting if exactly_once => (Fate::Invalid, None),
            // It was called back behind one that was refused: it is delivered again, after that one.
            Standing::Waiting if self.line.is_behind(place, kept.key.as_ref()) => {
                (Fate::Done, None)
            }
            Standing::Outstanding(_) if exactly_once && !current => (Fate::Invalid, None),
            Standing::Outstanding(_)
                if !current && self.line.is_behind(place, kept.key.as_ref()) =>
            {
                (Fate::Done, None)
            }
            Standing::Outstanding(out) if current && out.plan.lose_answer => {
                let ended = out.ended(End::Unheard);
                (Fate::Done, Some(ended))
            }
            Standing::Outstanding(out) if current && out.plan.duplicate => {
                let ended = out.ended(End::Acknowledged);
                kept.duplicated = true;
                drop(self.call_back(place));
                self.wait(place, now);
                (Fate::Done, Some(ended))
            }
            Standing::Waiting | Standing::Outstanding(_) => {
                let out = self.call_back(place);
                self.leave(place);
                (
                    Fate::Leaves,
                    out.map(|mut out| out.ended(End::Acknowledged)),
                )
            }
        }
    }

    /// Waiting or not, it is nobody's until its end is written down.
    fn leave(&mut self, place: Place) {
        let Some(kept) = self.messages.get_mut(&place) else {
            return;
        };
        if let Standing::Waiting = kept.standing {
            self.line.gone(place, kept.key.as_ref());
        }
        kept.standing = Standing::Leaving;
    }

    /// What was leaving has left: it is written down.
    pub(in super::super) fn left(&mut self, place: Place) {
        if !self.rules.retain_acked {
            self.forget(place);
            return;
        }
        let Some(kept) = self.messages.get_mut(&place) else {
            return;
        };
        if !matches!(kept.standing, Standing::Acknowledged) {
            kept.standing = Standing::Acknowledged;
            self.line.gone(place, kept.key.as_ref());
            self.unfinished = self.unfinished.saturating_sub(1);
        }
    }

    /// A delivery is refused: the message is available again, perhaps after a pause.
    pub(in super::super) fn refuse(
        &mut self,
        place: Place,
        delivery: u64,
        now: Time,
    ) -> (Fate, Vec<Ended>) {
        let fate = self.fate(place, delivery);
        if !self.is_out(place, delivery) {
            return (fate, Vec::new());
        }
        (fate, self.give_back(place, End::Refused, now))
    }

    /// A delivery has until `now + span`.
    pub(in super::super) fn extend(
        &mut self,
        place: Place,
        delivery: u64,
        span: Duration,
        now: Time,
    ) -> Fate {
        let fate = self.fate(place, delivery);
        if !self.is_out(place, delivery) {
            return fate;
        }
        let Some(kept) = self.messages.get_mut(&place) else {
            return fate;
        };
        if let Standing::Outstanding(out) = &mut kept.standing
            && out.plan.overlap.is_none()
            && let Some(deadline) = out.deadline.replace(now.plus(span))
        {
            self.deadlines.remove(&(deadline, place));
            self.deadlines.insert((now.plus(span), place));
        }
        fate
    }

    /// Everything whose deadline passed is available again.
    pub(in super::super) fn expire(&mut self, now: Time) -> Vec<Ended> {
        let mut ended = Vec::new();
        while let Some((deadline, place)) = self.deadlines.first().copied() {
            if deadline > now {
                break;
            }
            ended.extend(self.give_back(place, End::Late, now));
            self.deadlines.remove(&(deadline, place));
        }
        ended
    }

    /// Nothing is left; answers what was outstanding.
    pub(in super::super) fn abandon(&mut self) -> Vec<Ended> {
        let fresh = Self::new(self.rules, self.deliveries);
        let Self { messages, .. } = std::mem::replace(self, fresh);
        let ended = messages.into_values().filter_map(|kept| kept.ended());
        ended.collect()
    }

    /// How many attempts it had.
    pub(in super::super) fn attempts(&self, place: Place) -> u32 {
        self.messages.get(&place).map_or(0, |kept| kept.attempts)
    }

    /// It waits again, and so does everything after it in the order of its key.
    fn give_back(&mut self, place: Place, end: End, now: Time) -> Vec<Ended> {
        let Some(mut out) = self.call_back(place) else {
            return Vec::new();
        };
        let mut ended = vec![out.ended(end)];
        ended.extend(self.call_back_after(place, now));
        let attempts = self.attempts(place);
        if self.rules.attempts_max.is_some_and(|max| attempts >= max) {
            self.die(place);
        } else {
            let pause = self.pause(attempts);
            self.wait(place, now.plus(pause));
        }
        ended
    }

    /// What is outstanding and comes after this one in the order of its key waits again.
    pub(super) fn call_back_after(&mut self, place: Place, now: Time) -> Vec<Ended> {
        let key = self.messages.get(&place).and_then(|it| it.key.as_ref());
        let mut ended = Vec::new();
        for later in self.line.out_after(place, key) {
            if let Some(mut out) = self.call_back(later) {
                ended.push(out.ended(End::Late));
                self.wait(later, now);
            }
        }
        ended
    }

    /// The pause after so many attempts.
    pub(super) fn pause(&self, attempts: u32) -> Duration {
        let Some((min, max)) = self.rules.retry else {
            return Duration::ZERO;
        };
        let doublings = attempts.saturating_sub(1).min(30);
        min.saturating_mul(1 << doublings).min(max)
    }

    fn is_out(&self, place: Place, delivery: u64) -> bool {
        self.messages.get(&place).is_some_and(|kept| {
            matches!(kept.standing, Standing::Outstanding(_)) && kept.is_current(delivery)
        })
    }

    fn fate(&self, place: Place, delivery: u64) -> Fate {
        match self.is_out(place, delivery) {
            true => Fate::Done,
            false => unknown(self.rules.exactly_once),
        }
    }
}

// === impl Kept ===

impl Kept {
    /// Whether this is the delivery, or one of the two, that is outstanding.
    fn is_current(&self, delivery: u64) -> bool {
        match &self.standing {
            Standing::Outstanding(out) => (out.delivery..=self.delivery).contains(&delivery),
            Standing::Waiting | Standing::Leaving | Standing::Dying | Standing::Acknowledged => {
                false
            }
        }
    }

    /// Its delivery, if it is outstanding: nobody waits for its end any more.
    fn ended(self) -> Option<Ended> {
        match self.standing {
            Standing::Outstanding(mut out) => Some(out.ended(End::Late)),
            Standing::Waiting | Standing::Leaving | Standing::Dying | Standing::Acknowledged => {
                None
            }
        }
    }
}

// === impl Out ===

impl Out {
    pub(super) fn ended(&mut self, end: End) -> Ended {
        Ended {
            dispatches: std::mem::take(&mut self.dispatches),
            since: self.since,
            end,
        }
    }
}

/// What is said of a delivery nobody knows any more.
fn unknown(exactly_once: bool) -> Fate {
    match exactly_once {
        true => Fate::Invalid,
        false => Fate::Done,
    }
}
