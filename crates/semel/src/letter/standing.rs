//! How a letter stands: derived from the record of its work, never written where keys settle.

use super::{Letter, LetterHead, LetterId, Reason};
use crate::Key;
use crate::clock::Time;
use crate::record::{Record, State};

/// How a letter stands, by the record of its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Its work has succeeded: the letter counts as closed.
    Succeeded,
    /// Its work has not succeeded; its record is in this state.
    Unfinished(State),
    /// Its work has never run.
    NotRun,
    /// Its work may have run, and its record is gone: nobody here knows what became of it.
    Unknown,
}

// === impl Standing ===

impl Standing {
    /// By a record of the letter's own work.
    fn by(record: &Record) -> Self {
        match record.state {
            State::Succeeded => Self::Succeeded,
            state @ (State::Running | State::Waiting | State::Failed | State::Parked) => {
                Self::Unfinished(state)
            }
        }
    }
}

// === impl LetterHead ===

impl LetterHead {
    /// The key under which its work runs: the delivery's own, or one of the letter's when the delivery
    /// had none or its key stands for other work.
    #[must_use]
    pub fn work_key(&self) -> Key {
        self.own_key().unwrap_or_else(|| self.id.redrive_key())
    }

    /// How it stands, by the record of its [`work_key`](Self::work_key).
    #[must_use]
    pub fn standing(&self, record: Option<&Record>) -> Standing {
        let has_run = self.redriven || self.own_key().is_some();
        match record.filter(|record| self.is_of(record)) {
            Some(record) => Standing::by(record),
            None if has_run => Standing::Unknown,
            None => Standing::NotRun,
        }
    }

    /// The key of a mismatched delivery, which stood for other work when the letter was put. Once the
    /// record of that work is gone, a duplicate of the delivery runs under it: whoever asks how the
    /// letter stands looks there, too.
    #[must_use]
    pub fn taken_key(&self) -> Option<Key> {
        match self.reason {
            Reason::Mismatched => self.key,
            Reason::Parked | Reason::Failed | Reason::Invalid | Reason::Unfinished => None,
        }
    }

    /// How it stands by the record of its [`taken_key`](Self::taken_key); `None` unless that record is
    /// of its own work. It goes before that of the [`work_key`](Self::work_key), unless that one has
    /// succeeded.
    #[must_use]
    pub fn standing_under_taken(&self, record: Option<&Record>) -> Option<Standing> {
        let (key, record) = (self.taken_key()?, record?);
        let is_own = LetterId::of_key(self.reason, &key, &record.fingerprint) == self.id;
        is_own.then(|| Standing::by(record))
    }

    /// The delivery's own key, if its work runs under it.
    fn own_key(&self) -> Option<Key> {
        self.key.filter(|_| self.reason.is_of_own_key())
    }

    /// Whether a record under its key is of its work: the key may stand for other work by now, and
    /// that one's success is not this one's. The id tells which payload the letter was kept for.
    fn is_of(&self, record: &Record) -> bool {
        self.own_key()
            .is_none_or(|key| LetterId::of_key(self.reason, &key, &record.fingerprint) == self.id)
    }
}

// === impl Letter ===

impl Letter {
    /// See [`LetterHead::work_key`].
    #[must_use]
    pub fn work_key(&self) -> Key {
        self.head(Time(0)).work_key()
    }

    /// See [`LetterHead::standing`].
    #[must_use]
    pub fn standing(&self, record: Option<&Record>) -> Standing {
        self.head(Time(0)).standing(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fingerprint;
    use crate::record::{Fence, Owner};

    fn record(state: State, payload: &[u8]) -> Record {
        Record {
            fingerprint: Fingerprint::of(payload),
            state,
            attempts: 1,
            doubts: 0,
            doubted_at: None,
            in_doubt: false,
            acts_until: None,
            born: Fence(1),
            fence: Fence(1),
            owner: Owner([0; 16]),
            lease_until: Time(0),
            expires_at: Time(0),
            result: None,
            label: bytes::Bytes::new(),
            history: Vec::new(),
        }
    }

    fn head(reason: Reason, redriven: bool) -> LetterHead {
        let key = Key::from_bytes([1; 32]);
        LetterHead {
            id: LetterId::of_key(reason, &key, &Fingerprint::of(b"mine")),
            key: Some(key),
            route: "orders".into(),
            reason,
            fence: Fence(1),
            redriven,
            alarmed: false,
            bytes: 0,
            created_at: Time(0),
        }
    }

    #[test]
    fn only_success_of_its_own_work_closes_a_letter() {
        let letter = head(Reason::Parked, false);
        let stands = |state| letter.standing(Some(&record(state, b"mine")));
        assert_eq!(stands(State::Succeeded), Standing::Succeeded);
        for state in [State::Running, State::Failed, State::Waiting, State::Parked] {
            assert_eq!(stands(state), Standing::Unfinished(state));
        }
        let other = record(State::Succeeded, b"another's");
        assert_eq!(letter.standing(Some(&other)), Standing::Unknown);
    }

    #[test]
    fn without_a_record_it_is_unknown_what_may_have_run() {
        for reason in Reason::ALL {
            assert_eq!(head(reason, true).standing(None), Standing::Unknown);
        }
        for reason in [Reason::Mismatched, Reason::Invalid] {
            assert_eq!(head(reason, false).standing(None), Standing::NotRun);
        }
        for reason in Reason::ALL.into_iter().filter(|it| it.is_of_own_key()) {
            assert_eq!(head(reason, false).standing(None), Standing::Unknown);
        }
    }

    #[test]
    fn a_mismatched_letter_stands_by_its_own_work_under_its_key_alone() {
        let letter = head(Reason::Mismatched, false);
        let stands = |record: &Record| letter.standing_under_taken(Some(record));
        let own = record(State::Succeeded, b"mine");
        assert_eq!(stands(&own), Some(Standing::Succeeded));
        for state in [State::Running, State::Failed, State::Waiting, State::Parked] {
            let own = record(state, b"mine");
            assert_eq!(stands(&own), Some(Standing::Unfinished(state)));
        }
        assert_eq!(stands(&record(State::Succeeded, b"another's")), None);
        assert_eq!(letter.standing_under_taken(None), None);
        let others = Reason::ALL
            .into_iter()
            .filter(|it| *it != Reason::Mismatched);
        for reason in others {
            assert_eq!(head(reason, false).standing_under_taken(Some(&own)), None);
        }
    }

    #[test]
    fn work_without_a_key_of_its_own_runs_under_the_letters() {
        let key = Key::from_bytes([1; 32]);
        assert_eq!(head(Reason::Failed, false).work_key(), key);
        let letter = head(Reason::Mismatched, false);
        assert_eq!(letter.work_key(), letter.id.redrive_key());
        assert_ne!(letter.work_key(), key);
    }
}
