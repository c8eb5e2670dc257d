//! Sends deliveries, again and again if need be, and writes down what the sender gets to know.

mod delivery;
mod request;
mod recorded;
mod unanswered;

pub(crate) use delivery::{Delivery, Payload};

use crate::error::Error;
use crate::judge::verdict::What;
use crate::scenario::template::Words;
use crate::scenario::{Deliver, Sender};
use crate::world::command::Shell;
use crate::world::http_client::{self, NoAnswer};
use crate::world::recorder::Recorder;
use crate::world::sender::request::{Writer, accepts};
use bytes::Bytes;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::task::JoinHandle;
use unanswered::Unheard;

/// The lane of everything that senders do.
const LANE: &str = "sender";

/// Sends deliveries and writes down what became of them. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Courier(Arc<Office>);

#[derive(Debug)]
struct Office {
    deliver: Deliver,
    recorder: Arc<Recorder>,
    writer: Writer,
    shell: Shell,
    answers: Mutex<Vec<Answer>>,
}

/// What becomes of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The sender hears it.
    Heard,
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
pub(crate) enum Known {
    Accepted,
    Refused,
    /// Nothing, although the handler's answer was a success.
    Missed,
    Nothing,
}

// === impl Courier ===

impl Courier {
    pub(crate) fn new(
        deliver: &Deliver,
        recorder: Arc<Recorder>,
        words: Words,
        shell: Shell,
    ) -> Result<Self, Error> {
        let writer = Writer::new(deliver, words, shell.directory())?;
        Ok(Self(Arc::new(Office {
            deliver: deliver.clone(),
            recorder,
            writer,
            shell,
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
        fate: Fate,
    ) -> JoinHandle<Known> {
        let (courier, delivery) = (self.clone(), delivery.clone());
        tokio::spawn(async move { courier.send(&delivery, to, fate).await })
    }

    /// One attempt.
    pub(crate) async fn send(&self, delivery: &Delivery, to: SocketAddr, fate: Fate) -> Known {
        let attempt = delivery.next_attempt();
        let id = delivery.id.clone();
        self.0.recorder.note(
            LANE,
            What::Sent {
                id: id.clone(),
                attempt,
            },
        );
        let unheard = Unheard::new(&self.0.recorder, &id, attempt);
        let deadline = self.0.deliver.deadline();
        let answer = tokio::time::timeout(deadline, self.answer(delivery, attempt, to, fate)).await;
        match answer {
            Err(_) => unheard.because("no answer within the sender's deadline"),
            Ok(Err(why)) => unheard.because(&why),
            Ok(Ok(answer)) if fate == Fate::Cut => {
                unheard.because("the connection was cut in the middle of the answer");
                missed(answer.accepted)
            }
            Ok(Ok(answer)) => {
                let (status, accepted) = (answer.status, answer.accepted);
                self.answers().push(answer);
                let known = fate == Fate::Heard;
                unheard.settled(What::Answered {
                    id: id.clone(),
                    attempt,
                    status,
                    accepted,
                    known,
                });
                match (known, accepted) {
                    (false, _) => missed(accepted),
                    (true, true) => Known::Accepted,
                    (true, false) => Known::Refused,
                }
            }
        }
    }

    async fn answer(
        &self,
        delivery: &Delivery,
        attempt: u32,
        to: SocketAddr,
        fate: Fate,
    ) -> Result<Answer, String> {
        let (status, body) = match self.0.deliver.sender {
            Sender::Command => self.run(delivery, attempt).await?,
            Sender::CloudTasks | Sender::Pubsub | Sender::Cloudevents | Sender::Http => {
                self.request(delivery, attempt, to, fate).await?
            }
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
        fate: Fate,
    ) -> Result<(u16, Bytes), String> {
        let request = self.0.writer.request(delivery, attempt, to)?;
        let said = |no: NoAnswer| match no {
            NoAnswer::Refused => "nobody listened".to_owned(),
            NoAnswer::Broken => "the connection broke".to_owned(),
        };
        let head = http_client::send(to, request).await.map_err(said)?;
        let status = head.status;
        if fate == Fate::Cut {
            head.hang_up();
            return Ok((status, Bytes::new()));
        }
        Ok((status, head.body().await.map_err(said)?))
    }

    async fn run(&self, delivery: &Delivery, attempt: u32) -> Result<(u16, Bytes), String> {
        let office = &self.0;
        let words = office
            .writer
            .words_for(delivery)
            .with("attempt", attempt)
            .with("body", office.writer.body(delivery));
        let command = office.deliver.command.as_deref().unwrap_or_default();
        let command: Vec<String> = shlex::split(command)
            .unwrap_or_default()
            .iter()
            .map(|word| words.fill(word))
            .collect();
        let ended = office.shell.run(&command).await;
        let ended = ended.map_err(|why| why.to_string())?;
        let code = ended
            .status
            .code()
            .and_then(|code| u16::try_from(code).ok());
        let code = code.ok_or("the delivering command was killed")?;
        Ok((code, Bytes::from(ended.printed)))
    }

    fn answers(&self) -> std::sync::MutexGuard<'_, Vec<Answer>> {
        self.0
            .answers
            .lock()
            .expect("nobody panics while holding it")
    }
}

/// What a sender knows of an answer that did not reach it.
fn missed(accepted: bool) -> Known {
    if accepted {
        Known::Missed
    } else {
        Known::Nothing
    }
}
