//! A caller: makes calls to the store, sometimes without the patience to wait for the answer, and writes all of it
//! down.

use super::call::{
    Call, ClaimTerms, FailureKind, FailureTerms, OperatorCall, OwnerId, RecordedEnd, Request,
    Response, ResultId, RunId, micros,
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
        let terms = ClaimTerms {
            owner: OwnerId::of(claim.owner),
            payload,
            lease: micros(claim.lease),
            retention: micros(claim.retention),
            park: claim.in_doubt == InDoubt::Park,
            max_attempts: claim.max_attempts.map_or(0, NonZeroU32::get),
        };
        let store = Arc::clone(&self.store);
        let call = store.claim(claim);
        let claimed = self.ask(key, Request::Claim(terms), call, claimed).await?;
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
        let request = Request::Renew(RunId::of(lease), micros(terms.lease));
        let store = Arc::clone(&self.store);
        let call = store.renew(lease, terms.lease, terms.retention);
        self.ask(key, request, call, Response::held).await?;
        Ok(())
    }

    pub(super) async fn complete(
        &mut self,
        key: u32,
        lease: &Lease,
        result: &Bytes,
        retention: Duration,
    ) -> anyhow::Result<()> {
        let request = Request::Complete(RunId::of(lease), ResultId::of(result), micros(retention));
        let store = Arc::clone(&self.store);
        let call = store.complete(lease, result, retention);
        self.ask(key, request, call, Response::held).await?;
        Ok(())
    }

    pub(super) async fn fail(&mut self, key: u32, lease: &Lease, how: &Fail) -> anyhow::Result<()> {
        let failing = FailureTerms {
            kind: match how.kind {
                FailKind::Final => FailureKind::Final,
                FailKind::Retryable { .. } => FailureKind::Retryable,
                FailKind::InDoubt { .. } => FailureKind::InDoubt,
            },
            park: how.in_doubt == InDoubt::Park,
            max_attempts: how.max_attempts.map_or(0, NonZeroU32::get),
        };
        let request = Request::Fail(RunId::of(lease), failing, ResultId::of(&how.result));
        let store = Arc::clone(&self.store);
        self.ask(key, request, store.fail(lease, how), Response::held)
            .await?;
        Ok(())
    }

    pub(super) async fn release(&mut self, key: u32, lease: &Lease) -> anyhow::Result<()> {
        let store = Arc::clone(&self.store);
        let request = Request::Release(RunId::of(lease));
        self.ask(key, request, store.release(lease), Response::held)
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
        let request = Request::StepBegin(run, name.to_owned());
        let begun = self
            .ask(key, request, store.step_begin(lease, name), Response::begun)
            .await?;
        match begun {
            Some(StepBegun::Run) => {}
            Some(StepBegun::InDoubt(_)) if in_doubt == InDoubt::Retry => {
                let request = Request::StepRestart(run, name.to_owned());
                let call = store.step_restart(lease, name);
                self.ask(key, request, call, Response::held).await?;
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
        let request = Request::StepComplete(run, name.to_owned(), super::call::digest(&result));
        let call = store.step_complete(lease, name, &result);
        self.ask(key, request, call, Response::held).await?;
        Ok(())
    }

    pub(super) async fn operate(&mut self, key: u32) -> anyhow::Result<()> {
        let store = Arc::clone(&self.store);
        let Some(name) = self.keys.get(key as usize).copied() else {
            return Ok(());
        };
        let bytes = self.result();
        let result = ResultId::of(&bytes);
        let happened = Resolution::new(Finding::Succeeded(bytes.clone()));
        let never = Resolution::new(Finding::Failed(bytes));
        let again = Resolution::new(Finding::Retry);
        let resolve = |how| Operation::Resolve { key: name, how };
        let (act, operation) = match self.rng.random_range(0..6) {
            0 => (OperatorCall::ResolveSucceeded(result), resolve(happened)),
            1 => (OperatorCall::ResolveFailed(result), resolve(never)),
            2 => (OperatorCall::ResolveRetry, resolve(again)),
            3 => (OperatorCall::Redrive, Operation::Redrive(name)),
            4 => (OperatorCall::Release, Operation::ReleaseByOperator(name)),
            _ => (OperatorCall::Forget, Operation::Forget(name)),
        };
        let call = async { store.apply(&operation).await?.acted() };
        self.ask(key, Request::Operate(act), call, Response::acted)
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
        request: Request,
        call: impl Future<Output = Result<T, Error>>,
        response: impl FnOnce(&Result<T, Error>) -> Response,
    ) -> anyhow::Result<Option<T>> {
        let impatient = self.rng.random_ratio(IMPATIENT_PERCENT, 100);
        let turns = impatient.then(|| self.rng.random_range(IMPATIENCE_TURNS));
        let began = self.now();
        let answer = tokio::select! {
            biased;
            answer = call => Some(answer),
            () = give_up(turns) => None,
        };
        let response = match &answer {
            Some(answer) => response(answer),
            None => Response::Unknown("given up".into()),
        };
        self.write(key, began, request, response)?;
        Ok(answer.and_then(Result::ok))
    }

    pub(super) fn write(
        &self,
        key: u32,
        began: u64,
        request: Request,
        response: Response,
    ) -> anyhow::Result<()> {
        let ended = if matches!(response, Response::Unknown(_)) {
            u64::MAX
        } else {
            self.now()
        };
        self.log.write(&Call {
            key,
            began,
            ended,
            request,
            response,
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

fn claimed(claimed: &Result<Claimed, Error>) -> Response {
    match claimed {
        Ok(Claimed::Granted(lease)) => Response::Granted(RunId::of(lease)),
        Ok(Claimed::Replayed(settled)) => Response::Replayed(RecordedEnd::of(settled)),
        Ok(Claimed::Busy { .. }) => Response::Busy,
        Ok(Claimed::NotYet { .. }) => Response::NotYet,
        Ok(Claimed::Parked) => Response::Parked,
        Ok(Claimed::Mismatched) => Response::Mismatched,
        Err(error) => Response::error(error),
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
