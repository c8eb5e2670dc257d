//! Letters of unfinished work: senders that give up, gates that restart, and two pieces of work that share a key.
//!
//! Records and letters are decided by the library; the order of the gate's calls is the gate's: it claims, keeps the letter
//! where the attempt may be the last, sends the run, records its end. It may restart between any two of these. There is no
//! clock: leases and records expire at any time.

mod mailroom;

pub use mailroom::Mailroom;

use mailroom::{KEY, LONG, NOW, Stage, WORKS, completion, failure, letter_of, number, payload};
use semel::letter::{self, Attempt, KeepDecision, LetterHead, LetterId, Reason, Standing};
use semel::protocol::{
    Claim, Claimed, Ending, FailKind, Fence, Held, InDoubt, Lease, Operation, Owner, Record, State,
};
use stateright::{Model, Property};
use std::time::Duration;

/// The model.
#[derive(Clone, Copy, Debug)]
pub struct Letters {
    /// The sender of both pieces of work.
    pub sender: Sender,
    /// The policy for a run in doubt.
    pub in_doubt: InDoubt,
    /// A deliberate fault of the gate.
    pub fault: Option<LetterFault>,
}

/// A sender, by the attempts that it makes and that its gate knows of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// Delivers once.
    Once,
    /// Delivers twice, and does not count.
    Uncounted,
    /// Delivers twice, and says which attempt it is.
    Counted,
}

/// A deliberate fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LetterFault {
    /// A letter is put after a run that may be the last, not before.
    AfterTheRun,
    /// The last of many attempts is kept no sooner than any other.
    NotBeforeTheLast,
    /// A refusal before a run leaves no letter.
    NotWhenRefused,
    /// Letters of different work under one key have one id.
    IdOfKeyAlone,
    /// Any success under the key closes a letter.
    AnySuccessCloses,
}

/// One thing that happens. A number is that of a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An attempt reaches the gate.
    Arrive(usize),
    /// The gate claims.
    Claim(usize),
    /// The gate keeps the letter of a run, and sends the run.
    Send(usize),
    /// The run succeeds.
    Succeed(usize),
    /// The run fails.
    Fail(usize, FailKind),
    /// The gate restarts.
    Restart,
    /// A lease lapses.
    Lapse,
    /// A record expires.
    Expire,
    /// The gate closes letters whose work has succeeded.
    Reconcile,
}

const OWN_KEY: [Reason; 3] = [Reason::Unfinished, Reason::Parked, Reason::Failed];
const AT_ONCE: Duration = Duration::ZERO;
const FAILURES: [FailKind; 3] = [
    FailKind::Final,
    FailKind::Retryable { delay: AT_ONCE },
    FailKind::InDoubt { delay: AT_ONCE },
];

/// The rule: work that is delivered no more has succeeded, or an open letter holds it. It covers work whose run was sent on an
/// attempt that may be the last, and work whose attempt received an answer.
pub const NOTHING_IS_LOST: &str = "nothing is lost";

// === impl Letters ===

impl Letters {
    const fn attempts(&self) -> u8 {
        match self.sender {
            Sender::Once => 1,
            Sender::Uncounted | Sender::Counted => 2,
        }
    }

    /// The gate's expectation at this attempt.
    fn attempt(&self, made: u8) -> Attempt {
        let counted = self.sender == Sender::Counted && made < self.attempts();
        if counted || self.has(LetterFault::NotBeforeTheLast) {
            Attempt::OneOfMany
        } else {
            Attempt::MayBeLast
        }
    }

    fn has(&self, fault: LetterFault) -> bool {
        self.fault == Some(fault)
    }

    fn letter_id(&self, reason: Reason, work: usize) -> LetterId {
        let shared = self.has(LetterFault::IdOfKeyAlone);
        LetterId::of_key(reason, &KEY, &payload(if shared { 0 } else { work }))
    }

