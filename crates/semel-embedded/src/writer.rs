//! The writer: one thread that decides and writes everything, group by group.
//!
//! It takes whatever is queued, decides each request on the rows as they are, and hands the
//! group to the operating system as one batch. Who needs no more is answered at once; who needs the
//! disk is passed on to the syncer, and the writer goes on with the next group. There are no
//! timers: a lone request is a group of one. That there is one writer is what makes the calls for
//! one key come one after the other.

use crate::engine::Engine;
use crate::group::{Decided, Group, Running};
use crate::request::{Caller, Pending, Reply};
use crate::syncer::Waiting;
use semel::Error;
use std::sync::mpsc::Sender;
use std::thread;
use tokio::sync::mpsc::Receiver;

/// How many requests a group has at the most. It bounds how long a request of the next group
/// waits for this one: about a millisecond.
const GROUP_ITEMS_MAX: usize = 256;

/// What the writer carries from group to group.
#[derive(Debug)]
pub(crate) struct Writer {
    /// The last group that was written.
    pub(crate) group: u64,
    /// How many letters were ever put.
    pub(crate) letters: u64,
    /// The runs that are expected back.
    pub(crate) running: Running,
    /// Where those go who wait for the disk. Its length is bounded by the number of callers.
    pub(crate) syncer: Sender<Vec<Waiting>>,
}

// === impl Writer ===

impl Writer {
    /// Writes group after group until the store is dropped.
    pub(crate) fn run(mut self, engine: &Engine, mut requests: Receiver<Pending>) {
        let mut queued = Vec::with_capacity(GROUP_ITEMS_MAX);
        while requests.blocking_recv_many(&mut queued, GROUP_ITEMS_MAX) > 0 {
            gather(&mut requests, &mut queued);
            match engine.gave_up() {
                Some(error) => refuse(queued.drain(..).map(|pending| pending.caller), error),
                None => self.write_group(engine, queued.drain(..)),
            }
        }
    }

    fn write_group(&mut self, engine: &Engine, queued: impl ExactSizeIterator<Item = Pending>) {
        let mut group = Group::new(
            engine,
            self.group + 1,
            self.letters,
            queued.len(),
            &mut self.running,
        );
        let decided: Vec<_> = queued
            .map(|pending| (pending.caller, group.decide(&pending.request)))
            .collect();
        match group.write() {
            Ok(Some(letters)) => {
                self.group += 1;
                self.letters = letters;
                engine.progress.wrote(self.group);
            }
            Ok(None) => {}
            Err(error) => {
                engine.give_up(&error);
                return refuse(decided.into_iter().map(|(caller, _)| caller), &error);
            }
        }
        self.answer(engine, decided);
    }

    /// Answers who needs no more than this, and passes the others on.
    fn answer(&self, engine: &Engine, decided: Vec<(Caller, Result<Decided, Error>)>) {
        let synced = engine.progress.synced();
        let mut waiting = Vec::new();
        for (caller, decided) in decided {
            match decided {
                Ok(Decided { reply, after }) if after > synced => {
                    waiting.push(Waiting { caller, reply });
                }
                Ok(Decided { reply, .. }) => caller.tell(Ok(reply)),
                Err(error) => caller.tell(Err(error)),
            }
        }
        if !waiting.is_empty() {
            self.pass_on(waiting);
        }
    }

    fn pass_on(&self, waiting: Vec<Waiting>) {
        if let Err(unsent) = self.syncer.send(waiting) {
            let error = Error::Bug("the thread that syncs the journal is gone".to_owned());
            refuse(unsent.0.into_iter().map(|waiting| waiting.caller), &error);
        }
    }
}

/// Lets the callers who are ready to run say what they have to say, so that groups grow as the
/// machine gets busy. On an idle one this is nothing.
fn gather(requests: &mut Receiver<Pending>, queued: &mut Vec<Pending>) {
    thread::yield_now();
    while queued.len() < GROUP_ITEMS_MAX
        && let Ok(pending) = requests.try_recv()
    {
        queued.push(pending);
    }
}

/// Tells everybody the same error.
pub(crate) fn refuse(callers: impl Iterator<Item = Caller>, error: &Error) {
    let refused = || -> Result<Reply, Error> { Err(error.clone()) };
    callers.for_each(|caller| caller.tell(refused()));
}

#[cfg(test)]
mod tests;
