//! A caller: makes calls to the store, sometimes without the patience to wait for the answer, and writes all of it
//! down.

use super::call::{
    Act, Asked, Call, Ending, Failing, Kind, Mark, OwnerId, RunId, Terms, Told, micros,
};
use super::log::Log;
use bytes::Bytes;
use rand::Rng;
use rand::rngs::StdRng;
use semel::clock::{Clock, SystemClock};
use semel::protocol::{
    Claim, Claimed, Fail, FailKind, Finding, InDoubt, Lease, Operation, Owner, Resolution,
    StepBegun,
};
use semel::store::StoreExt;
use semel::{Error, Key, Outcome, Store};
use std::future::Future;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

/// How often the impatient let everybody else go first before they give up.
const IMPATIENCE_TURNS: std::ops::Range<u32> = 0..12;

/// How many calls in a hundred are impatient.
const IMPATIENT_PERCENT: u32 = 3;

/// Makes calls and writes them down.
#[derive(Debug)]
pub(super) struct Caller {
    pub(super) store: Arc<dyn Store>,
    pub(super) keys: Arc<[Key]>,
    pub(super) rng: StdRng,
    log: Arc<Log>,
    clock: SystemClock,
}

// === impl Caller ===

impl Caller {
    pub(super) fn new(store: Arc<dyn Store>, keys: Arc<[Key]>, log: Arc<Log>, rng: StdRng) -> Self {
        Self {
            store,
            keys,
            rng,
            log,
            clock: SystemClock::new(),
        }
    }

    pub(super) async fn claim(
        &mut self,
        key: u32,
        claim: &Claim,
        payload: u8,
    ) -> anyhow::Result<Option<Lease>> {
        let terms = Terms {
            owner: OwnerId::of(claim.owner),
            payload,
            lease: micros(claim.lease),
            retention: micros(claim.retention),
            park: claim.in_doubt == InDoubt::Park,
            max_attempts: claim.max_attempts.map_or(0, NonZeroU32::get),
        };
        let store = Arc::clone(&self.store);
        let call = store.claim(claim);
        let claimed = self.ask(key, Asked::Claim(terms), call, claimed).await?;
        Ok(match claimed {
            Some(Claimed::Granted(lease)) => Some(lease),
            Some(
                Claimed::Replayed(_)
                | Claimed::Busy { .. }
                | Claimed::NotYet { .. }
                | Claimed::Parked
                | Claimed::Mismatched,
            )
            | None => None,
        })
    }

    pub(super) async fn renew(
        &mut self,
        key: u32,
        lease: &Lease,
        terms: &Claim,
    ) -> anyhow::Result<()> {
        let asked = Asked::Renew(RunId::of(lease), micros(terms.lease));
        let store = Arc::clone(&self.store);
        let call = store.renew(lease, terms.lease, terms.retention);
        self.ask(key, asked, call, Told::held).await?;
        Ok(())
    }

    pub(super) async fn complete(
        &mut self,
        key: u32,
        lease: &Lease,
        result: &Bytes,
        retention: Duration,
    ) -> anyhow::Result<()> {
        let asked = Asked::Complete(RunId::of(lease), Mark::of(result), micros(retention));
        let store = Arc::clone(&self.store);
        let call = store.complete(lease, result, retention);
        self.ask(key, asked, call, Told::held).await?;
        Ok(())
    }

    pub(super) async fn fail(&mut self, key: u32, lease: &Lease, how: &Fail) -> anyhow::Result<()> {
        let failing = Failing {
            kind: match how.kind {
                FailKind::Final => Kind::Final,
                FailKind::Retryable { .. } => Kind::Retryable,
                FailKind::InDoubt { .. } => Kind::InDoubt,
            },
            park: how.in_doubt == InDoubt::Park,
            max_attempts: how.max_attempts.map_or(0, NonZeroU32::get),
        };
        let asked = Asked::Fail(RunId::of(lease), failing, Mark::of(&how.result));
        let store = Arc::clone(&self.store);
        self.ask(key, asked, store.fail(lease, how), Told::held)
            .await?;
        Ok(())
    }

    pub(super) async fn release(&mut self, key: u32, lease: &Lease) -> anyhow::Result<()> {
        let store = Arc::clone(&self.store);
        let asked = Asked::Release(RunId::of(lease));
        self.ask(key, asked, store.release(lease), Told::held)
            .await?;
        Ok(())
    }

