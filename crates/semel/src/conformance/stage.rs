//! What the behaviours stand on: fresh pieces of work, the passing of time, and how an answer is
//! judged.

use super::Subject;
use super::answer::{Judged, end, granted, is, that};
use crate::record::{
    Acted, Answer, Claim, Claimed, DoubtLimit, Ending, Fail, FailKind, Fence, Held, InDoubt, Lease,
    Operation, Owner, Record, Resolution, State,
};
use crate::store::{Letters, Store, StoreExt};
use crate::{Error, Fingerprint, Key};
use bytes::Bytes;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

/// The lease of most claims. Far longer than any behaviour takes, so that only `advance` can end it.
pub(super) const LEASE: Duration = Duration::from_secs(600);

/// The retention of most claims.
pub(super) const RETENTION: Duration = Duration::from_secs(3_600);

/// The pause before the next run of work that failed.
pub(super) const DELAY: Duration = Duration::from_secs(1_200);

/// What is added to a duration to be beyond it.
pub(super) const MOMENT: Duration = Duration::from_secs(1);

/// Longer than any store's grace.
pub(super) const AGES: Duration = Duration::from_secs(3 * 24 * 3_600);

/// How many windows a list or a sweep may have: more means that its cursor goes in circles.
pub(super) const WINDOWS_MAX: usize = 100_000;

/// What runs leave behind, unless the bytes matter.
pub(super) const DONE: &[u8] = b"done";

/// What failures leave behind, unless the bytes matter.
pub(super) const WHY: &[u8] = b"why";

/// The states of records that expire.
pub(super) const EXPIRING: [State; 4] = [
    State::Running,
    State::Succeeded,
    State::Failed,
    State::Waiting,
];

/// A run's word that leaves the work waiting was applied.
pub(super) const WAITING: Held = Held::Applied(State::Waiting);

/// A failure that may be tried again at once.
pub(super) const AT_ONCE: FailKind = FailKind::Retryable {
    delay: Duration::ZERO,
};

/// The answer to a claim of a live lease, its duration aside.
pub(super) const BUSY: Claimed = Claimed::Busy {
    retry_after: Duration::ZERO,
};

/// What an operator does to a key.
pub(super) type OperatorsAct = fn(Key) -> Operation;

pub(super) const fn redrive(key: Key) -> Operation {
    Operation::Redrive { key, by: ACT }
}

pub(super) const fn release_by_operator(key: Key) -> Operation {
    Operation::ReleaseByOperator { key, by: ACT }
}

/// Who acts, and why.
pub(super) const ACT: Bytes = Bytes::from_static(b"act by ann: it is over");

/// The store under judgement.
pub(super) struct Stage<'a> {
    pub(super) subject: &'a dyn Subject,
    pub(super) store: Arc<dyn Store>,
    letters: Option<Arc<dyn Letters>>,
}

/// One piece of work under a key that nobody else uses.
pub(super) struct Piece {
    pub(super) store: Arc<dyn Store>,
    pub(super) key: Key,
    pub(super) fingerprint: Fingerprint,
}

// === impl Stage ===

impl<'a> Stage<'a> {
    pub(super) fn new(subject: &'a dyn Subject) -> Self {
        Self {
            subject,
            store: subject.store(),
            letters: subject.letters(),
        }
    }

    /// The same store, asked for letters; only stores that keep them are.
    pub(super) fn letters(&self) -> &Arc<dyn Letters> {
        let letters = self.letters.as_ref();
        letters.expect("a store without letters is not asked for any")
    }

