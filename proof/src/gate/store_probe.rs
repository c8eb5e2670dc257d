//! The probe at a gate's store: writes down which runs are in hand, and passes the points within calls.

use super::armed_fault::{BEFORE_COMPLETE, CLAIM_SENT, COMPLETE_SENT, FaultPoints};
use crate::crash::{Case, Ledger, Line, WorkId};
use crate::harness::Interceptor;
use async_trait::async_trait;
use semel::clock::{Clock, SystemClock};
use semel::protocol::{Answer, Claim, Claimed, FailKind, Held, Lease, Operation, Owner};
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

/// How often a process looks whether it was kept from going on.
const WATCH: Duration = Duration::from_millis(10);

/// Listens in on a gate's store.
#[derive(Clone, Debug)]
pub(super) struct StoreProbe {
    ledger: Ledger,
    fault_points: Arc<FaultPoints>,
    stall: Duration,
    works: Arc<Mutex<Works>>,
    clock: Arc<SystemClock>,
}

/// Which work a key is of. Works are numbered as they are sent, so those that are not known yet are the next ones.
#[derive(Debug)]
struct Works {
    case: Case,
    known: HashMap<Key, WorkId>,
}

/// How many works ahead of the known ones a key is looked for.
const AHEAD_MAX: u32 = 100_000;

// === impl StoreProbe ===

impl StoreProbe {
    pub(super) fn new(case: &Case, ledger: Ledger, fault_points: Arc<FaultPoints>) -> Self {
        let works = Works {
            case: case.clone(),
            known: HashMap::new(),
        };
        Self {
            ledger,
            fault_points,
            stall: stall(case),
            works: Arc::new(Mutex::new(works)),
            clock: Arc::new(SystemClock::new()),
        }
    }

    fn received(&self, claim: &Claim) {
        let mut works = self.works.lock().expect("no holder of this lock panics");
        let work = works.of(&claim.key);
        drop(works);
        self.ledger.write(&Line::Received {
            delivery: delivery(claim.owner),
            work,
        });
    }

    fn answered(&self, owner: Owner) {
        self.ledger.write(&Line::Answered {
            delivery: delivery(owner),
        });
    }

    /// Passes the answer on to a run that has said how it ended.
    fn ended(&self, lease: &Lease, answer: Result<Answer, Error>) -> Result<Answer, Error> {
        if answer.is_ok() {
            self.answered(lease.owner);
        }
        answer
    }

    /// Makes a call, and comes by `point` while it is under way.
    async fn within<T>(&self, point: &str, call: impl Future<Output = T>) -> T {
        let started = Instant::now();
        let mut call = pin!(call);
        let mut answer = None;
        if self.fault_points.waits_at(point) {
            tokio::select! {
                answered = &mut call => answer = Some(answered),
                () = sleep(UNDER_WAY_MAX.mul_f64(rand::random_range(0.0..1.0))) => {}
            }
            self.fault_points.pass(point);
        }
        let answer = match answer {
            Some(answer) => answer,
            None => call.await,
        };
        note_stall(&self.ledger, self.stall, started.elapsed());
        answer
    }
}

// === impl Works ===

impl Works {
    fn of(&mut self, key: &Key) -> WorkId {
        let next = u32::try_from(self.known.len()).unwrap_or(u32::MAX);
        for number in next..next.saturating_add(AHEAD_MAX) {
            if let Some(work) = self.known.get(key) {
                return *work;
            }
            let work = WorkId(number);
            let its_key = self.case.key(work).expect("a case has a name");
            self.known.insert(its_key, work);
        }
        panic!("no work has the key {key}");
    }
}

/// The number of a run, known to its gate before the claim and to its handler from the address of its steps.
pub(super) fn delivery(owner: Owner) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = owner.0;
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}

fn stall(case: &Case) -> Duration {
    case.lease / STALL_PARTS_OF_LEASE
}

fn note_stall(ledger: &Ledger, stall: Duration, took: Duration) {
    if took >= stall {
        let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        ledger.write(&Line::Stalled { ms });
    }
}

/// Writes down when a process was kept from going on: a loaded machine pauses it as SIGSTOP does.
pub(super) async fn watch(case: Case, ledger: Ledger) {
    loop {
        let before = Instant::now();
        sleep(WATCH).await;
        note_stall(&ledger, stall(&case), before.elapsed());
    }
}

#[async_trait]
impl Interceptor for StoreProbe {
    async fn apply(&self, store: &dyn Store, operation: &Operation) -> Result<Answer, Error> {
        let call = store.apply(operation);
        match operation {
            Operation::Claim(claim) => {
                self.received(claim);
                let answer = self.within(CLAIM_SENT, call).await;
                if !matches!(answer, Ok(Answer::Claimed(Claimed::Granted(_)))) {
                    self.answered(claim.owner);
                }
                answer
            }
            Operation::Renew { lease, .. } => {
                let started = Instant::now();
                let answer = call.await;
                note_stall(&self.ledger, self.stall, started.elapsed());
                if matches!(answer, Ok(Answer::Held(Held::Stale))) {
                    self.answered(lease.owner);
                }
                answer
            }
            Operation::Complete { lease, .. } => {
                self.fault_points.pass(BEFORE_COMPLETE);
                self.ended(lease, self.within(COMPLETE_SENT, call).await)
            }
            Operation::Fail { lease, how } => {
                if matches!(how.kind, FailKind::InDoubt { .. }) {
                    self.ledger.write(&Line::Doubted {
                        delivery: delivery(lease.owner),
                        at: self.clock.wall().0,
                    });
                }
                self.ended(lease, call.await)
            }
            Operation::Release(lease) => self.ended(lease, call.await),
            Operation::Look(_)
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
