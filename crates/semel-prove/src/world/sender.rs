//! Sends deliveries, again and again if need be, and writes down what the sender gets to know.

mod delivery;
mod request;
mod recorded;
mod unanswered;

pub(crate) use delivery::{Delivery, Payload};

use crate::error::Error;
use crate::judge::verdict::What;
use crate::scenario::template::Variables;
use crate::scenario::{Deliver, SenderKind};
use crate::world::command::CommandRunner;
use crate::world::http_client::{self, NoAnswer};
use crate::world::recorder::Recorder;
use crate::world::sender::request::{RequestBuilder, accepts};
use bytes::Bytes;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::task::JoinHandle;
use unanswered::PendingAttempt;

/// The lane of everything that senders do.
const LANE: &str = "sender";

/// Sends deliveries and writes down what became of them. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Sender(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    deliver: Deliver,
    recorder: Arc<Recorder>,
    requests: RequestBuilder,
    commands: CommandRunner,
    answers: Mutex<Vec<Answer>>,
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
pub(crate) struct Answer {
    pub(crate) id: String,
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

// === impl Sender ===

impl Sender {
    pub(crate) fn new(
        deliver: &Deliver,
        recorder: Arc<Recorder>,
        variables: Variables,
        commands: CommandRunner,
    ) -> Result<Self, Error> {
        let requests = RequestBuilder::new(deliver, variables, commands.directory())?;
        Ok(Self(Arc::new(Inner {
            deliver: deliver.clone(),
            recorder,
            requests,
            commands,
            answers: Mutex::default(),
        })))
    }

    /// The answers since the last time this was asked.
    pub(crate) fn take_answers(&self) -> Vec<Answer> {
        std::mem::take(&mut *self.answers())
    }

    /// One attempt in the background. Aborting it is the sender's deadline.
    pub(crate) fn spawn(
        &self,
        delivery: &Delivery,
        to: SocketAddr,
        fate: AnswerFate,
    ) -> JoinHandle<AttemptResult> {
        let (sender, delivery) = (self.clone(), delivery.clone());
        tokio::spawn(async move { sender.send(&delivery, to, fate).await })
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
        self.0.recorder.note(
            LANE,
            What::Sent {
                id: id.clone(),
                attempt,
            },
        );
        let pending = PendingAttempt::new(&self.0.recorder, &id, attempt);
        let deadline = self.0.deliver.deadline();
        let answer = tokio::time::timeout(deadline, self.answer(delivery, attempt, to, fate)).await;
        match answer {
            Err(_) => pending.because("no answer within the sender's deadline"),
            Ok(Err(why)) => pending.because(&why),
            Ok(Ok(answer)) if fate == AnswerFate::Cut => {
                pending.because("the connection was cut in the middle of the answer");
                missed(answer.accepted)
            }
            Ok(Ok(answer)) => {
                let (status, accepted) = (answer.status, answer.accepted);
                self.answers().push(answer);
                let known = fate == AnswerFate::Received;
                pending.settled(What::Answered {
                    id: id.clone(),
                    attempt,
                    status,
                    accepted,
                    known,
                });
                match (known, accepted) {
                    (false, _) => missed(accepted),
                    (true, true) => AttemptResult::Accepted,
                    (true, false) => AttemptResult::Refused,
                }
            }
        }
    }

    async fn answer(
        &self,
        delivery: &Delivery,
        attempt: u32,
        to: SocketAddr,
        fate: AnswerFate,
    ) -> Result<Answer, String> {
        let (status, body) = match self.0.deliver.sender {
            SenderKind::Command => self.run(delivery, attempt).await?,
            SenderKind::CloudTasks
            | SenderKind::Pubsub
            | SenderKind::Cloudevents
            | SenderKind::Http => self.request(delivery, attempt, to, fate).await?,
        };
        Ok(Answer {
            id: delivery.id.clone(),
            payload: delivery.payload,
            status,
            body,
            accepted: accepts(self.0.deliver.sender, status),
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
        let said = |no: NoAnswer| match no {
            NoAnswer::Refused => "nobody listened".to_owned(),
            NoAnswer::Broken => "the connection broke".to_owned(),
        };
        let head = http_client::send(to, request).await.map_err(said)?;
        let status = head.status;
        if fate == AnswerFate::Cut {
            head.hang_up();
            return Ok((status, Bytes::new()));
        }
        Ok((status, head.body().await.map_err(said)?))
    }

    async fn run(&self, delivery: &Delivery, attempt: u32) -> Result<(u16, Bytes), String> {
        let inner = &self.0;
        let variables = inner
            .requests
            .variables_for(delivery)
            .with("attempt", attempt)
            .with("body", inner.requests.body(delivery));
        let command = inner.deliver.command.as_deref().unwrap_or_default();
        let command: Vec<String> = shlex::split(command)
            .unwrap_or_default()
            .iter()
            .map(|word| variables.expand(word))
            .collect();
        let ended = inner.commands.run(&command).await;
        let ended = ended.map_err(|why| why.to_string())?;
        let code = ended
            .status
            .code()
            .and_then(|code| u16::try_from(code).ok());
        let code = code.ok_or("the delivering command was killed")?;
        Ok((code, Bytes::from(ended.stdout)))
    }

    fn answers(&self) -> std::sync::MutexGuard<'_, Vec<Answer>> {
        self.0
            .answers
            .lock()
            .expect("nobody panics while holding it")
    }
}

/// What a sender knows of an answer that did not reach it.
fn missed(accepted: bool) -> AttemptResult {
    if accepted {
        AttemptResult::MissedSuccess
    } else {
        AttemptResult::Unanswered
    }
}
