//! The way of one call: to a connection and back, with the library loaded when the server lacks it.

use crate::connection::{Connection, SendError, Target};
use crate::errors;
use crate::library::library;
use redis::{Cmd, Pipeline, Value};
use semel::Error;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tokio::sync::Mutex;

/// A few connections that share the calls.
#[derive(Debug)]
pub(crate) struct Connections {
    target: Target,
    all: Vec<Connection>,
    turn: AtomicUsize,
    /// How often the library was loaded: callers that found it missing together load it once.
    loads: AtomicU64,
    loading: Mutex<()>,
}

/// Whether a command keeps others on its connection waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// It does not.
    Small,
    /// It does: it is long, or many in one.
    Large,
}

/// The answers to calls that were sent together.
#[derive(Debug)]
pub(crate) struct Answers {
    pub(crate) calls: Vec<Value>,
    pub(crate) tail: Vec<Value>,
}

// === impl Connections ===

impl Connections {
    pub(crate) fn new(target: Target, connections: usize) -> Self {
        let all = (0..connections)
            .map(|_| Connection::new(target.clone()))
            .collect();
        Self {
            target,
            all,
            turn: AtomicUsize::new(0),
            loads: AtomicU64::new(0),
            loading: Mutex::default(),
        }
    }

    /// Sends a call of the library, pipelined with whatever else is on its connection.
    pub(crate) async fn ask(&self, call: &Cmd, size: Size) -> Result<Value, Error> {
        let loads = self.loads.load(Ordering::Acquire);
        match self.connection(size).send(call).await {
            Err(SendError::Redis(error)) if errors::is_missing_function(&error) => {
                self.load(loads).await?;
                self.answered(self.connection(size).send(call).await)
            }
            answer => self.answered(answer),
        }
    }

    /// Sends calls together, in order, and `tail` after them. An error of one of them is its own
    /// answer. Calls whose function was missing are sent again, and `tail` after them.
    pub(crate) async fn ask_all(&self, calls: &[Cmd], tail: &[Cmd]) -> Result<Answers, Error> {
        let loads = self.loads.load(Ordering::Acquire);
        let all: Vec<usize> = (0..calls.len()).collect();
        let mut answers = self.exchange(calls, &all, tail).await?;
        let missing = places(&answers.calls, lacks_function);
        if missing.is_empty() {
            return Ok(answers);
        }
        self.load(loads).await?;
        let again = self.exchange(calls, &missing, tail).await?;
        for (place, answer) in missing.into_iter().zip(again.calls) {
            if let Some(slot) = answers.calls.get_mut(place) {
                *slot = answer;
            }
        }
        answers.tail = again.tail;
        Ok(answers)
    }

    async fn exchange(
        &self,
        calls: &[Cmd],
        places: &[usize],
        tail: &[Cmd],
    ) -> Result<Answers, Error> {
        let mut pipeline = Pipeline::with_capacity(places.len() + tail.len());
        for call in places
            .iter()
            .filter_map(|place| calls.get(*place))
            .chain(tail)
        {
            pipeline.add_command(call.clone());
        }
        let mut calls = self.answered(self.connection(Size::Large).send_all(&pipeline).await)?;
        if calls.len() != pipeline.len() {
            let (asked, answered) = (pipeline.len(), calls.len());
            return Err(Error::bug(format!(
                "{answered} answers to {asked} commands"
            )));
        }
        let tail = calls.split_off(places.len());
        Ok(Answers { calls, tail })
    }

    /// The answer, unless it is an error.
    pub(crate) fn plain(&self, answer: Value) -> Result<Value, Error> {
        if let Value::ServerError(error) = answer {
            return Err(self.target.error(&error.into()));
        }
        Ok(answer)
    }

    fn answered<T>(&self, answer: Result<T, SendError>) -> Result<T, Error> {
        answer.map_err(|sent| match sent {
            SendError::NotConnected(why) => why,
            SendError::Redis(error) => self.target.error(&error),
        })
    }

    /// Loads the library, unless somebody has since `seen`.
    async fn load(&self, seen: u64) -> Result<(), Error> {
        let _one_at_a_time = self.loading.lock().await;
        if self.loads.load(Ordering::Acquire) == seen {
            self.answered(self.connection(Size::Small).send(&load()).await)?;
            self.loads.fetch_add(1, Ordering::Release);
        }
        Ok(())
    }

    /// Large commands have the last connection to themselves. The more of the others share one, the
    /// more of them go out in one write.
    fn connection(&self, size: Size) -> &Connection {
        let last = self.all.len() - 1;
        let place = match size {
            Size::Large => last,
            Size::Small => self.turn.fetch_add(1, Ordering::Relaxed) % last.max(1),
        };
        self.all
            .get(place)
            .expect("settings allow no line without all")
    }
}

/// The command that loads the library. The name carries a digest of the text, so what it replaces
/// is the same.
pub(crate) fn load() -> Cmd {
    let mut command = redis::cmd("FUNCTION");
    command.arg("LOAD").arg("REPLACE").arg(library());
    command
}

fn places(answers: &[Value], wanted: fn(&Value) -> bool) -> Vec<usize> {
    let found = |(place, answer)| wanted(answer).then_some(place);
    answers.iter().enumerate().filter_map(found).collect()
}

fn lacks_function(answer: &Value) -> bool {
    if let Value::ServerError(error) = answer {
        errors::is_missing_function(&error.clone().into())
    } else {
        false
    }
}
