//! Sends deliveries, again and again if need be, and writes down what the sender gets to know.

mod delivery;
mod request;
mod json;
mod recorded;

pub(crate) use delivery::{Delivery, OTHER_TENANT, Payload};

use super::World;
use super::command::CommandRunner;
use super::recorder::Recorder;
use crate::error::Error;
use crate::judge::timeline::What;
use crate::scenario::endpoint::resolve;
use crate::scenario::{Deliver, SenderKind};
use bytes::Bytes;
use request::{RequestBuilder, accepts};
use semel_rig::http::{self, NoAnswer};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::task::JoinHandle;
use url::Url;

/// The lane of everything that senders do.
const LANE: &str = "sender";

/// Sends deliveries and writes down what became of them. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Sender(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    target: SocketAddr,
    recorder: Arc<Recorder>,
    requests: RequestBuilder,
    commands: CommandRunner,
    answers: Mutex<Vec<HandlerAnswer>>,
}

/// What becomes of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerFate {
    /// The sender hears it.
    Received,
    /// It is whole, but never reaches the sender.
    Lost,
    /// The connection breaks after its first bytes.
    Cut,
}

/// An answer, as the handler gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HandlerAnswer {
    pub(crate) id: String,
    pub(crate) tenant: &'static str,
    pub(crate) payload: Payload,
    pub(crate) status: u16,
    pub(crate) body: Bytes,
    pub(crate) accepted: bool,
}

/// What the sender knows after one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttemptResult {
    Accepted,
    Refused,
    /// Nothing, although the handler's answer was a success.
    MissedSuccess,
    Unanswered,
}

/// An attempt that has not ended. How it ended is written down in any case, also when it is given up.
struct PendingAttempt<'a> {
    recorder: &'a Recorder,
    /// How it will have ended.
    end: What,
}

// === impl Sender ===

impl Sender {
    pub(crate) async fn new(deliver: &Deliver, world: &World<'_>) -> Result<Self, Error> {
        Ok(Self(Arc::new(Inner {
            target: target(deliver, world).await?,
            recorder: Arc::clone(&world.recorder),
            requests: RequestBuilder::new(deliver, &world.variables, world.commands.directory())?,
            commands: world.commands.clone(),
            answers: Mutex::default(),
        })))
    }

    /// Who receives, unless an attack wants another one to.
    pub(crate) fn target(&self) -> SocketAddr {
        self.0.target
    }

    /// The answers since the last time this was asked.
    pub(crate) fn take_answers(&self) -> Vec<HandlerAnswer> {
        std::mem::take(&mut *self.answers())
    }

    /// One attempt in the background. Aborting it is the sender's deadline.
    pub(crate) fn spawn(&self, delivery: &Delivery, to: SocketAddr) -> JoinHandle<AttemptResult> {
        let (sender, delivery) = (self.clone(), delivery.clone());
        tokio::spawn(async move { sender.send(&delivery, to, AnswerFate::Received).await })
    }

