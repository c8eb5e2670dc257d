//! The probe at a gate's store: writes down which runs are in flight, and passes the points within calls.

use super::points::{BEFORE_COMPLETE, CLAIM_SENT, COMPLETE_SENT};
use crate::crash::Case;
use crate::harness::{Event, FaultPoints, Interceptor, Ledger, WorkId};
use async_trait::async_trait;
use semel::clock::{Clock, SystemClock};
use semel::protocol::{Answer, Claim, Claimed, FailKind, Held, Lease, Operation, Owner};
use semel::{Error, Key, Store};
use std::collections::HashMap;
use std::sync::Mutex;

/// How many works ahead of the known ones a key is looked for.
const AHEAD_MAX: u32 = 100_000;

/// No fault is armed here: a renewal only says whether it was held up.
const RENEW_SENT: &str = "renew_sent";

/// Listens in on a gate's store.
#[derive(Debug)]
pub(super) struct StoreProbe {
    ledger: Ledger,
    fault_points: FaultPoints,
    works: Mutex<Works>,
    clock: SystemClock,
}

/// Which work a key is of. Works are numbered as they are sent, so those that are not known yet are the next ones.
#[derive(Debug)]
pub(super) struct Works {
    case: Case,
    known: HashMap<Key, WorkId>,
}

// === impl StoreProbe ===

impl StoreProbe {
    pub(super) fn new(case: &Case, ledger: Ledger, fault_points: FaultPoints) -> Self {
        Self {
            ledger,
            fault_points,
            works: Mutex::new(Works::new(case)),
            clock: SystemClock::new(),
        }
    }

    fn received(&self, claim: &Claim) {
        let mut works = self.works.lock().expect("no holder of this lock panics");
        let work = works.of(&claim.key);
        drop(works);
        let delivery = delivery(claim.owner);
        self.ledger.write(&Event::Received { delivery, work });
    }

    fn answered(&self, owner: Owner) {
        let delivery = delivery(owner);
        self.ledger.write(&Event::Answered { delivery });
    }

    /// Passes the answer on to a run that has said how it ended.
    fn ended(&self, lease: &Lease, answer: Result<Answer, Error>) -> Result<Answer, Error> {
        if answer.is_ok() {
            self.answered(lease.owner);
        }
        answer
    }
}

#[async_trait]
impl Interceptor for StoreProbe {
    async fn apply(&self, store: &dyn Store, operation: &Operation) -> Result<Answer, Error> {
        let call = store.apply(operation);
        match operation {
            Operation::Claim(claim) => {
                self.received(claim);
                let answer = self.fault_points.pass_within(None, CLAIM_SENT, call).await;
                if !matches!(answer, Ok(Answer::Claimed(Claimed::Granted(_)))) {
                    self.answered(claim.owner);
                }
                answer
            }
            Operation::Renew { lease, .. } => {
                let answer = self.fault_points.pass_within(None, RENEW_SENT, call).await;
                if matches!(answer, Ok(Answer::Held(Held::Stale))) {
                    self.answered(lease.owner);
                }
                answer
            }
            Operation::Complete { lease, .. } => {
                self.fault_points.pass(None, BEFORE_COMPLETE);
                let call = self.fault_points.pass_within(None, COMPLETE_SENT, call);
                self.ended(lease, call.await)
            }
            Operation::Fail { lease, how } => {
                if matches!(how.kind, FailKind::InDoubt { .. }) {
                    self.ledger.write(&Event::Doubted {
                        delivery: delivery(lease.owner),
                        at: self.clock.wall().0,
                    });
                }
                self.ended(lease, call.await)
            }
            Operation::Release { lease, .. } => self.ended(lease, call.await),
            Operation::Look(_)
            | Operation::StepBegin { .. }
            | Operation::StepRestart { .. }
            | Operation::StepComplete { .. }
            | Operation::Resolve { .. }
            | Operation::Redrive { .. }
            | Operation::Retain { .. }
            | Operation::ReleaseByOperator { .. }
            | Operation::Forget(_)
            | Operation::Steps(_)
            | Operation::Index { .. }
            | Operation::Find(_)
            | Operation::Ready => call.await,
        }
    }
}

// === impl Works ===

impl Works {
    pub(super) fn new(case: &Case) -> Self {
        Self {
            case: case.clone(),
            known: HashMap::new(),
        }
    }

    pub(super) fn of(&mut self, key: &Key) -> WorkId {
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
