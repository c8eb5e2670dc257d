//! Group commit without timers: everything that arrives while the last group is being written
//! goes into the next one. An idle lane takes a lone item at once, so nobody waits to be batched.

use crate::store::Error;
use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::future::Future;
use std::hash::Hash;
use std::sync::Arc;
use tokio::sync::{Mutex, mpsc, oneshot};

/// How many items may wait to be batched before submitters wait for room.
const QUEUE_ITEMS_MAX: usize = 65_536;

/// Takes items one by one and writes them in groups, on a fixed number of lanes.
pub struct Batcher<I, O> {
    queue: mpsc::Sender<Pending<I, O>>,
}

/// How a batcher groups.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many groups are written at the same time.
    pub lanes: usize,
    /// How many items a group has at the most.
    pub items_max: usize,
}

/// An item that waits for its answer.
#[derive(Debug)]
pub struct Pending<I, O> {
    /// What was submitted.
    pub item: I,
    answer: oneshot::Sender<Result<O, Error>>,
}

/// The queue as one lane sees it: items of a key that the group already has wait for the next one.
struct Lane<I, O> {
    queue: Arc<Mutex<mpsc::Receiver<Pending<I, O>>>>,
    held_back: VecDeque<Pending<I, O>>,
}

// === impl Batcher ===

impl<I: Send + 'static, O: Send + 'static> Batcher<I, O> {
    /// Starts the lanes. `key` tells items apart that must not share a group; `write` writes a
    /// group and answers every item of it.
    pub fn start<K, W, F>(limits: Limits, key: fn(&I) -> K, write: W) -> Self
    where
        K: Eq + Hash + Send + 'static,
        W: Fn(Vec<Pending<I, O>>) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = ()> + Send,
    {
        let (queue, receiver) = mpsc::channel(QUEUE_ITEMS_MAX);
        let receiver = Arc::new(Mutex::new(receiver));
        for _ in 0..limits.lanes {
            let mut lane = Lane {
                queue: Arc::clone(&receiver),
                held_back: VecDeque::new(),
            };
            let write = write.clone();
            tokio::spawn(async move {
                while let Some(group) = lane.group(limits.items_max, key).await {
                    write(group).await;
                }
            });
        }
        Self { queue }
    }

    /// Submits an item and waits for its answer.
    ///
    /// # Errors
    /// Whatever the writer answered; `Unavailable` when it went away.
    pub async fn submit(&self, item: I) -> Result<O, Error> {
        let gone = || {
            Error::Unavailable(
                "the store was closed while a call was under way; a repeat of the call is safe"
                    .into(),
            )
        };
        let (answer, answered) = oneshot::channel();
        self.queue
            .send(Pending { item, answer })
            .await
            .map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }
}

impl<I, O> fmt::Debug for Batcher<I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batcher").finish_non_exhaustive()
    }
}

// === impl Pending ===

impl<I, O> Pending<I, O> {
    /// Answers the submitter; one that hung up is not missed.
    pub fn answer(self, answer: Result<O, Error>) {
        drop(self.answer.send(answer));
    }
}

// === impl Lane ===

impl<I, O> Lane<I, O> {
    /// Waits for a first item and takes what else is there; `None` when the batcher is gone.
    async fn group<K: Eq + Hash>(
        &mut self,
        max: usize,
        key: fn(&I) -> K,
    ) -> Option<Vec<Pending<I, O>>> {
        let mut group = Vec::new();
        let mut keys = HashSet::new();
        for pending in std::mem::take(&mut self.held_back) {
            self.take(pending, &mut group, &mut keys, key);
        }
        let queue = Arc::clone(&self.queue);
        let mut queue = if group.is_empty() {
            let mut queue = queue.lock().await;
            let first = queue.recv().await?;
            self.take(first, &mut group, &mut keys, key);
            queue
        } else {
            // An idle lane may be waiting on the queue: what is in hand goes out without it.
            let Ok(queue) = queue.try_lock() else {
                return Some(group);
            };
            queue
        };
        while group.len() < max {
            let Ok(pending) = queue.try_recv() else { break };
            self.take(pending, &mut group, &mut keys, key);
        }
        Some(group)
    }

    fn take<K: Eq + Hash>(
        &mut self,
        pending: Pending<I, O>,
        group: &mut Vec<Pending<I, O>>,
        keys: &mut HashSet<K>,
        key: fn(&I) -> K,
    ) {
        if keys.insert(key(&pending.item)) {
            group.push(pending);
        } else {
            self.held_back.push_back(pending);
        }
    }
}
