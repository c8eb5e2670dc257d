//! Claiming: the right to run, and a place to run in.

use super::{Ended, POLL_FIRST, POLL_MAX, Semel, jittered};
use crate::lease::Term;
use crate::record::{Claim, Claimed, Ending, Held, Lease, Settled, State};
use crate::slots::Slot;
use crate::store::{Error, StoreExt};
use crate::work::Work;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout, timeout_at};

/// The answer to asking for the right to run.
pub(super) enum ClaimEnded {
    /// This run may begin.
    Granted {
        lease: Lease,
        term: Term,
        slot: Slot,
    },
    /// It may not, and this is what became of the delivery.
    Ended(Ended),
}

/// When to ask again after there was no slot.
const FULL_RETRY_AFTER: Duration = Duration::from_secs(1);

/// How long a delivery waits for its turn before it looks into the store, and what the pause before
/// the next look is doubled up to. Runs are mostly shorter than the first: then a look would cost
/// more than the wait.
const SLOT_LOOK_AFTER: Duration = Duration::from_millis(50);
const SLOT_LOOK_MAX: Duration = Duration::from_secs(2);

/// How often a claim is made before the store counts as unavailable. The owner stays the same, so
/// a grant whose answer was lost is granted again.
const CLAIM_TRIES_MAX: u32 = 3;

/// How long a store may leave a claim unanswered, all tries together. Half of the shortest deadline that senders have
/// (10 s, Pub/Sub's): the delivery hears that the store is away while its sender still listens, and its slot is free.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// How many claims that were given up unanswered are looked after at once, and for how long after their lease would have
/// ended: a server that stood still answers what it was asked before.
pub(super) const UNANSWERED_MAX: usize = 256;
const UNANSWERED_FOR: Duration = Duration::from_secs(60);
const UNANSWERED_LOOK_MAX: Duration = Duration::from_secs(1);

// === impl Semel ===

impl Semel {
    /// Claims; waits for a slot and for a run elsewhere as long as the work's patience lasts.
    pub(super) async fn claim(&self, work: &Work, asked: Instant) -> Result<ClaimEnded, Error> {
        let mut claim = work.claim(asked.elapsed());
        let patience_ends = Instant::now() + work.patience();
        let (mut tries, mut poll) = (0, POLL_FIRST);
        // A grant whose answer was lost is granted again, but its lease runs from the first try.
        let mut unanswered = None;
        let mut silence_left = SILENCE_MAX;
        loop {
            let left = patience_ends.saturating_duration_since(Instant::now());
            self.may_claim()?;
            let slot = match self.slot(work, left).await? {
                Ok(slot) => slot,
                Err(ended) => return Ok(ClaimEnded::Ended(ended)),
            };
            // The wait may have been long.
            self.may_claim()?;
            let term = unanswered
                .take()
                .unwrap_or_else(|| Term::from_now(work.lease, asked));
            claim.max_in_doubt = work.doubt_limit(asked.elapsed());
            let sent = Instant::now();
            let pause = match answered(silence_left, self.store().claim(&claim)).await {
                Ok(Claimed::Granted(lease)) => {
                    return Ok(ClaimEnded::Granted { lease, term, slot });
                }
                Ok(Claimed::Busy { retry_after }) if !left.is_zero() => {
                    jittered(poll).min(left).min(retry_after + POLL_FIRST)
                }
                Ok(other) => return Ok(ClaimEnded::Ended(self.told(work, other)?)),
                Err(Error::Unavailable(why)) => {
                    tries += 1;
                    silence_left = silence_left.saturating_sub(sent.elapsed());
                    if tries == CLAIM_TRIES_MAX || silence_left.is_zero() {
                        self.give_back_unanswered(claim);
                        return Err(Error::Unavailable(why));
                    }
                    unanswered = Some(term);
                    jittered(poll)
                }
                Err(error) => return Err(error),
            };
            // Whoever waits holds no slot.
            drop(slot);
            sleep(pause).await;
            poll = POLL_MAX.min(poll * 2);
        }
    }

    /// Nothing is claimed whose outcome may end up where others wait already.
    fn may_claim(&self) -> Result<(), Error> {
        match self.paused() {
            Some(paused) => Err(paused.into()),
            None => Ok(()),
        }
    }

    /// What a delivery hears whose claim was not granted.
    fn told(&self, work: &Work, claimed: Claimed) -> Result<Ended, Error> {
        Ok(match claimed {
            Claimed::Replayed(settled) => Ended::Replayed(self.remember(work, &settled)?),
            Claimed::Busy { retry_after } => Ended::Busy { retry_after },
            Claimed::NotYet { retry_after } => Ended::NotYet { retry_after },
            Claimed::Parked => Ended::Parked,
            Claimed::Mismatched => Ended::Mismatched,
            Claimed::Granted(_) => return Err(Error::bug("a grant is run, not told")),
        })
    }

