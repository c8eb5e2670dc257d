//! The writer: one thread that decides and writes everything, group by group.
//!
//! It takes whatever is queued, decides each call on the rows as they are, and hands the
//! group to the operating system as one batch. Who needs no more is answered at once; who needs the
//! disk is passed on to the syncer, and the writer goes on with the next group. There are no
//! timers: a lone call is a group of one. That there is one writer is what makes the calls for
//! one key come one after the other.

use crate::call::Call;
use crate::engine::Engine;
use crate::group::{Group, Running};
use semel::Error;
use std::sync::mpsc::Sender;
use std::thread;
use tokio::sync::mpsc::Receiver;

/// How many calls a group has at the most. It bounds how long a call of the next group
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
    pub(crate) syncer: Sender<Vec<Box<dyn Call>>>,
}

// === impl Writer ===

impl Writer {
    /// Writes group after group until the store is dropped.
    pub(crate) fn run(mut self, engine: &Engine, mut calls: Receiver<Box<dyn Call>>) {
        let mut queued = Vec::with_capacity(GROUP_ITEMS_MAX);
        while calls.blocking_recv_many(&mut queued, GROUP_ITEMS_MAX) > 0 {
            gather(&mut calls, &mut queued);
            match engine.gave_up() {
                Some(error) => refuse(queued.drain(..), error),
                None => self.write_group(engine, queued.drain(..)),
            }
        }
    }

    fn write_group(
        &mut self,
        engine: &Engine,
        queued: impl ExactSizeIterator<Item = Box<dyn Call>>,
    ) {
        let mut group = Group::new(
            engine,
            self.group + 1,
            self.letters,
            queued.len(),
            &mut self.running,
        );
        let decided: Vec<_> = queued
            .map(|mut call| (call.decide(&mut group), call))
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
                return refuse(decided.into_iter().map(|(_, call)| call), &error);
            }
        }
        self.answer(engine, decided);
    }

    /// Answers who needs no more than this, and passes the others on.
    fn answer(&self, engine: &Engine, decided: Vec<(u64, Box<dyn Call>)>) {
        let synced = engine.progress.synced();
        let mut waiting = Vec::new();
        for (after, call) in decided {
            if after > synced {
                waiting.push(call);
            } else {
                call.tell();
            }
        }
        if !waiting.is_empty() {
            self.pass_on(waiting);
        }
    }

    fn pass_on(&self, waiting: Vec<Box<dyn Call>>) {
        if let Err(unsent) = self.syncer.send(waiting) {
            let error = Error::bug("the thread that syncs the journal is gone");
            refuse(unsent.0, &error);
        }
    }
}

/// Lets the callers who are ready to run say what they have to say, so that groups grow as the
/// machine gets busy. On an idle one this is nothing.
fn gather(calls: &mut Receiver<Box<dyn Call>>, queued: &mut Vec<Box<dyn Call>>) {
    thread::yield_now();
    while queued.len() < GROUP_ITEMS_MAX
        && let Ok(call) = calls.try_recv()
    {
        queued.push(call);
    }
}

/// Tells everybody the same error.
pub(crate) fn refuse(calls: impl IntoIterator<Item = Box<dyn Call>>, error: &Error) {
    calls.into_iter().for_each(|call| call.refuse(error));
}

#[cfg(test)]
mod tests;