    /// Does a step as a run would; a step in doubt is begun again under the policy `retry`.
    pub(super) async fn step(
        &mut self,
        key: u32,
        lease: &Lease,
        name: &str,
        in_doubt: InDoubt,
    ) -> anyhow::Result<()> {
        let (run, store) = (RunId::of(lease), Arc::clone(&self.store));
        let asked = Asked::StepBegin(run, name.to_owned());
        let begun = self
            .ask(key, asked, store.step_begin(lease, name), Told::begun)
            .await?;
        match begun {
            Some(StepBegun::Run) => {}
            Some(StepBegun::InDoubt(_)) if in_doubt == InDoubt::Retry => {
                let asked = Asked::StepRestart(run, name.to_owned());
                let call = store.step_restart(lease, name);
                self.ask(key, asked, call, Told::held).await?;
            }
            Some(
                StepBegun::InDoubt(_)
                | StepBegun::Memo { .. }
                | StepBegun::Settled(_)
                | StepBegun::Parked
                | StepBegun::Stale,
            )
            | None => return Ok(()),
        }
        if self.rng.random_bool(0.2) {
            return Ok(());
        }
        let result = Bytes::from(self.rng.random::<u64>().to_string());
        let asked = Asked::StepComplete(run, name.to_owned(), super::call::digest(&result));
        let call = store.step_complete(lease, name, &result);
        self.ask(key, asked, call, Told::held).await?;
        Ok(())
    }

    pub(super) async fn operate(&mut self, key: u32) -> anyhow::Result<()> {
        let store = Arc::clone(&self.store);
        let Some(name) = self.keys.get(key as usize).copied() else {
            return Ok(());
        };
        let result = self.result();
        let mark = Mark::of(&result);
        let happened = Resolution::new(Finding::Succeeded(result.clone()));
        let never = Resolution::new(Finding::Failed(result));
        let again = Resolution::new(Finding::Retry);
        let resolve = |how| Operation::Resolve { key: name, how };
        let (act, operation) = match self.rng.random_range(0..6) {
            0 => (Act::ResolveSucceeded(mark), resolve(happened)),
            1 => (Act::ResolveFailed(mark), resolve(never)),
            2 => (Act::ResolveRetry, resolve(again)),
            3 => (Act::Redrive, Operation::Redrive(name)),
            4 => (Act::Release, Operation::ReleaseByOperator(name)),
            _ => (Act::Forget, Operation::Forget(name)),
        };
        let call = async { store.apply(&operation).await?.acted() };
        self.ask(key, Asked::Operate(act), call, Told::acted)
            .await?;
        Ok(())
    }

    /// A result that nobody else records.
    pub(super) fn result(&mut self) -> Bytes {
        Outcome::ok(self.rng.random_range(1..u64::MAX).to_string()).encode()
    }

    /// Makes a call and writes it down. A call given up may still be done, at any later time.
    async fn ask<T>(
        &mut self,
        key: u32,
        asked: Asked,
        call: impl Future<Output = Result<T, Error>>,
        told: impl FnOnce(&Result<T, Error>) -> Told,
    ) -> anyhow::Result<Option<T>> {
        let impatient = self.rng.random_ratio(IMPATIENT_PERCENT, 100);
        let turns = impatient.then(|| self.rng.random_range(IMPATIENCE_TURNS));
        let began = self.now();
        let answer = tokio::select! {
            biased;
            answer = call => Some(answer),
            () = give_up(turns) => None,
        };
        let told = match &answer {
            Some(answer) => told(answer),
            None => Told::Unknown("given up".into()),
        };
        self.write(key, began, asked, told)?;
        Ok(answer.and_then(Result::ok))
    }

    pub(super) fn write(
        &self,
        key: u32,
        began: u64,
        asked: Asked,
        told: Told,
    ) -> anyhow::Result<()> {
        let ended = if matches!(told, Told::Unknown(_)) {
            u64::MAX
        } else {
            self.now()
        };
        self.log.write(&Call {
            key,
            began,
            ended,
            asked,
            told,
        })
    }

    pub(super) fn now(&self) -> u64 {
        self.clock.wall().0
    }
}

/// Waits a few turns of the runtime; for ever if there is no number of them.
async fn give_up(turns: Option<u32>) {
    match turns {
        Some(turns) => {
            for _ in 0..turns {
                tokio::task::yield_now().await;
            }
        }
        None => std::future::pending().await,
    }
}

fn claimed(claimed: &Result<Claimed, Error>) -> Told {
    match claimed {
        Ok(Claimed::Granted(lease)) => Told::Granted(RunId::of(lease)),
        Ok(Claimed::Replayed(settled)) => Told::Replayed(Ending::of(settled)),
        Ok(Claimed::Busy { .. }) => Told::Busy,
        Ok(Claimed::NotYet { .. }) => Told::NotYet,
        Ok(Claimed::Parked) => Told::Parked,
        Ok(Claimed::Mismatched) => Told::Mismatched,
        Err(error) => Told::error(error),
    }
}

// === impl OwnerId ===

impl OwnerId {
    /// The first half of an owner.
    #[must_use]
    pub fn of(owner: Owner) -> Self {
        let (half, _) = owner.0.split_at(8);
        Self(half.iter().fold(0, |id, byte| id << 8 | u64::from(*byte)))
    }
}

// === impl RunId ===

impl RunId {
    /// The run of a lease.
    #[must_use]
    pub fn of(lease: &Lease) -> Self {
        Self {
            fence: lease.fence.0,
            owner: OwnerId::of(lease.owner),
            born: lease.born.0,
            attempt: lease.attempt,
        }
    }
}
