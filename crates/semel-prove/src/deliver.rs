//! Sends deliveries, again and again if need be, and writes down what the sender gets to know.

use crate::cannot::CannotJudge;
use crate::http::{self, NoAnswer};
use crate::letter::{Writer, accepts};
use crate::process::Group;
use crate::scenario::{Deliver, Sender};
use crate::verdict::What;
use crate::wire::Wire;
use crate::words::Words;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;

/// The lane of everything that senders do.
const LANE: &str = "sender";

/// Sends deliveries and writes down what became of them. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Courier(Arc<Office>);

#[derive(Debug)]
struct Office {
    deliver: Deliver,
    wire: Arc<Wire>,
    writer: Writer,
    environment: BTreeMap<String, String>,
    directory: PathBuf,
    answers: Mutex<Vec<Answer>>,
}

/// Something that is delivered, perhaps many times: its identity stays the same.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    pub(crate) id: String,
    /// What it is about: shared by two deliveries that come in the wrong order, otherwise its own.
    pub(crate) entity: String,
    pub(crate) n: u64,
    pub(crate) payload: Payload,
    attempts: Arc<AtomicU32>,
}

/// What is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Payload {
    Usual,
    Other,
    Bad,
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
    Nothing,
}

// === impl Delivery ===

impl Delivery {
    pub(crate) fn new(id: String, n: u64) -> Self {
        Self {
            entity: id.clone(),
            id,
            n,
            payload: Payload::Usual,
            attempts: Arc::default(),
        }
    }

    /// Another one about the same entity.
    pub(crate) fn about(mut self, entity: Option<&str>) -> Self {
        if let Some(entity) = entity {
            entity.clone_into(&mut self.entity);
        }
        self
    }

    /// The same identity with another payload.
    pub(crate) fn with(&self, payload: Payload) -> Self {
        Self {
            payload,
            ..self.clone()
        }
    }

    /// How often it was sent.
    pub(crate) fn attempts(&self) -> u32 {
        self.attempts.load(Ordering::Relaxed)
    }

    fn next_attempt(&self) -> u32 {
        self.attempts.fetch_add(1, Ordering::Relaxed) + 1
    }
}

// === impl Courier ===

impl Courier {
    pub(crate) fn new(
        deliver: &Deliver,
        wire: Arc<Wire>,
        words: Words,
        environment: BTreeMap<String, String>,
        directory: PathBuf,
    ) -> Result<Self, CannotJudge> {
        let writer = Writer::new(deliver, words, &directory)?;
        Ok(Self(Arc::new(Office {
            deliver: deliver.clone(),
            wire,
            writer,
            environment,
            directory,
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
        self.0.wire.note(
            LANE,
            What::Sent {
                id: id.clone(),
                attempt,
            },
        );
        let unheard = Unheard {
            wire: &self.0.wire,
            id: &id,
            attempt,
            settled: false,
        };
        let deadline = self.0.deliver.deadline();
        let answer = tokio::time::timeout(deadline, self.answer(delivery, attempt, to, fate)).await;
        match answer {
            Err(_) => unheard.because("no answer within the sender's deadline"),
            Ok(Err(why)) => unheard.because(&why),
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
                    (false, _) => Known::Nothing,
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
        let head = http::send(to, request).await.map_err(said)?;
        if fate == Fate::Cut {
            head.hang_up();
            return Err("the connection was cut in the middle of the answer".to_owned());
        }
        let status = head.status;
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
        let (program, rest) = command.split_first().ok_or("deliver.command is empty")?;
        let child = tokio::process::Command::new(program)
            .args(rest)
            .env_clear()
            .envs(&office.environment)
            .current_dir(&office.directory)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|why| format!("`{program}` cannot be run: {why}"))?;
        // A sender that gives up leaves nothing behind.
        let group = Group::of(&child);
        let output = child.wait_with_output().await;
        drop(group);
        let output = output.map_err(|why| format!("`{program}` cannot be waited for: {why}"))?;
        let code = output
            .status
            .code()
            .and_then(|code| u16::try_from(code).ok());
        let code = code.ok_or("the delivering command was killed")?;
        Ok((code, Bytes::from(output.stdout)))
    }

    fn answers(&self) -> std::sync::MutexGuard<'_, Vec<Answer>> {
        self.0
            .answers
            .lock()
            .expect("nobody panics while holding it")
    }
}

/// Writes down that no answer came unless it is told otherwise, also when the attempt is given up.
struct Unheard<'a> {
    wire: &'a Wire,
    id: &'a str,
    attempt: u32,
    settled: bool,
}

impl Unheard<'_> {
    fn settled(mut self, what: What) {
        self.settled = true;
        self.wire.note(LANE, what);
    }

    fn because(self, why: &str) -> Known {
        let what = self.unanswered(why);
        self.settled(what);
        Known::Nothing
    }

    fn unanswered(&self, why: &str) -> What {
        What::Unanswered {
            id: self.id.to_owned(),
            attempt: self.attempt,
            why: why.to_owned(),
        }
    }
}

impl Drop for Unheard<'_> {
    fn drop(&mut self) {
        if !self.settled {
            let what = self.unanswered("the sender's deadline passed");
            self.wire.note(LANE, what);
        }
    }
}

/// A pause of the sender.
pub(crate) async fn rest(pause: Duration) {
    tokio::time::sleep(pause).await;
}