    /// Work that the store has never heard of.
    #[allow(
        clippy::disallowed_methods,
        reason = "a key of its own on a store that others use"
    )]
    pub(super) fn piece(&self) -> Piece {
        let key = rand::random::<[u8; 32]>();
        Piece {
            store: Arc::clone(&self.store),
            key: Key::from_bytes(key),
            fingerprint: Fingerprint::of(&key),
        }
    }

    /// Work in the given state, and the lease of the run that brought it there.
    pub(super) async fn piece_in(&self, state: State) -> Judged<(Piece, Lease)> {
        let piece = self.piece();
        let lease = piece.grant().await?;
        if state != State::Running {
            piece.reaches(&lease, state).await?;
        }
        Ok((piece, lease))
    }

    /// Lets a bit more than `by` pass.
    pub(super) async fn pass(&self, by: Duration) {
        self.subject.advance(by + MOMENT).await;
    }

    /// Sweeps to the end.
    pub(super) async fn sweep(&self) -> Judged {
        let mut after = None;
        for _ in 0..WINDOWS_MAX {
            let swept = self.store.sweep(after.as_ref()).await;
            match super::answer::ok("sweep", swept)?.next {
                Some(next) => after = Some(next),
                None => return Ok(()),
            }
        }
        super::answer::broken("sweep comes to an end", "ever another cursor")
    }
}

// === impl Piece ===

impl Piece {
    /// A claim by a new owner.
    pub(super) fn claim(&self) -> Claim {
        Claim {
            lease: LEASE,
            retention: RETENTION,
            ..Claim::new(self.key, self.fingerprint)
        }
    }

    /// A claim by a new owner that parks what is in doubt.
    pub(super) fn parking(&self) -> Claim {
        Claim {
            in_doubt: InDoubt::Park,
            ..self.claim()
        }
    }

    /// A claim that must be granted.
    pub(super) async fn grant(&self) -> Judged<Lease> {
        self.grant_to(&self.claim()).await
    }

    pub(super) async fn grant_to(&self, claim: &Claim) -> Judged<Lease> {
        granted("claim", self.store.claim(claim).await)
    }

    pub(super) async fn renew(&self, lease: &Lease) -> Result<Held, Error> {
        self.store.renew(lease, LEASE, RETENTION).await
    }

    pub(super) async fn complete(&self, lease: &Lease, result: &[u8]) -> Result<Held, Error> {
        let result = Bytes::copy_from_slice(result);
        self.store.complete(lease, &result, RETENTION).await
    }

    pub(super) async fn fail(&self, lease: &Lease, kind: FailKind) -> Result<Held, Error> {
        self.store.fail(lease, &failing(kind)).await
    }

    pub(super) async fn fail_with(&self, lease: &Lease, how: &Fail) -> Result<Held, Error> {
        self.store.fail(lease, how).await
    }

    /// The claim must be answered so.
    pub(super) async fn is_told(&self, claim: &Claim, expected: Claimed) -> Judged {
        is("claim", expected, self.store.claim(claim).await)
    }

    /// A duplicate must be told this end.
    pub(super) async fn is_replayed(&self, ending: Ending, result: &[u8]) -> Judged {
        let replayed = Claimed::Replayed(end(ending, result));
        self.is_told(&self.claim(), replayed).await
    }

    /// The run's word that brings the work to this state must be applied.
    pub(super) async fn reaches(&self, lease: &Lease, state: State) -> Judged {
        let (word, answered) = match state {
            State::Running => ("renew", self.renew(lease).await),
            State::Succeeded => ("complete", self.complete(lease, DONE).await),
            State::Failed => ("fail for good", self.fail(lease, FailKind::Final).await),
            State::Waiting => ("fail", self.fail(lease, retryable()).await),
            State::Parked => {
                let how = in_doubt(InDoubt::Park);
                ("fail in doubt", self.fail_with(lease, &how).await)
            }
        };
        is(word, Held::Applied(state), answered)
    }

    /// Renewing must be answered so.
    pub(super) async fn renews(&self, lease: &Lease, expected: Held) -> Judged {
        is("renew", expected, self.renew(lease).await)
    }

    /// Completing must be answered so.
    pub(super) async fn completes(&self, lease: &Lease, expected: Held) -> Judged {
        is("complete", expected, self.complete(lease, DONE).await)
    }