    /// A place to run in. Whoever waits long for its turn looks into the store now and then: what was
    /// settled meanwhile needs no slot. One that has its turn soon asks nothing.
    async fn slot(&self, work: &Work, patience: Duration) -> Result<Result<Slot, Ended>, Error> {
        let Some(slots) = &work.slots else {
            return Ok(Ok(Slot::unlimited()));
        };
        if let Some(slot) = slots.try_take() {
            return Ok(Ok(slot));
        }
        let full = || {
            Ok(Err(Ended::Full {
                retry_after: FULL_RETRY_AFTER,
            }))
        };
        let Some(mut place) = slots.queue(&work.slot_wait) else {
            return match self.look_up(work).await? {
                Some(ended) => Ok(Err(ended)),
                None => full(),
            };
        };
        let patience_ends = Instant::now() + patience;
        let mut pause = SLOT_LOOK_AFTER;
        loop {
            let look_at = patience_ends.min(Instant::now() + pause);
            match timeout_at(look_at, place.turn()).await {
                Ok(Some(slot)) => return Ok(Ok(slot)),
                Ok(None) => return full(),
                Err(_) => {}
            }
            // A turn that comes meanwhile is taken.
            tokio::select! {
                biased;
                turn = place.turn() => return turn.map_or_else(full, |slot| Ok(Ok(slot))),
                looked = self.look_up(work) => {
                    if let Some(ended) = looked? {
                        return Ok(Err(ended));
                    }
                }
            }
            if Instant::now() >= patience_ends {
                return full();
            }
            pause = SLOT_LOOK_MAX.min(pause * 2);
        }
    }

    /// What is known of a key without claiming it.
    async fn look_up(&self, work: &Work) -> Result<Option<Ended>, Error> {
        let look = answered(SILENCE_MAX, self.store().look(&work.key));
        let Some(record) = look.await? else {
            return Ok(None);
        };
        if record.fingerprint != work.fingerprint {
            return Ok(Some(Ended::Mismatched));
        }
        let ending = match record.state {
            State::Succeeded => Ending::Succeeded,
            State::Failed => Ending::Failed,
            State::Parked => return Ok(Some(Ended::Parked)),
            State::Running | State::Waiting => return Ok(None),
        };
        // A look does not say how long it is kept, so it is not remembered.
        let settled = Settled {
            ending,
            result: record.result.unwrap_or_default(),
            keep: Duration::ZERO,
        };
        Ok(Some(Ended::Replayed(self.remember(work, &settled)?)))
    }

    /// A claim that was given up may be granted all the same, to nobody. It is given back: otherwise its lapse would pass for
    /// a run's, and park work that never ran.
    fn give_back_unanswered(&self, claim: Claim) {
        let Ok(place) = Arc::clone(&self.inner.unanswered).try_acquire_owned() else {
            return;
        };
        let semel = self.clone();
        tokio::spawn(async move {
            let limit = claim.lease + UNANSWERED_FOR;
            drop(timeout(limit, semel.give_back_once_granted(&claim)).await);
            drop(place);
        });
    }

    async fn give_back_once_granted(&self, claim: &Claim) {
        let mut poll = POLL_FIRST;
        loop {
            match self.store().look(&claim.key).await {
                Ok(Some(record)) if record.owner == claim.owner => {
                    let lease = Lease {
                        key: claim.key,
                        owner: record.owner,
                        fence: record.fence,
                        born: record.born,
                        attempt: record.attempts,
                        in_doubt: record.in_doubt,
                    };
                    if self.store().release(&lease).await.is_ok() {
                        return;
                    }
                }
                // Somebody else has it: this claim is not granted any more.
                Ok(Some(_)) => return,
                Ok(None) | Err(_) => {}
            }
            sleep(jittered(poll)).await;
            poll = UNANSWERED_LOOK_MAX.min(poll * 2);
        }
    }

    /// A grant that arrived after its own lease is not run.
    pub(super) async fn give_back(&self, lease: &Lease) -> Result<Ended, Error> {
        match self.store().release(lease).await? {
            Held::Applied(_) | Held::Already(_) | Held::Settled(_) | Held::Parked | Held::Stale => {
                Err(Error::unavailable(
                    "the store granted a lease too late to use it; nothing was run, a retry is safe",
                ))
            }
        }
    }
}

/// The answer of the store, if it comes within `limit`.
async fn answered<T>(
    limit: Duration,
    call: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    timeout(limit, call).await.unwrap_or_else(|_| {
        Err(Error::unavailable(
            "the store did not answer in time; nothing was run, a retry is safe",
        ))
    })
}