    fn happen(&self, room: &mut Mailroom, event: Event) -> Option<()> {
        match event {
            Event::Arrive(work) => {
                let piece = room.piece(work);
                piece.attempts_made += 1;
                piece.stage = Stage::Arrived;
            }
            Event::Claim(work) => self.claim(room, work),
            Event::Send(work) => self.send(room, work),
            Event::Succeed(work) => {
                let lease = room.leaves(work)?;
                if let Held::Applied(_) | Held::Already(_) = room.hold(&completion(lease)) {
                    room.piece(work).has_succeeded = true;
                    self.succeeded(room, work);
                }
            }
            Event::Fail(work, kind) => {
                let lease = room.leaves(work)?;
                self.failed(room, work, lease, kind);
            }
            Event::Restart => {
                for piece in &mut room.works {
                    piece.stage = Stage::Away;
                }
            }
            Event::Lapse => room.record.as_mut()?.lease_until = NOW,
            Event::Expire => room.record.as_mut()?.expires_at = NOW,
            Event::Reconcile => self.reconcile(room),
        }
        Some(())
    }

    fn claim(&self, room: &mut Mailroom, work: usize) {
        let claim = Claim {
            owner: Owner([room.piece(work).attempts_made + 10 * number(work); 16]),
            lease: LONG,
            retention: LONG,
            in_doubt: self.in_doubt,
            ..Claim::new(KEY, payload(work))
        };
        let claimed = room.decide(&Operation::Claim(claim)).claimed();
        room.piece(work).stage = Stage::Away;
        match claimed.expect("it answers the operation") {
            Claimed::Granted(lease) => room.piece(work).stage = Stage::Granted(lease),
            Claimed::Replayed(end) if end.ending == Ending::Succeeded => self.succeeded(room, work),
            Claimed::Replayed(_) => self.acknowledge(room, work, Reason::Failed),
            Claimed::Parked => self.acknowledge(room, work, Reason::Parked),
            Claimed::Mismatched => self.refused(room, work, Reason::Mismatched),
            Claimed::Busy { .. } | Claimed::NotYet { .. } => {
                self.refused(room, work, Reason::Unfinished);
            }
        }
    }

    /// The letter carries the run's own fence.
    fn send(&self, room: &mut Mailroom, work: usize) {
        let piece = room.piece(work);
        let Stage::Granted(lease) = std::mem::take(&mut piece.stage) else {
            return;
        };
        piece.stage = Stage::Running(lease.clone());
        let may_be_last = self.attempt(piece.attempts_made) == Attempt::MayBeLast;
        if !may_be_last {
            return;
        }
        piece.is_covered = true;
        if !self.has(LetterFault::AfterTheRun) {
            self.put(room, work, Reason::Unfinished, lease.fence);
        }
    }

    /// A sender that counts has made half of its attempts by the first of two: each refusal is kept.
    fn refused(&self, room: &mut Mailroom, work: usize, reason: Reason) {
        room.piece(work).is_covered = true;
        let attempt = match self.fault {
            Some(LetterFault::NotWhenRefused) => return,
            Some(LetterFault::NotBeforeTheLast) => Attempt::OneOfMany,
            _ => Attempt::MayBeLast,
        };
        let unfinished = |record: &Record| matches!(record.state, State::Running | State::Waiting);
        let is_settled = !room.record.as_ref().is_some_and(unfinished);
        let kept = self.keep(room, work, reason, None, attempt);
        room.piece(work).is_acknowledged = kept && is_settled && reason == Reason::Mismatched;
    }

    fn failed(&self, room: &mut Mailroom, work: usize, lease: Lease, kind: FailKind) {
        let ran = Some(lease.fence);
        room.piece(work).is_covered = true;
        match room.hold(&failure(lease, kind, self.in_doubt)) {
            Held::Applied(State::Failed) => self.acknowledge(room, work, Reason::Failed),
            Held::Applied(State::Parked) => self.acknowledge(room, work, Reason::Parked),
            Held::Applied(_) | Held::Already(_) | Held::Settled(_) | Held::Parked | Held::Stale => {
                let attempt = self.attempt(room.piece(work).attempts_made);
                self.keep(room, work, Reason::Unfinished, ran, attempt);
            }
        }
    }

    /// The sender receives a success, and closes the letters of this work.
    fn succeeded(&self, room: &mut Mailroom, work: usize) {
        room.piece(work).is_acknowledged = true;
        for reason in OWN_KEY {
            room.close(&self.letter_id(reason, work));
        }
    }