    /// Failing must be answered so.
    pub(super) async fn fails(&self, lease: &Lease, kind: FailKind, expected: Held) -> Judged {
        is("fail", expected, self.fail(lease, kind).await)
    }

    /// Giving the right to run back must be answered so.
    pub(super) async fn releases(&self, lease: &Lease, expected: Held) -> Judged {
        is("release", expected, self.store.release(lease).await)
    }

    /// An operator's act must be applied.
    pub(super) async fn applies(&self, act: OperatorsAct) -> Judged {
        self.act(act, Acted::Applied).await
    }

    /// An operator's act must be answered so.
    pub(super) async fn act(&self, act: OperatorsAct, expected: Acted) -> Judged {
        let operation = act(self.key);
        let answered = self.store.apply(&operation).await;
        is(operation.word(), Answer::Acted(expected), answered)
    }

    /// Resolving must be answered so.
    pub(super) async fn resolved(&self, how: &Resolution, expected: Acted) -> Judged {
        let answered = self.store.resolve(&self.key, how, ACT).await;
        is("resolve", expected, answered)
    }

    /// The record, which must be there.
    pub(super) async fn record(&self) -> Judged<Record> {
        match super::answer::ok("look", self.store.look(&self.key).await)? {
            Some(record) => Ok(record),
            None => super::answer::broken("look finds the record", "absent"),
        }
    }

    /// Nothing may be there.
    pub(super) async fn is_absent(&self) -> Judged {
        is("look", None, self.store.look(&self.key).await)
    }

    /// The record must be in this state.
    pub(super) async fn is_in(&self, state: State) -> Judged<Record> {
        let record = self.record().await?;
        is("state by look", state, Ok(record.state))?;
        Ok(record)
    }

    /// The record must be what it was, times and all.
    pub(super) async fn is_still(&self, before: &Record) -> Judged {
        let now = self.store.look(&self.key).await;
        is("the record, undisturbed", Some(before.clone()), now)
    }
}

/// A failure that may be tried again after [`DELAY`].
pub(super) const fn retryable() -> FailKind {
    FailKind::Retryable { delay: DELAY }
}

/// The limit of so many runs in doubt, once the first is so old; zero is no limit.
pub(super) fn doubt_limit(runs: u32, age: Duration) -> Option<DoubtLimit> {
    NonZeroU32::new(runs).map(|runs| DoubtLimit { runs, age })
}

/// A failure without limits.
pub(super) fn failing(kind: FailKind) -> Fail {
    Fail {
        kind,
        in_doubt: InDoubt::Retry,
        max_attempts: None,
        max_in_doubt: None,
        park_after: None,
        retention: RETENTION,
        result: Bytes::from_static(WHY),
    }
}

/// A failure in doubt, under a policy.
pub(super) fn in_doubt(policy: InDoubt) -> Fail {
    Fail {
        in_doubt: policy,
        ..failing(FailKind::InDoubt { delay: DELAY })
    }
}

/// The later run must have this attempt and a higher fence, in the same incarnation.
pub(super) fn is_next_run(earlier: &Lease, later: &Lease, attempt: u32) -> Judged {
    let so = later.fence > earlier.fence && later.attempt == attempt && later.born == earlier.born;
    let expected = format!("a higher fence, attempt {attempt}, the same born");
    that(so, &expected, (earlier, later))
}

/// The same lease as somebody else would hold it.
pub(super) fn of_another_owner(lease: &Lease) -> Lease {
    Lease {
        owner: Owner::random(),
        ..lease.clone()
    }
}

/// The same owner's lease under the fences below and above, which were never given.
pub(super) fn of_other_fences(lease: &Lease) -> [Lease; 2] {
    let with = |fence| Lease {
        fence: Fence(fence),
        ..lease.clone()
    };
    [with(lease.fence.0 - 1), with(lease.fence.0 + 1)]
}
