//! The world of the letters' model: what the store keeps, and the attempts under way.

use semel::clock::Time;
use semel::letter::{self, Letter, LetterId, Mark, Reason, Stored, Tombstone};
use semel::protocol::{
    Answer, Fail, FailKind, Fence, Held, InDoubt, Lease, Operation, Record, decide,
};
use semel::{Fingerprint, Key};
use std::collections::BTreeMap;
use std::time::Duration;

/// Everything there is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mailroom {
    pub(super) record: Option<Record>,
    pub(super) letters: BTreeMap<LetterId, Kept>,
    pub(super) works: [Piece; WORKS],
}

/// A letter, or its tombstone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Kept {
    pub(super) work: usize,
    pub(super) reason: Reason,
    pub(super) fence: Fence,
    pub(super) is_open: bool,
}

/// A piece of work and its sender.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Piece {
    pub(super) attempts_made: u8,
    /// Its sender received an acknowledgement.
    pub(super) is_acknowledged: bool,
    pub(super) has_succeeded: bool,
    /// A gate sent its run on an attempt that may be the last, or answered an attempt.
    pub(super) is_covered: bool,
    pub(super) stage: Stage,
}

/// The state of an attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    /// There is none.
    #[default]
    Away,
    /// A gate has it.
    Arrived,
    /// Its run was granted, and is not sent.
    Granted(Lease),
    /// Its run was sent.
    Running(Lease),
}

/// One more than one, so that they can be taken for each other.
pub(super) const WORKS: usize = 2;
pub(super) const NOW: Time = Time(1_000);
pub(super) const LONG: Duration = Duration::from_secs(1);
pub(super) const KEY: Key = Key::from_bytes([1; 32]);

// === impl Mailroom ===

impl Mailroom {
    pub(super) fn decide(&mut self, operation: &Operation) -> Answer {
        let decision = decide(self.record.as_ref(), None, operation, NOW);
        if let Some(record) = decision.write {
            self.record = Some(record);
        }
        decision.answer
    }

    pub(super) fn hold(&mut self, operation: &Operation) -> Held {
        let held = self.decide(operation).held();
        held.expect("it answers the operation")
    }

    pub(super) fn piece(&mut self, work: usize) -> &mut Piece {
        let piece = self.works.get_mut(work);
        piece.expect("events name works that are there")
    }

    /// The lease of the run that ends now.
    pub(super) fn leaves(&mut self, work: usize) -> Option<Lease> {
        match std::mem::take(&mut self.piece(work).stage) {
            Stage::Running(lease) => Some(lease),
            Stage::Away | Stage::Arrived | Stage::Granted(_) => None,
        }
    }

    pub(super) fn close(&mut self, id: &LetterId) {
        let Some(kept) = self.letters.get(id).copied() else {
            return;
        };
        let decision = letter::mark(Some(&kept.stored(*id)), Mark::Closed, NOW);
        self.write(*id, kept.work, kept.reason, decision.write);
    }

    /// An open letter stays that of the work that put it first.
    pub(super) fn write(
        &mut self,
        id: LetterId,
        work: usize,
        reason: Reason,
        write: Option<Stored>,
    ) {
        let Some(stored) = write else {
            return;
        };
        let before = self.letters.get(&id).filter(|kept| kept.is_open);
        let (fence, is_open) = match stored {
            Stored::Open(letter) => (letter.fence, true),
            Stored::Closed(tombstone) => (tombstone.fence, false),
        };
        let kept = Kept {
            work: before.map_or(work, |kept| kept.work),
            reason,
            fence,
            is_open,
        };
        self.letters.insert(id, kept);
    }

    pub(super) fn keeps(&self, reason: Reason) -> bool {
        let mut kept = self.letters.values();
        kept.any(|kept| kept.is_open && kept.reason == reason)
    }

    pub(super) fn is_lost(&self, work: usize, attempts: u8) -> bool {
        let mut kept = self.letters.values();
        self.works.get(work).is_some_and(|piece| {
            piece.stage == Stage::Away
                && piece.is_covered
                && piece.is_over(attempts)
                && !piece.has_succeeded
        }) && !kept.any(|kept| kept.is_open && kept.work == work)
    }
}

// === impl Kept ===

impl Kept {
    pub(super) fn stored(self, id: LetterId) -> Stored {
        if self.is_open {
            Stored::Open(letter_of(id, self.work, self.reason, self.fence))
        } else {
            Stored::Closed(Tombstone {
                fence: self.fence,
                expires_at: NOW.plus(LONG),
            })
        }
    }
}

// === impl Piece ===

impl Piece {
    pub(super) const fn is_over(&self, attempts: u8) -> bool {
        self.is_acknowledged || self.attempts_made == attempts
    }
}

pub(super) fn letter_of(id: LetterId, work: usize, reason: Reason, fence: Fence) -> Letter {
    Letter {
        id,
        key: Some(KEY),
        route: "route".into(),
        reason,
        fence,
        retention: LONG,
        redriven: false,
        alarmed: false,
        delivery: vec![number(work)].into(),
    }
}

pub(super) fn completion(lease: Lease) -> Operation {
    Operation::Complete {
        lease,
        result: bytes::Bytes::new(),
        retention: LONG,
    }
}

pub(super) fn failure(lease: Lease, kind: FailKind, in_doubt: InDoubt) -> Operation {
    let how = Fail {
        kind,
        in_doubt,
        max_attempts: None,
        max_in_doubt: None,
        park_after: None,
        retention: LONG,
        result: bytes::Bytes::new(),
    };
    Operation::Fail { lease, how }
}

pub(super) fn payload(work: usize) -> Fingerprint {
    Fingerprint::from_bytes([number(work); 32])
}

pub(super) fn number(work: usize) -> u8 {
    u8::try_from(work).expect("there are few")
}
