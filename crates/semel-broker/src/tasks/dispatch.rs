//! One attempt: from a task's record to a request, and from the answer to what becomes of the task.

mod request;

use super::attempt;
use super::outcome::AttemptOutcome;
use super::queue_runner::{FinishedAttempt, QueueRunner, Trigger};
use super::schedule::{DueTask, Stage, is_too_old};
use crate::clock::Time;
use crate::failpoint::{Point, pass};
use crate::faults::Plan;
use crate::history::{DispatchResult, DispatchStart};
use crate::http_client::{Answer, OutgoingRequest};
use crate::proto::tasks::StoredTask;
use request::{TaskRequest, build};
use std::sync::Arc;
use std::time::Duration;

/// How long a task that lets others go first waits for one.
const YIELD_MAX: Duration = Duration::from_secs(1);

/// An attempt on its way.
#[derive(Debug)]
struct DispatchAttempt {
    runner: Arc<QueueRunner>,
    id: String,
    /// Begins with 1.
    attempt: u32,
    request: TaskRequest,
    plan: Plan,
}

/// Sends a task to its handler and sees to what follows.
pub(super) async fn dispatch(runner: Arc<QueueRunner>, due_task: DueTask, trigger: Trigger) {
    let id = due_task.id.to_string();
    let stored = match runner.stored(&id) {
        Ok(Some(stored)) => stored,
        Ok(None) => return runner.cancel_dispatch(&due_task.id),
        Err(error) => {
            tracing::error!(queue = runner.name, task = id, %error, "a task could not be read");
            return runner.cancel_dispatch(&due_task.id);
        }
    };
    let attempt = attempt_number(&stored, due_task.others);
    let plan = runner
        .context()
        .faults
        .plan(&[&runner.name], stored.sequence, attempt);
    if let Some(wait) = held_back(&due_task, trigger, &plan) {
        let until = runner.now().plus(wait);
        return runner.put_back(&due_task.id, until, plan.delay.is_none());
    }
    let started = runner.now();
    let outcome = if is_overdue(trigger, &stored, started) {
        AttemptOutcome::TooOld
    } else {
        let dispatch = DispatchAttempt {
            request: build(&runner, &stored, &id, attempt - 1, plan.cut).await,
            runner: Arc::clone(&runner),
            id,
            attempt,
            plan,
        };
        dispatch.deliver().await
    };
    let finished = FinishedAttempt {
        id: due_task.id,
        trigger,
        started,
        outcome,
        stored,
    };
    runner.finish_attempt(finished).await;
}

fn attempt_number(stored: &StoredTask, others: u32) -> u32 {
    let before = stored.task.as_ref().map_or(0, |task| task.dispatch_count);
    u32::try_from(before)
        .unwrap_or(0)
        .saturating_add(others)
        .saturating_add(1)
}

/// Whether a task waited, in a paused queue perhaps, for longer than it is stored.
fn is_overdue(trigger: Trigger, stored: &StoredTask, now: Time) -> bool {
    match trigger {
        Trigger::RunTask { .. } => false,
        Trigger::Due => {
            let created = stored.task.as_ref().map(attempt::created);
            created.is_some_and(|created| is_too_old(created, now))
        }
    }
}

/// How long a fault makes a task wait before it sets out: once for each attempt, and not when somebody asked for it.
fn held_back(due_task: &DueTask, trigger: Trigger, plan: &Plan) -> Option<Duration> {
    match (trigger, due_task.stage) {
        (Trigger::RunTask { .. }, _) | (Trigger::Due, Stage::PutBack) => None,
        (Trigger::Due, Stage::Fresh | Stage::Retry) => {
            plan.delay.or(plan.reorder.then_some(YIELD_MAX))
        }
    }
}

// === impl DispatchAttempt ===

impl DispatchAttempt {
    /// Delivers, as often as the plan says; the first delivery's outcome counts.
    async fn deliver(&self) -> AttemptOutcome {
        if self.plan.duplicate_at_once {
            let (outcome, _) = tokio::join!(self.deliver_once(), self.deliver_again());
            return outcome;
        }
        let outcome = self.deliver_once().await;
        if self.plan.duplicate && outcome == AttemptOutcome::Success {
            self.deliver_again().await;
        }
        outcome
    }

    async fn deliver_once(&self) -> AttemptOutcome {
        let (number, started) = self.begin();
        pass(Point::Dispatched);
        let answer = match (&self.request, self.plan.overlap) {
            (TaskRequest::Unroutable { why, .. }, _) => Answer::Unreachable(why.clone()),
            (TaskRequest::Http(call), None) => self.call(call).await,
            (TaskRequest::Http(call), Some(span)) => self.call_for(call, span).await,
        };
        let lost = self.plan.lose_answer;
        self.end(number, started, &answer, lost);
        pass(Point::AnswerHeard);
        match lost && matches!(answer, Answer::Status { .. }) {
            true => AttemptOutcome::NO_ANSWER,
            false => AttemptOutcome::of(&answer),
        }
    }

    /// A delivery too many: whatever comes of it changes nothing.
    async fn deliver_again(&self) {
        if let TaskRequest::Http(call) = &self.request {
            let (number, started) = self.begin();
            let answer = self.call(call).await;
            self.end(number, started, &answer, false);
        }
    }

    async fn call(&self, call: &OutgoingRequest) -> Answer {
        let http_client = &self.runner.context().http_client;
        http_client.deliver(call.clone()).await
    }

    /// Waits for the answer for so long; then the handler is left running.
    async fn call_for(&self, call: &OutgoingRequest, span: Duration) -> Answer {
        let (runner, call) = (Arc::clone(&self.runner), call.clone());
        self.runner.leave_running();
        let running = tokio::spawn(async move {
            let answer = runner.context().http_client.deliver(call).await;
            runner.left_one_ended();
            answer
        });
        tokio::select! {
            answer = running => answer.unwrap_or_else(|error| Answer::Unreachable(error.to_string())),
            () = self.runner.context().clock.sleep(span) => Answer::TimedOut,
        }
    }

    /// Notes down what came of a delivery.
    fn end(&self, number: u64, started: Time, answer: &Answer, lost: bool) {
        let success = AttemptOutcome::of(answer) == AttemptOutcome::Success;
        let took = self.runner.now().since(started);
        let result = DispatchResult::of(answer, success, lost);
        self.runner.context().history.end(number, result, took);
    }

    fn begin(&self) -> (u64, Time) {
        let at = self.runner.now();
        let number = self.runner.context().history.begin(DispatchStart {
            at,
            resource: &self.runner.name,
            id: &self.id,
            attempt: self.attempt,
            target: self.request.target(),
            faults: self.plan.names(),
        });
        (number, at)
    }
}
