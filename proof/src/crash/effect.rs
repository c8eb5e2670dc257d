//! Effects: what a run does to the world outside, in each mode.

use super::case::{Case, Mode};
use super::downstream::{Charge, charge};
use super::message::{Delivery, EffectBehaviour};
use super::point::Point;
use crate::faults::Defect;
use crate::harness::{Attempt, EffectPart, Event, FaultPoints, Ledger, StoreKind};
use semel::work::Failure;
use semel::{Key, Outcome, Run};
use std::time::Duration;
use tokio::time::sleep;

/// Does what deliveries ask for.
#[derive(Debug)]
pub(crate) struct Actor {
    pub(crate) case: Case,
    pub(crate) ledger: Ledger,
    pub(crate) fault_points: FaultPoints,
}

// === impl Actor ===

impl Actor {
    /// The effect of a run.
    pub(super) async fn act(&self, run: &Run, delivery: &Delivery) -> Result<Outcome, Failure> {
        let lease = run.lease();
        let attempt = Attempt {
            delivery: delivery.id,
            work: delivery.work,
            fence: lease.fence.0,
            attempt: lease.attempt,
        };
        self.ledger.write(&Event::Begun(attempt));
        let lasts = match delivery.behaviour {
            EffectBehaviour::Acts { ms } => Duration::from_millis(ms),
            EffectBehaviour::Fails => return Err(Failure::retryable("the handler said no")),
            EffectBehaviour::NotStarted => return Err(Failure::not_started("nothing was begun")),
            EffectBehaviour::FailsForGood => {
                return Err(Failure::final_failure("this will never do"));
            }
        };
        self.pass(&lease.key, Point::EffectBegun);
        sleep(lasts / 2).await;
        let outcome = match self.case.mode {
            Mode::Transaction if self.case.location.kind == StoreKind::Firestore => {
                self.in_a_commit(lease, attempt).await
            }
            Mode::Transaction => self.in_a_transaction(lease, attempt).await,
            Mode::Downstream => self.downstream(run, attempt).await,
            Mode::Park | Mode::Retry | Mode::Probe => self.plainly(run, attempt).await,
        };
        sleep(lasts / 2).await;
        outcome
    }

    /// What a handler does that does not wait for its claim.
    pub(super) fn act_unclaimed(&self, delivery: &Delivery) {
        let attempt = Attempt {
            delivery: delivery.id,
            work: delivery.work,
            fence: 0,
            attempt: 0,
        };
        self.take_effect(attempt, EffectPart::Work);
    }

    pub(super) fn pass(&self, key: &Key, point: Point) {
        self.fault_points.pass(Some(key), &point.name());
    }

    /// The effect is a line of the ledger; a step is another.
    async fn plainly(&self, run: &Run, attempt: Attempt) -> Result<Outcome, Failure> {
        let key = &run.lease().key;
        let nonce = if self.case.defect == Some(Defect::EffectBeforeClaim) {
            nonce()
        } else {
            self.take_effect(attempt, EffectPart::Work)
        };
        self.pass(key, Point::EffectDone);
        if attempt.work.has_step() {
            let receipt = async |_| {
                self.pass(key, Point::StepBegun);
                let nonce = self.take_effect(attempt, EffectPart::Step);
                self.pass(key, Point::StepDone);
                Ok(nonce.into())
            };
            run.step("receipt", receipt).await?;
            self.pass(key, Point::StepRecorded);
        }
        Ok(Outcome::ok(nonce))
    }

    /// The effect is a charge at the downstream, under the run's key or its step's.
    async fn downstream(&self, run: &Run, attempt: Attempt) -> Result<Outcome, Failure> {
        let key = run.lease().key;
        if !attempt.work.has_step() {
            let nonce = self.charge(key, attempt).await?;
            self.pass(&key, Point::EffectDone);
            return Ok(Outcome::ok(nonce));
        }
        let charging = async |step: semel::Step| {
            self.pass(&key, Point::StepBegun);
            let nonce = self.charge(step.key, attempt).await?;
            self.pass(&key, Point::StepDone);
            Ok(nonce.into())
        };
        let nonce = run.step("charge", charging).await?;
        self.pass(&key, Point::StepRecorded);
        self.pass(&key, Point::EffectDone);
        Ok(Outcome::ok(nonce))
    }

    pub(crate) async fn charge(&self, key: Key, attempt: Attempt) -> Result<String, Failure> {
        let asked = Charge {
            key: key.to_string(),
            work: attempt.work,
            nonce: nonce(),
        };
        charge(self.case.downstream, &asked)
            .await
            .map_err(|error| Failure::in_doubt(format!("the downstream did not answer: {error}")))
    }

    pub(crate) fn take_effect(&self, attempt: Attempt, part: EffectPart) -> String {
        let nonce = nonce();
        self.ledger.write(&Event::Effect {
            attempt,
            part,
            nonce: nonce.clone(),
        });
        nonce
    }
}

pub(super) fn nonce() -> String {
    format!("{:032x}", rand::random::<u128>())
}
