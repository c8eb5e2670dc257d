//! Armed points: the faults that wait at a worker's points, and the probe at its store that notices some of the points.

use super::ledger::{Ledger, Line};
use super::message::{ArmedPoint, Delivery, WorkerMessage};
use super::point::{Point, ProcessFault};
use super::worker::tell_driver;
use crate::harness::Interceptor;
use async_trait::async_trait;
use rustix::process::{Signal, getpid, kill_process};
use semel::protocol::{Answer, Claim, Claimed, Operation};
use semel::{Error, Key, Store};
use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How far a call is let go before the fault that waits within it: less than most calls take.
const UNDER_WAY_MAX: Duration = Duration::from_micros(1500);

/// A call that takes this part of a lease is written down as a stall: it may cost a lease.
const STALL_PARTS_OF_LEASE: u32 = 4;

/// The faults that wait in this process.
#[derive(Clone, Debug)]
pub(super) struct ArmedPoints {
    ledger: Ledger,
    stall: Duration,
    set: Arc<Mutex<HashMap<Key, ArmedPoint>>>,
}

// === impl ArmedPoints ===

impl ArmedPoints {
    pub(super) fn new(ledger: Ledger, lease: Duration) -> Self {
        let stall = lease / STALL_PARTS_OF_LEASE;
        Self {
            ledger,
            stall,
            set: Arc::default(),
        }
    }

    /// Sets the fault of a delivery, if it has one.
    pub(super) fn set(&self, key: Key, delivery: &Delivery) {
        if let Some(armed) = delivery.armed {
            self.lock().insert(key, armed);
        }
    }

    /// Takes the fault away that a delivery did not run into.
    pub(super) fn clear(&self, key: &Key) {
        self.lock().remove(key);
    }

    /// A run comes by: the fault closes here if it was set here.
    pub(super) fn pass(&self, key: &Key, point: Point) {
        let armed = match self.lock().get(key) {
            Some(armed) if armed.point == point => *armed,
            Some(_) | None => return,
        };
        self.clear(key);
        self.ledger.write(&Line::FaultHit(armed));
        match armed.fault {
            ProcessFault::Kill => signal(Signal::KILL),
            ProcessFault::Pause => {
                tell_driver(&WorkerMessage::Pausing);
                signal(Signal::STOP);
                tell_driver(&WorkerMessage::Resumed);
            }
        }
    }

    /// Makes a call, and comes by `point` while it is under way.
    pub(super) async fn pass_within<T>(
        &self,
        key: &Key,
        point: Point,
        call: impl Future<Output = T>,
    ) -> T {
        let waits = matches!(self.lock().get(key), Some(armed) if armed.point == point);
        let started = Instant::now();
        let mut call = pin!(call);
        let mut answer = None;
        if waits {
            tokio::select! {
                answered = &mut call => answer = Some(answered),
                () = sleep(UNDER_WAY_MAX.mul_f64(rand::random_range(0.0..1.0))) => {}
            }
            self.pass(key, point);
        }
        let answer = match answer {
            Some(answer) => answer,
            None => call.await,
        };
        self.note_stall(started.elapsed());
        answer
    }

    pub(super) fn note_stall(&self, took: Duration) {
        if took >= self.stall {
            let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
            self.ledger.write(&Line::Stalled { ms });
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Key, ArmedPoint>> {
        self.set.lock().expect("no holder of this lock panics")
    }
}

fn signal(signal: Signal) {
    kill_process(getpid(), signal).expect("a process may signal itself");
}

#[async_trait]
impl Interceptor for ArmedPoints {
    async fn apply(&self, store: &dyn Store, operation: &Operation) -> Result<Answer, Error> {
        let call = store.apply(operation);
        match operation {
            Operation::Claim(Claim { key, .. }) => {
                self.pass(key, Point::BeforeClaim);
                let answer = self.pass_within(key, Point::ClaimSent, call).await;
                if matches!(answer, Ok(Answer::Claimed(Claimed::Granted(_)))) {
                    self.pass(key, Point::ClaimAnswered);
                }
                answer
            }
            Operation::Renew { lease, .. } => {
                self.pass_within(&lease.key, Point::RenewSent, call).await
            }
            Operation::Complete { lease, .. } => {
                let answer = self.pass_within(&lease.key, Point::CompleteSent, call);
                let answer = answer.await;
                self.pass(&lease.key, Point::CompleteAnswered);
                answer
            }
            Operation::Fail { .. }
            | Operation::Release(_)
            | Operation::Look(_)
            | Operation::StepBegin { .. }
            | Operation::StepRestart { .. }
            | Operation::StepComplete { .. }
            | Operation::Resolve { .. }
            | Operation::Redrive(_)
            | Operation::ReleaseByOperator(_)
            | Operation::Forget(_)
            | Operation::Ready => call.await,
        }
    }
}