    /// One attempt.
    pub(crate) async fn send(
        &self,
        delivery: &Delivery,
        to: SocketAddr,
        fate: AnswerFate,
    ) -> AttemptResult {
        let attempt = delivery.next_attempt();
        let id = delivery.id.clone();
        let recorder = &self.0.recorder;
        let receiver = match self.0.requests.deliver.sender {
            // A command delivers where it will.
            SenderKind::Command => None,
            SenderKind::CloudTasks
            | SenderKind::Pubsub
            | SenderKind::Cloudevents
            | SenderKind::Http => recorder.name_of(to),
        };
        let sent = What::Sent {
            id,
            attempt,
            to: receiver,
            variant: delivery.variant(),
        };
        recorder.note(LANE, sent);
        let unanswered = |why: &str| What::Unanswered {
            id: delivery.id.clone(),
            attempt,
            why: why.to_owned(),
        };
        let end = unanswered("the sender's deadline passed");
        let mut pending = PendingAttempt { recorder, end };
        let deadline = self.0.requests.deliver.deadline();
        let answer = tokio::time::timeout(deadline, self.answer(delivery, attempt, to, fate)).await;
        let late = |_| Err("no answer within the sender's deadline".to_owned());
        let answer = match answer.unwrap_or_else(late) {
            Ok(answer) => answer,
            Err(why) => {
                pending.end = unanswered(&why);
                return AttemptResult::Unanswered;
            }
        };
        let accepted = answer.accepted;
        if fate == AnswerFate::Cut {
            pending.end = unanswered("the connection was cut in the middle of the answer");
        } else {
            pending.end = What::Answered {
                id: delivery.id.clone(),
                attempt,
                status: answer.status,
                accepted,
                known: fate == AnswerFate::Received,
            };
            self.answers().push(answer);
        }
        match (fate, accepted) {
            (AnswerFate::Received, true) => AttemptResult::Accepted,
            (AnswerFate::Received, false) => AttemptResult::Refused,
            (AnswerFate::Lost | AnswerFate::Cut, true) => AttemptResult::MissedSuccess,
            (AnswerFate::Lost | AnswerFate::Cut, false) => AttemptResult::Unanswered,
        }
    }

    async fn answer(
        &self,
        delivery: &Delivery,
        attempt: u32,
        to: SocketAddr,
        fate: AnswerFate,
    ) -> Result<HandlerAnswer, String> {
        let kind = self.0.requests.deliver.sender;
        let (status, body) = if kind == SenderKind::Command {
            self.run(delivery, attempt).await?
        } else {
            self.request(delivery, attempt, to, fate).await?
        };
        Ok(HandlerAnswer {
            id: delivery.id.clone(),
            tenant: delivery.tenant,
            payload: delivery.payload,
            status,
            body,
            accepted: accepts(kind, status),
        })
    }

    async fn request(
        &self,
        delivery: &Delivery,
        attempt: u32,
        to: SocketAddr,
        fate: AnswerFate,
    ) -> Result<(u16, Bytes), String> {
        let request = self.0.requests.request(delivery, attempt, to)?;
        let said = |no| match no {
            NoAnswer::Refused => "nobody listened".to_owned(),
            NoAnswer::Broken(_) => "the connection broke".to_owned(),
        };
        let head = http::send(to, request).await.map_err(said)?;
        let status = head.status;
        if fate == AnswerFate::Cut {
            drop(head);
            return Ok((status, Bytes::new()));
        }
        Ok((status, head.body().await.map_err(said)?))
    }

    async fn run(&self, delivery: &Delivery, attempt: u32) -> Result<(u16, Bytes), String> {
        let requests = &self.0.requests;
        let variables = requests
            .variables_for(delivery)
            .with("attempt", attempt)
            .with("body", requests.body(delivery));
        let line = requests.deliver.command.as_deref();
        let command = variables.expand_command(line.unwrap_or_default())?;
        let ended = self.0.commands.run(&command).await;
        let ended = ended.map_err(|why| why.to_string())?;
        let code = ended.status.code();
        let code = code.and_then(|code| u16::try_from(code).ok());
        let code = code.ok_or("the delivering command was killed")?;
        Ok((code, Bytes::from(ended.stdout)))
    }

    fn answers(&self) -> MutexGuard<'_, Vec<HandlerAnswer>> {
        let answers = self.0.answers.lock();
        answers.expect("nobody panics while holding it")
    }
}

// === impl PendingAttempt ===

impl Drop for PendingAttempt<'_> {
    fn drop(&mut self) {
        self.recorder.note(LANE, self.end.clone());
    }
}

async fn target(deliver: &Deliver, world: &World<'_>) -> Result<SocketAddr, Error> {
    let Some(target) = &deliver.target else {
        let nobody = SocketAddr::from(([127, 0, 0, 1], 9));
        return Ok(world.address(world.receiver).unwrap_or(nobody));
    };
    let found = match Url::parse(target) {
        Ok(url) => resolve(&url).await,
        Err(_) => None,
    };
    found.ok_or_else(|| Error::Scenario(format!("deliver.target `{target}` cannot be found")))
}
