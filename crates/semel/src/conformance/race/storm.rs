//! A storm: many actors on few keys, runs old and new, an operator among them, and time that
//! passes in jumps; judged by what each actor was told.

use super::history::{Event, History, OperatorAct, What, Word};
use crate::conformance::answer::{Judged, broken, ok, that};
use crate::conformance::behaviour::behaviours;
use crate::conformance::stage::{LEASE, MOMENT, RETENTION, Stage, doubt_limit};
use crate::record::{
    Claim, Claimed, DoubtLimit, Ending, Fail, FailKind, Finding, InDoubt, Lease, Owner, Resolution,
};
use crate::store::StoreExt;
use crate::{Error, Fingerprint, Key, Store};
use bytes::Bytes;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;

behaviours![BEHAVIOURS: a_storm_keeps_the_invariants];

/// Every storm tries the same things; only their order is left to the moment.
const SEED: u64 = 0x5E3E1;

const ROUNDS: usize = 80;
const ACTORS: usize = 8;
const ACTS: usize = 4;

/// How long a run may act that is probed.
pub(super) const ACTS_FOR: Duration = Duration::from_secs(2 * LEASE.as_secs());

/// One hot key: the policy everybody has for it, and every lease that anybody ever had.
struct Spot {
    key: Key,
    in_doubt: InDoubt,
    max_attempts: Option<NonZeroU32>,
    max_in_doubt: Option<DoubtLimit>,
    leases: Mutex<Vec<Lease>>,
}

/// One who acts, in one round.
struct Actor {
    store: Arc<dyn Store>,
    spots: Arc<[Spot; 6]>,
    rng: StdRng,
    round: usize,
    name: String,
}

async fn a_storm_keeps_the_invariants(stage: &Stage<'_>) -> Judged {
    let spot = |in_doubt, max| Spot {
        key: stage.piece().key,
        in_doubt,
        max_attempts: NonZeroU32::new(max),
        max_in_doubt: None,
        leases: Mutex::default(),
    };
    let in_doubt_twice = |in_doubt| Spot {
        max_in_doubt: doubt_limit(2, Duration::ZERO),
        ..spot(in_doubt, 0)
    };
    let spots = Arc::new([
        spot(InDoubt::Retry, 0),
        spot(InDoubt::Retry, 3),
        spot(InDoubt::Park, 0),
        spot(InDoubt::Park, 5),
        spot(InDoubt::Probe, 0),
        in_doubt_twice(InDoubt::Probe),
    ]);
    let mut rng = StdRng::seed_from_u64(SEED);
    let mut history = History::default();
    for round in 0..ROUNDS {
        let passes = match rng.random_range(0..20) {
            0..8 => LEASE + MOMENT,
            8 => LEASE + RETENTION + MOMENT,
            _ => Duration::ZERO,
        };
        if !passes.is_zero() {
            stage.subject.advance(passes).await;
        }
        history.passes(passes);
        history
            .events
            .extend(act_at_once(stage, &spots, round, &mut rng).await?);
    }
    judge(&history, &spots[..])
}

async fn act_at_once(
    stage: &Stage<'_>,
    spots: &Arc<[Spot; 6]>,
    round: usize,
    rng: &mut StdRng,
) -> Judged<Vec<Event>> {
    let mut acting = JoinSet::new();
    for number in 0..ACTORS {
        let actor = Actor {
            store: Arc::clone(&stage.store),
            spots: Arc::clone(spots),
            rng: StdRng::from_rng(rng),
            round,
            name: format!("actor {number} in round {round}"),
        };
        acting.spawn(actor.act());
    }
    let mut events = Vec::new();
    while let Some(acted) = acting.join_next().await {
        match acted {
            Ok(acted) => events.extend(ok("an act in the storm", acted)?),
            Err(panic) => return broken("every act answered", &panic.to_string()),
        }
    }
    Ok(events)
}

fn judge(history: &History, spots: &[Spot]) -> Judged {
    for (number, spot) in spots.iter().enumerate() {
        history.of(number)?.judge(spot.in_doubt)?;
    }
    let told = history.events.len();
    that(
        told > ROUNDS * ACTORS * ACTS / 2,
        "enough happened to judge",
        told,
    )
}

// === impl Actor ===

impl Actor {
    async fn act(mut self) -> Result<Vec<Event>, Error> {
        let spots = Arc::clone(&self.spots);
        let mut events = Vec::new();
        for number in 0..ACTS {
            let at = self.rng.random_range(0..spots.len());
            let Some(spot) = spots.get(at) else { continue };
            let result = Bytes::from(format!("{} act {number}", self.name));
            let what = match self.rng.random_range(0..20) {
                0..9 => Some(self.claim(spot).await?),
                9..14 => self.say(spot, result).await?,
                14..17 => self.step(spot, result).await?,
                17..19 => Some(self.operate(spot, result).await?),
                _ => self.store.look(&spot.key).await?.map(What::Looked),
            };
            events.extend(what.map(|what| Event {
                round: self.round,
                spot: at,
                what,
            }));
        }
        Ok(events)
    }

