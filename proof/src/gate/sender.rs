//! The sender: creates tasks at the broker, each until it knows that the broker has it, and lets API clients ask.

use super::program::QUEUE;
use super::storm::{ClientAnswer, storm};
use crate::crash::{Case, payload};
use crate::harness::WorkId;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use semel_rig::http::{Answer, NoAnswer, Request};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// How long an answer may take before the sender gives up on it.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// The pause before a task is offered again.
const AGAIN: Duration = Duration::from_millis(50);

/// Where everybody is, and what was unclear.
#[derive(Clone, Debug)]
pub(super) struct TaskSender {
    pub(super) case: Arc<Case>,
    pub(super) broker: u16,
    /// Where tasks go: through a link to any gate.
    pub(super) front: u16,
    pub(super) gates: Vec<u16>,
    pub(super) unclear: Arc<AtomicU32>,
}

// === impl TaskSender ===

impl TaskSender {
    /// Sends a piece of work its way: as a task, or as a storm of so many equal requests.
    pub(super) fn send(
        &self,
        sent: &mut JoinSet<anyhow::Result<Vec<ClientAnswer>>>,
        work: WorkId,
        storm_of: usize,
    ) {
        let sender = self.clone();
        if self.case.is_asked_for(work) {
            sent.spawn(async move { storm(&sender, work, storm_of).await });
        } else {
            sent.spawn(async move {
                sender.create(work).await?;
                Ok(Vec::new())
            });
        }
    }

    /// Delivers a piece of work once more, as the broker does, straight to the last gate.
    pub(super) fn deliver_again(
        &self,
        sent: &mut JoinSet<anyhow::Result<Vec<ClientAnswer>>>,
        work: WorkId,
    ) {
        let gate = self.gates.last().copied().unwrap_or_default();
        let delivery = Request::post_json("/work", payload(work)).within(ANSWER_WITHIN);
        let delivery = if self.case.is_asked_for(work) {
            delivery
        } else {
            delivery
                .header("x-cloudtasks-queuename", "works")
                .header("x-cloudtasks-taskname", task_id(work))
        };
        sent.spawn(async move {
            // Whatever it hears, the broker has the task, too.
            delivery.send(gate).await.ok();
            Ok(Vec::new())
        });
    }

    /// Creates a task under a name of its own, again and again until it is known to be there.
    async fn create(&self, work: WorkId) -> anyhow::Result<()> {
        let task = json!({"task": {
            "name": format!("{QUEUE}/tasks/{}", task_id(work)),
            "httpRequest": {
                "url": format!("http://127.0.0.1:{}/work", self.front),
                "httpMethod": "POST",
                "headers": {"content-type": "application/json"},
                "body": BASE64_STANDARD.encode(payload(work)),
            },
        }});
        let create = Request::post_json(format!("/v2/{QUEUE}/tasks"), task.to_string())
            .within(ANSWER_WITHIN);
        loop {
            match self.ask(&create, self.broker).await {
                // An earlier try was heard, and its answer lost.
                Some(answer) if answer.status == 200 || answer.status == 409 => return Ok(()),
                Some(answer) if answer.status < 500 => {
                    anyhow::bail!("the broker refuses a task: {}", answer.body)
                }
                Some(_) | None => {}
            }
            sleep(AGAIN).await;
        }
    }

    /// Sends a request once, and counts it if it may or may not have been heard.
    pub(super) async fn ask(&self, request: &Request, port: u16) -> Option<Answer> {
        let answer = request.send(port).await;
        if let Err(NoAnswer::Broken(_)) = answer {
            self.unclear.fetch_add(1, Ordering::Relaxed);
        }
        answer.ok()
    }
}

fn task_id(work: WorkId) -> String {
    format!("work-{}", work.0)
}
