//! The decision to keep a delivery as a letter, by the record of its key.

use super::Reason;
use crate::Fingerprint;
use crate::record::{Fence, Record, State};

/// The verdict of a record on a delivery that is about to be acknowledged without success, or may be its sender's last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepDecision {
    /// Keep it for this reason, under this fence.
    Keep(Reason, Fence),
    /// Its work has succeeded meanwhile: there is nothing to keep.
    Succeeded,
    /// The outcome that the delivery met is not decided yet, or has changed: its sender must keep it.
    Unsettled,
}

/// Expectation that the sender delivers again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// The sender delivers again until it is acknowledged.
    OneOfMany,
    /// This may be the sender's last attempt.
    MayBeLast,
}

// === impl KeepDecision ===

impl KeepDecision {
    /// Decides by the record of the delivery's key. `ran` is the fence of the delivery's own run, if it ran.
    #[must_use]
    pub fn of(
        reason: Reason,
        record: Option<&Record>,
        fingerprint: &Fingerprint,
        ran: Option<Fence>,
        attempt: Attempt,
    ) -> Self {
        let Some(record) = record else {
            return Self::without_record(reason, ran, attempt);
        };
        if record.fingerprint != *fingerprint {
            return Self::of_other_work(reason, record, attempt);
        }
        match (reason, record.state) {
            (Reason::Parked | Reason::Failed | Reason::Unfinished, State::Succeeded) => {
                Self::Succeeded
            }
            // The record is of this very work by now.
            (Reason::Mismatched, _) => match attempt {
                Attempt::OneOfMany => Self::Unsettled,
                Attempt::MayBeLast if record.state == State::Succeeded => Self::Succeeded,
                Attempt::MayBeLast => Self::Keep(Reason::Unfinished, record.fence),
            },
            (Reason::Parked | Reason::Failed | Reason::Invalid | Reason::Unfinished, _) => {
                Self::Keep(reason, record.fence)
            }
        }
    }

    /// Without a fence a letter cannot be told from a duplicate of one that was closed. A last attempt leaves that to the
    /// store, which keeps what it has no tombstone of.
    fn without_record(reason: Reason, ran: Option<Fence>, attempt: Attempt) -> Self {
        match (ran, reason, attempt) {
            (Some(fence), _, _) => Self::Keep(reason, fence),
            (None, Reason::Invalid | Reason::Unfinished, _) => Self::Keep(reason, Fence(0)),
            (None, _, Attempt::MayBeLast) => Self::Keep(Reason::Unfinished, Fence(0)),
            (None, _, Attempt::OneOfMany) => Self::Unsettled,
        }
    }

    /// The key's record is of other work: this delivery is a mismatch. Unfinished work keeps the only delivery that carries
    /// it, so its sender keeps this one too, while it delivers again.
    fn of_other_work(reason: Reason, record: &Record, attempt: Attempt) -> Self {
        match (reason, record.state, attempt) {
            (Reason::Mismatched, State::Running | State::Waiting, Attempt::OneOfMany) => {
                Self::Unsettled
            }
            (Reason::Mismatched | Reason::Unfinished, _, _) => {
                Self::Keep(Reason::Mismatched, record.fence)
            }
            (Reason::Parked | Reason::Failed | Reason::Invalid, _, _) => {
                Self::Keep(reason, record.fence)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Time;
    use crate::record::Owner;
    use bytes::Bytes;

    const RAN: Fence = Fence(3);
    const RECORD: Fence = Fence(7);
    const STATES: [State; 5] = [
        State::Running,
        State::Waiting,
        State::Failed,
        State::Parked,
        State::Succeeded,
    ];

    /// Verdicts: the first letter of the reason to keep it for, `s` for succeeded, `-` for unsettled. Columns: no record and no
    /// run; no record of its own run; records of its work in each of [`STATES`]; records of other work in each of them.
    const TABLE: [(Reason, Attempt, &str); 10] = [
        (Reason::Parked, Attempt::OneOfMany, "- p pppps ppppp"),
        (Reason::Parked, Attempt::MayBeLast, "u p pppps ppppp"),
        (Reason::Failed, Attempt::OneOfMany, "- f ffffs fffff"),
        (Reason::Failed, Attempt::MayBeLast, "u f ffffs fffff"),
        (Reason::Mismatched, Attempt::OneOfMany, "- m ----- --mmm"),
        (Reason::Mismatched, Attempt::MayBeLast, "u m uuuus mmmmm"),
        (Reason::Invalid, Attempt::OneOfMany, "i i iiiii iiiii"),
        (Reason::Invalid, Attempt::MayBeLast, "i i iiiii iiiii"),
        (Reason::Unfinished, Attempt::OneOfMany, "u u uuuus mmmmm"),
        (Reason::Unfinished, Attempt::MayBeLast, "u u uuuus mmmmm"),
    ];

    fn record(state: State, payload: &[u8]) -> Record {
        Record {
            fingerprint: Fingerprint::of(payload),
            state,
            attempts: 1,
            doubts: 0,
            doubted_at: None,
            in_doubt: false,
            acts_until: None,
            born: RECORD,
            fence: RECORD,
            owner: Owner([0; 16]),
            lease_until: Time(0),
            expires_at: Time(0),
            result: None,
            label: Bytes::new(),
            history: Vec::new(),
        }
    }

    fn word(verdict: KeepDecision, fence: Fence) -> char {
        match verdict {
            KeepDecision::Keep(reason, kept_under) => {
                assert_eq!(kept_under, fence, "{reason:?}");
                reason.word().chars().next().unwrap()
            }
            KeepDecision::Succeeded => 's',
            KeepDecision::Unsettled => '-',
        }
    }

    #[test]
    fn every_verdict_is_as_in_the_table() {
        for (reason, attempt, expected) in TABLE {
            let of = |record: Option<&Record>, ran, fence| {
                let mine = Fingerprint::of(b"mine");
                word(KeepDecision::of(reason, record, &mine, ran, attempt), fence)
            };
            let of_records = |payload: &'static [u8]| {
                let of_state = move |state| {
                    let record = record(state, payload);
                    let verdict = of(Some(&record), None, RECORD);
                    let after_a_run = of(Some(&record), Some(RAN), RECORD);
                    assert_eq!(verdict, after_a_run, "{reason:?} {attempt:?} {state}");
                    verdict
                };
                STATES.map(of_state).iter().collect::<String>()
            };
            let verdicts = format!(
                "{} {} {} {}",
                of(None, None, Fence(0)),
                of(None, Some(RAN), RAN),
                of_records(b"mine"),
                of_records(b"another's"),
            );
            assert_eq!(verdicts, expected, "{reason:?} {attempt:?}");
        }
    }
}