    async fn claim(&mut self, spot: &Spot) -> Result<What, Error> {
        let payload: &[u8] = if self.rng.random_ratio(1, 15) {
            b"other"
        } else {
            b"payload"
        };
        let again = self
            .rng
            .random_ratio(1, 6)
            .then(|| self.lease(spot))
            .flatten();
        let claim = Claim {
            owner: again.map_or_else(Owner::random, |lease| lease.owner),
            lease: LEASE,
            retention: RETENTION,
            in_doubt: spot.in_doubt,
            max_attempts: spot.max_attempts,
            max_in_doubt: spot.max_in_doubt,
            acts_for: (spot.in_doubt == InDoubt::Probe).then_some(ACTS_FOR),
            ..Claim::new(spot.key, Fingerprint::of(payload))
        };
        let claimed = self.store.claim(&claim).await?;
        if let Claimed::Granted(lease) = &claimed {
            let mut leases = spot.leases.lock().unwrap_or_else(PoisonError::into_inner);
            leases.push(lease.clone());
        }
        Ok(What::Claimed(claim.fingerprint, claimed))
    }

    /// The latest lease, an older one, or one that somebody made up.
    fn lease(&mut self, spot: &Spot) -> Option<Lease> {
        let leases = spot.leases.lock().unwrap_or_else(PoisonError::into_inner);
        let last = leases.len().checked_sub(1)?;
        let at = match self.rng.random_range(0..4) {
            0 => self.rng.random_range(0..=last),
            _ => last,
        };
        let mut lease = leases.get(at)?.clone();
        if self.rng.random_ratio(1, 20) {
            lease.owner = Owner::random();
        }
        Some(lease)
    }

    async fn say(&mut self, spot: &Spot, result: Bytes) -> Result<Option<What>, Error> {
        let Some(lease) = self.lease(spot) else {
            return Ok(None);
        };
        let fail = |kind| Fail {
            kind,
            in_doubt: spot.in_doubt,
            max_attempts: spot.max_attempts,
            max_in_doubt: spot.max_in_doubt,
            park_after: None,
            retention: RETENTION,
            result: result.clone(),
        };
        let delay = Duration::ZERO;
        let (word, held) = match self.rng.random_range(0..10) {
            0..2 => (
                Word::Renew,
                self.store.renew(&lease, LEASE, RETENTION).await?,
            ),
            2..4 => {
                let held = self.store.complete(&lease, &result, RETENTION).await?;
                (Word::End(result), held)
            }
            4 => {
                let held = self.store.fail(&lease, &fail(FailKind::Final)).await?;
                (Word::End(result), held)
            }
            5..8 => {
                let how = fail(FailKind::Retryable { delay });
                (Word::GiveUp, self.store.fail(&lease, &how).await?)
            }
            8 => {
                let kind = if lease.in_doubt {
                    FailKind::StillInDoubt { delay }
                } else {
                    FailKind::InDoubt { delay }
                };
                let how = fail(kind);
                (Word::GiveUp, self.store.fail(&lease, &how).await?)
            }
            _ => (Word::GiveUp, self.store.release(&lease).await?),
        };
        Ok(Some(What::Said { lease, word, held }))
    }

    async fn step(&mut self, spot: &Spot, result: Bytes) -> Result<Option<What>, Error> {
        let Some(lease) = self.lease(spot) else {
            return Ok(None);
        };
        let name = if self.rng.random() { "charge" } else { "mail" };
        if self.rng.random() {
            let begun = self.store.step_begin(&lease, name).await?;
            return Ok(Some(What::Begun { lease, name, begun }));
        }
        if self.rng.random_ratio(1, 3) {
            let _restarted = self.store.step_restart(&lease, name).await?;
        }
        let held = self.store.step_complete(&lease, name, &result).await?;
        Ok(Some(What::Done {
            lease,
            name,
            result,
            held,
        }))
    }

    async fn operate(&mut self, spot: &Spot, result: Bytes) -> Result<What, Error> {
        let (store, key) = (&self.store, &spot.key);
        let resolve = async |finding| store.resolve(key, &Resolution::new(finding), "").await;
        let (act, acted) = match self.rng.random_range(0..12) {
            0..2 => {
                let finding = Finding::Succeeded(result.clone());
                let act = OperatorAct::End(Ending::Succeeded, result);
                (act, resolve(finding).await?)
            }
            2 => {
                let finding = Finding::Failed(result.clone());
                let act = OperatorAct::End(Ending::Failed, result);
                (act, resolve(finding).await?)
            }
            3..5 => (OperatorAct::Again, resolve(Finding::Retry).await?),
            5..8 => (OperatorAct::Again, store.redrive(key, "").await?),
            8 => (
                OperatorAct::Again,
                store.release_by_operator(key, "").await?,
            ),
            _ => (OperatorAct::Forget, store.forget(key).await?),
        };
        Ok(What::Acted(act, acted))
    }
}
