//! A caller: makes calls to the store, sometimes without the patience to wait for the answer, and writes all of it
//! down.

use super::call::{Call, Request, Response};
use super::racer::GrantedRun;
use crate::harness::Ledger;
use bytes::Bytes;
use rand::Rng;
use rand::rngs::StdRng;
use semel::clock::{Clock, SystemClock};
use semel::protocol::{Answer, Finding, InDoubt, Operation, Resolution, StepBegun};
use semel::{Key, Outcome, Store};
use std::sync::Arc;
use std::time::Duration;

/// How often the impatient let everybody else go first before they give up.
const IMPATIENCE_TURNS: std::ops::Range<u32> = 0..12;

/// Retention that a keeper asks for, in ms: around that of claims.
const RETAIN_MS: std::ops::Range<u64> = 50..400;

/// How many calls in a hundred are impatient.
const IMPATIENT_PERCENT: u32 = 3;

/// Makes calls and writes them down.
#[derive(Debug)]
pub(super) struct Caller {
    pub(super) store: Arc<dyn Store>,
    pub(super) keys: Arc<[Key]>,
    pub(super) rng: StdRng,
    ledger: Ledger,
    clock: SystemClock,
}

// === impl Caller ===

impl Caller {
    pub(super) fn new(
        store: Arc<dyn Store>,
        keys: Arc<[Key]>,
        ledger: Ledger,
        rng: StdRng,
    ) -> Self {
        Self {
            store,
            keys,
            rng,
            ledger,
            clock: SystemClock::new(),
        }
    }

    /// Makes a call and writes it down. A call given up may still be done, at any later time.
    pub(super) async fn call(&mut self, key: u32, operation: Operation) -> Option<Answer> {
        let impatient = self.rng.random_ratio(IMPATIENT_PERCENT, 100);
        let turns = impatient.then(|| self.rng.random_range(IMPATIENCE_TURNS));
        let began = self.now();
        let answer = tokio::select! {
            biased;
            answer = self.store.apply(&operation) => Some(answer),
            () = give_up(turns) => None,
        };
        let response = match &answer {
            Some(answer) => Response::of(answer),
            None => Response::Unknown("given up".into()),
        };
        self.write(key, began, Request::of(&operation), response);
        answer.and_then(Result::ok)
    }

    /// Does a step as a run would; a step in doubt is begun again under the policy `retry`.
    pub(super) async fn step(&mut self, run: &GrantedRun, name: &str) {
        let (key, retries) = (run.key, run.terms.in_doubt == InDoubt::Retry);
        let (lease, name) = (run.lease.clone(), name.to_owned());
        let begin = Operation::StepBegin {
            lease: lease.clone(),
            name: name.clone(),
        };
        match self.call(key, begin).await {
            Some(Answer::StepBegun(StepBegun::Run)) => {}
            Some(Answer::StepBegun(StepBegun::InDoubt(_))) if retries => {
                let (lease, name) = (lease.clone(), name.clone());
                let restart = Operation::StepRestart { lease, name };
                self.call(key, restart).await;
            }
            Some(_) | None => return,
        }
        if !self.rng.random_bool(0.2) {
            let result = Bytes::from(self.rng.random::<u64>().to_string());
            let complete = Operation::StepComplete {
                lease,
                name,
                result,
            };
            self.call(key, complete).await;
        }
    }

    /// An operator's act, or a keeper's.
    pub(super) async fn operate(&mut self, key: u32) {
        let Some(name) = self.keys.get(key as usize).copied() else {
            return;
        };
        let result = self.result();
        let resolve = |finding| Operation::Resolve {
            key: name,
            how: Resolution::new(finding),
            by: Bytes::new(),
        };
        let operation = match self.rng.random_range(0..7) {
            0 => resolve(Finding::Succeeded(result)),
            1 => resolve(Finding::Failed(result)),
            2 => resolve(Finding::Retry),
            3 => Operation::Redrive {
                key: name,
                by: Bytes::new(),
            },
            4 => Operation::ReleaseByOperator {
                key: name,
                by: Bytes::new(),
            },
            5 => Operation::Retain {
                key: name,
                retention: Duration::from_millis(self.rng.random_range(RETAIN_MS)),
            },
            _ => Operation::Forget(name),
        };
        self.call(key, operation).await;
    }

    /// A result that nobody else records.
    pub(super) fn result(&mut self) -> Bytes {
        Outcome::ok(self.rng.random_range(1..u64::MAX).to_string()).encode()
    }

    pub(super) fn write(&self, key: u32, began: u64, request: Request, response: Response) {
        let ended = if matches!(response, Response::Unknown(_)) {
            u64::MAX
        } else {
            self.now()
        };
        self.ledger.write(&Call {
            key,
            began,
            ended,
            request,
            response,
        });
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