    /// Keeps the delivery, so that its sender need not.
    fn acknowledge(&self, room: &mut Mailroom, work: usize, reason: Reason) {
        room.piece(work).is_covered = true;
        let attempt = self.attempt(room.piece(work).attempts_made);
        room.piece(work).is_acknowledged = self.keep(room, work, reason, None, attempt);
    }

    /// Puts a letter as the record of the key allows; whether one is kept, or its work has succeeded.
    fn keep(
        &self,
        room: &mut Mailroom,
        work: usize,
        reason: Reason,
        ran: Option<Fence>,
        attempt: Attempt,
    ) -> bool {
        let record = room.record.as_ref().filter(|record| !record.expired(NOW));
        match KeepDecision::of(reason, record, &payload(work), ran, attempt) {
            KeepDecision::Keep(reason, fence) => {
                self.put(room, work, reason, fence);
                true
            }
            KeepDecision::Succeeded => true,
            KeepDecision::Unsettled => false,
        }
    }

    fn put(&self, room: &mut Mailroom, work: usize, reason: Reason, fence: Fence) {
        let id = self.letter_id(reason, work);
        let new = letter_of(id, work, reason, fence);
        let stored = room.letters.get(&id).map(|kept| kept.stored(id));
        let decision = letter::put(stored.as_ref(), &new, NOW);
        room.write(id, work, reason, decision.write);
    }

    fn reconcile(&self, room: &mut Mailroom) {
        let record = room.record.clone().filter(|record| !record.expired(NOW));
        let any = self.has(LetterFault::AnySuccessCloses);
        let succeeded = |head: &LetterHead| match &record {
            Some(record) if any => record.state == State::Succeeded,
            record => {
                let of_key = head.standing_under_taken(record.as_ref());
                let own = record.as_ref().filter(|_| head.work_key() == KEY);
                of_key.unwrap_or_else(|| head.standing(own)) == Standing::Succeeded
            }
        };
        for (id, kept) in room.letters.clone() {
            let head = letter_of(id, kept.work, kept.reason, kept.fence).head(NOW);
            if succeeded(&head) {
                room.close(&id);
            }
        }
    }
}

impl Model for Letters {
    type State = Mailroom;
    type Action = Event;

    fn init_states(&self) -> Vec<Mailroom> {
        vec![Mailroom::default()]
    }

    fn actions(&self, room: &Mailroom, events: &mut Vec<Event>) {
        events.extend([Event::Restart, Event::Lapse, Event::Reconcile]);
        let live = |record: &Record| record.state == State::Running && record.lease_until > NOW;
        if room.record.as_ref().is_some_and(|record| !live(record)) {
            events.push(Event::Expire);
        }
        for (work, piece) in room.works.iter().enumerate() {
            match piece.stage {
                Stage::Away if piece.is_over(self.attempts()) => {}
                Stage::Away => events.push(Event::Arrive(work)),
                Stage::Arrived => events.push(Event::Claim(work)),
                Stage::Granted(_) => events.push(Event::Send(work)),
                Stage::Running(_) => {
                    events.push(Event::Succeed(work));
                    events.extend(FAILURES.map(|kind| Event::Fail(work, kind)));
                }
            }
        }
    }

    fn next_state(&self, last: &Mailroom, event: Event) -> Option<Mailroom> {
        let mut room = last.clone();
        self.happen(&mut room, event)?;
        Some(room)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always(NOTHING_IS_LOST, |model: &Self, room: &Mailroom| {
                (0..WORKS).all(|work| !room.is_lost(work, model.attempts()))
            }),
            Property::sometimes("both pieces of work succeed", |_, room: &Mailroom| {
                room.works.iter().all(|piece| piece.has_succeeded)
            }),
            Property::sometimes("a success closes a letter", |_, room: &Mailroom| {
                room.letters.values().any(|kept| !kept.is_open)
            }),
            Property::sometimes("unfinished work is kept", |_, room: &Mailroom| {
                room.keeps(Reason::Unfinished)
            }),
            Property::sometimes("other work under the key is kept", |_, room: &Mailroom| {
                room.keeps(Reason::Mismatched)
            }),
        ];
        if self.in_doubt == InDoubt::Park {
            let parked = |_: &Self, room: &Mailroom| room.keeps(Reason::Parked);
            properties.push(Property::sometimes("parked work is kept", parked));
        }
        properties
    }
}
