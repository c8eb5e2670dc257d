//! A store that loses answers on request, and a clock that follows tokio's paused time.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "each test file uses its own part of this"
)]

use async_trait::async_trait;
use bytes::Bytes;
use semel::clock::{Clock, Time};
use semel::memory::MemoryStore;
use semel::protocol::{Answer, Operation, Record, State};
use semel::store::{Cursor, Page, Sharing, Swept};
use semel::work::{Failure, Work};
use semel::{Ended, Error, Fingerprint, Key, Outcome, Run, Semel, Store};
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

/// What goes wrong with one call.
#[derive(Clone, Copy, Debug)]
pub enum Trouble {
    /// The call never reaches the store.
    Down,
    /// The call is made, and its answer is lost.
    AnswerLost,
    /// The call is made, and its answer is late.
    Late(Duration),
    /// The call is made, and that its answer is lost is known late.
    LostLate(Duration),
}

/// A memory store whose next calls go wrong as planned.
#[derive(Clone, Debug)]
pub struct Flaky {
    inner: Arc<MemoryStore>,
    clock: Arc<TokioClock>,
    plan: Arc<Mutex<VecDeque<Trouble>>>,
    down: Arc<Mutex<bool>>,
    refused: Arc<Mutex<Option<(Refused, Error)>>>,
    looks: Arc<AtomicU32>,
}

/// The calls that are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// What is said at the end of a run.
    Outcomes,
    /// The same, when it has more bytes than that.
    OutcomesOver(usize),
    /// Reading a record.
    Looks,
}

pub const SECOND: Duration = Duration::from_secs(1);

/// An effect's future.
pub type Said = Pin<Box<dyn Future<Output = Result<Outcome, Failure>> + Send>>;

/// tokio's clock, as a store sees it.
#[derive(Debug)]
pub struct TokioClock(Instant);

pub fn key(n: u8) -> Key {
    Key::from_bytes([n; 32])
}

pub fn payload() -> Fingerprint {
    Fingerprint::of(b"payload")
}

pub async fn succeed(_: Run) -> Result<Outcome, Failure> {
    Ok(Outcome::ok("done"))
}

pub async fn must_not_run(_: Run) -> Result<Outcome, Failure> {
    panic!("the effect ran although it must not")
}

/// What a duplicate hears: it must not run.
pub async fn duplicate(semel: &Semel, work: Work) -> Ended {
    semel.run(work, must_not_run).await.unwrap()
}

#[track_caller]
pub fn assert_ran(ended: &Ended) {
    assert!(matches!(ended, Ended::Ran(_)), "{ended:?}");
}

#[track_caller]
pub fn assert_replayed(ended: &Ended) {
    assert!(matches!(ended, Ended::Replayed(_)), "{ended:?}");
}

#[track_caller]
pub fn assert_busy(ended: &Ended) {
    assert!(matches!(ended, Ended::Busy { .. }), "{ended:?}");
}

#[track_caller]
pub fn assert_failed(ended: &Ended, state: State) {
    let so = matches!(ended, Ended::Failed(failed) if failed.state == state);
    assert!(so, "{ended:?}");
}

// === impl Flaky ===

impl Flaky {
    pub fn new() -> Self {
        let clock = Arc::new(TokioClock(Instant::now()));
        let inner = Arc::new(MemoryStore::with_clock(Arc::clone(&clock) as Arc<dyn Clock>));
        Self {
            inner,
            clock,
            plan: Arc::default(),
            down: Arc::default(),
            refused: Arc::default(),
            looks: Arc::default(),
        }
    }

    /// The store's time.
    pub fn now(&self) -> Time {
        self.clock.wall()
    }

    /// The next calls, one after the other, go wrong like this.
    pub fn plan(&self, trouble: impl IntoIterator<Item = Trouble>) {
        self.plan.lock().unwrap().extend(trouble);
    }

    /// Nothing reaches the store until it is up again.
    pub fn set_down(&self, down: bool) {
        *self.down.lock().unwrap() = down;
    }

    /// These calls hear this error, without being made, until they are taken again.
    pub fn refuse(&self, part: Refused, error: &Error) {
        *self.refused.lock().unwrap() = Some((part, error.clone()));
    }

    pub fn take_again(&self) {
        *self.refused.lock().unwrap() = None;
    }

    /// How often a record was read.
    pub fn looks(&self) -> u32 {
        self.looks.load(Ordering::SeqCst)
    }

    fn takes(&self, this: Refused) -> Result<(), Error> {
        match (&*self.refused.lock().unwrap(), this) {
            (Some((Refused::OutcomesOver(max), error)), Refused::OutcomesOver(bytes))
                if bytes > *max =>
            {
                Err(error.clone())
            }
            (Some((Refused::Outcomes, error)), Refused::OutcomesOver(_))
            | (Some((Refused::Looks, error)), Refused::Looks) => Err(error.clone()),
            (Some(_) | None, _) => Ok(()),
        }
    }

    async fn call<T>(&self, call: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let lost = Err(Error::unavailable("by plan"));
        if *self.down.lock().unwrap() {
            return lost;
        }
        let trouble = self.plan.lock().unwrap().pop_front();
        match trouble {
            None => call.await,
            Some(Trouble::Down) => lost,
            Some(Trouble::AnswerLost) => {
                drop(call.await?);
                lost
            }
            Some(Trouble::LostLate(by)) => {
                drop(call.await?);
                tokio::time::sleep(by).await;
                lost
            }
            Some(Trouble::Late(by)) => {
                let answer = call.await;
                tokio::time::sleep(by).await;
                answer
            }
        }
    }
}

#[async_trait]
impl Store for Flaky {
    fn sharing(&self) -> Sharing {
        Sharing::Shared
    }

    async fn apply(&self, operation: &Operation) -> Result<Answer, Error> {
        match operation {
            Operation::Look(_) => {
                self.looks.fetch_add(1, Ordering::SeqCst);
                self.takes(Refused::Looks)?;
            }
            Operation::Complete { .. } | Operation::Fail { .. } | Operation::Release { .. } => {
                let bytes = operation.result().map_or(0, Bytes::len);
                self.takes(Refused::OutcomesOver(bytes))?;
            }
            _ => {}
        }
        self.call(self.inner.apply(operation)).await
    }

    async fn list(
        &self,
        state: Option<State>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<(Key, Record)>, Error> {
        self.call(Store::list(self.inner.as_ref(), state, after, limit))
            .await
    }

    async fn sweep(&self, after: Option<&Cursor>) -> Result<Swept, Error> {
        self.call(self.inner.sweep(after)).await
    }
}

// === impl TokioClock ===

impl Clock for TokioClock {
    fn wall(&self) -> Time {
        Time(1_700_000_000_000_000).plus(self.monotonic())
    }

    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }
}
