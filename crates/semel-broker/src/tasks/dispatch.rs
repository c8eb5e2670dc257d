//! One attempt: from a task's record to a request, and from the answer to what becomes of the task.

mod errand;

use super::lane::{Cause, Landing, Lane};
use super::outcome::{Outcome, noted};
use super::queue::{Departure, Stage, is_too_old};
use super::record;
use crate::clock::Time;
use crate::failpoint::{Point, pass};
use crate::faults::Plan;
use crate::history::{self, Begun};
use crate::http_client::{Answer, OutgoingRequest};
use crate::proto::tasks::KeptTask;
use errand::Errand;
use std::sync::Arc;
use std::time::Duration;

/// How long a task that lets others go first waits for one.
const YIELD_MAX: Duration = Duration::from_secs(1);

/// An attempt on its way.
#[derive(Debug)]
struct Flight {
    lane: Arc<Lane>,
    id: String,
    /// Begins with 1.
    attempt: u32,
    errand: Errand,
    plan: Plan,
}

/// Sends a task to its handler and sees to what follows.
pub(super) async fn fly(lane: Arc<Lane>, departure: Departure, cause: Cause) {
    let id = departure.id.to_string();
    let kept = match lane.kept(&id) {
        Ok(Some(kept)) => kept,
        Ok(None) => return lane.call_off(&departure.id),
        Err(error) => {
            tracing::error!(queue = lane.name, task = id, %error, "a task could not be read");
            return lane.call_off(&departure.id);
        }
    };
    let attempt = attempt_number(&kept, departure.others);
    let plan = lane
        .context()
        .faults
        .plan(&[&lane.name], kept.sequence, attempt);
    if let Some(wait) = steps_back(&departure, cause, &plan) {
        let until = lane.now().plus(wait);
        return lane.put_back(&departure.id, until, plan.delay.is_none());
    }
    let started = lane.now();
    if is_overdue(cause, &kept, started) {
        let landing = Landing {
            id: departure.id,
            cause,
            started,
            outcome: Outcome::TooOld,
            kept,
        };
        return lane.settle(landing).await;
    }
    let errand = errand::of(&lane, &kept, &id, attempt - 1).await;
    let flight = Flight {
        lane: Arc::clone(&lane),
        id,
        attempt,
        errand,
        plan,
    };
    let outcome = flight.deliver().await;
    let landing = Landing {
        id: departure.id,
        cause,
        started,
        outcome,
        kept,
    };
    lane.settle(landing).await;
}

fn attempt_number(kept: &KeptTask, others: u32) -> u32 {
    let before = kept.task.as_ref().map_or(0, |task| task.dispatch_count);
    u32::try_from(before)
        .unwrap_or(0)
        .saturating_add(others)
        .saturating_add(1)
}

/// Whether a task waited, in a paused queue perhaps, for longer than it is kept.
fn is_overdue(cause: Cause, kept: &KeptTask, now: Time) -> bool {
    match cause {
        Cause::Asked { .. } => false,
        Cause::Due => {
            let created = kept.task.as_ref().map(record::created);
            created.is_some_and(|created| is_too_old(created, now))
        }
    }
}

/// How long a fault makes a task wait before it sets out: once for each attempt, and not when somebody asked for it.
fn steps_back(departure: &Departure, cause: Cause, plan: &Plan) -> Option<Duration> {
    match (cause, departure.stage) {
        (Cause::Asked { .. }, _) | (Cause::Due, Stage::PutBack) => None,
        (Cause::Due, Stage::Fresh | Stage::Retry) => {
            plan.delay.or(plan.reorder.then_some(YIELD_MAX))
        }
    }
}

// === impl Flight ===

impl Flight {
    /// Delivers, as often as the plan says; the first delivery's outcome counts.
    async fn deliver(&self) -> Outcome {
        if self.plan.duplicate_at_once {
            let (outcome, _) = tokio::join!(self.deliver_once(), self.deliver_again());
            return outcome;
        }
        let outcome = self.deliver_once().await;
        if self.plan.duplicate && outcome == Outcome::Success {
            self.deliver_again().await;
        }
        outcome
    }

    async fn deliver_once(&self) -> Outcome {
        let (number, started) = self.begin();
        pass(Point::Dispatched);
        let answer = match (&self.errand, self.plan.overlap) {
            (Errand::Nowhere { why, .. }, _) => Answer::Unreachable(why.clone()),
            (Errand::Call(call), None) => self.call(call).await,
            (Errand::Call(call), Some(span)) => self.call_for(call, span).await,
        };
        let (outcome, result) = match (&answer, self.plan.lose_answer) {
            (Answer::Status { code, .. }, true) => {
                let lost = history::Result::AnswerLost { status: *code };
                (Outcome::SILENCE, lost)
            }
            (answer, _) => (Outcome::of(answer), noted(answer)),
        };
        let took = self.lane.now().since(started);
        self.lane.context().history.end(number, result, took);
        pass(Point::AnswerHeard);
        outcome
    }

    /// A delivery too many: whatever comes of it changes nothing.
    async fn deliver_again(&self) {
        if let Errand::Call(call) = &self.errand {
            let (number, started) = self.begin();
            let answer = self.call(call).await;
            let took = self.lane.now().since(started);
            let history = &self.lane.context().history;
            history.end(number, noted(&answer), took);
        }
    }

    async fn call(&self, call: &OutgoingRequest) -> Answer {
        let call = OutgoingRequest {
            cut: self.plan.cut,
            ..call.clone()
        };
        self.lane.context().http_client.deliver(call).await
    }

    /// Waits for the answer for so long; then the handler is left running.
    async fn call_for(&self, call: &OutgoingRequest, span: Duration) -> Answer {
        let lane = Arc::clone(&self.lane);
        let call = OutgoingRequest {
            cut: self.plan.cut,
            ..call.clone()
        };
        self.lane.leave_running();
        let running = tokio::spawn(async move {
            let answer = lane.context().http_client.deliver(call).await;
            lane.left_one_ended();
            answer
        });
        tokio::select! {
            answer = running => answer.unwrap_or_else(|error| Answer::Unreachable(error.to_string())),
            () = self.lane.context().clock.sleep(span) => Answer::TimedOut,
        }
    }

    fn begin(&self) -> (u64, Time) {
        let at = self.lane.now();
        let number = self.lane.context().history.begin(Begun {
            at,
            resource: &self.lane.name,
            id: &self.id,
            attempt: self.attempt,
            target: self.errand.target(),
            faults: self.plan.names(),
        });
        (number, at)
    }
}
