//! Group commit without timers: everything that arrives while the last group is being written
//! goes into the next one. An idle lane takes a lone item at once, so nobody waits to be batched.

use crate::store::Error;
use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::future::Future;
use std::hash::Hash;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::yield_now;

/// How many items may wait to be batched before submitters wait for room.
const QUEUE_ITEMS_MAX: usize = 65_536;

/// How far a group looks past items whose key it already has, in items.
const LOOK_AHEAD_ITEMS_MAX: usize = 4096;

/// Takes items one by one and writes them in groups, on a fixed number of lanes.
///
/// ```
/// use semel::batch::{Batcher, Limits, Pending};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let double = |group: Vec<Pending<u32, u32>>| async move {
///     for pending in group {
///         let answer = Ok(pending.item * 2);
///         pending.answer(answer);
///     }
/// };
/// let batcher = Batcher::start(Limits { lanes: 1, items_max: 64 }, |item: &u32| *item, double);
/// assert_eq!(batcher.submit(21).await, Ok(42));
/// # });
/// ```
pub struct Batcher<I, O> {
    shared: Arc<Shared<I, O>>,
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

struct Shared<I, O> {
    lanes: usize,
    queue: Mutex<Queue<I, O>>,
    room: Semaphore,
    /// Whether the last group had more than one item: then the next one probably has, too.
    crowded: AtomicBool,
    take_group: TakeGroup<I, O>,
    write: Write<I, O>,
}

struct Queue<I, O> {
    waiting: VecDeque<Pending<I, O>>,
    lanes_taken: usize,
}

/// The right to write on a lane. Giving it up hands it on if anybody waits, also when a caller
/// hangs up or a writer panics.
struct Lane<I: Send + 'static, O: Send + 'static>(Arc<Shared<I, O>>);

type Answered<O> = oneshot::Receiver<Result<O, Error>>;
type TakeGroup<I, O> = Box<dyn Fn(&mut Queue<I, O>) -> Vec<Pending<I, O>> + Send + Sync>;
type Write<I, O> =
    Box<dyn Fn(Vec<Pending<I, O>>) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

// === impl Batcher ===

impl<I: Send + 'static, O: Send + 'static> Batcher<I, O> {
    /// Makes the lanes. `key` tells items apart that must not share a group; `write` writes a
    /// group and answers every item of it.
    pub fn start<K, W, F>(limits: Limits, key: fn(&I) -> K, write: W) -> Self
    where
        K: Eq + Hash + Send + 'static,
        W: Fn(Vec<Pending<I, O>>) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let shared = Shared {
            lanes: limits.lanes.max(1),
            queue: Mutex::new(Queue {
                waiting: VecDeque::new(),
                lanes_taken: 0,
            }),
            room: Semaphore::new(QUEUE_ITEMS_MAX),
            crowded: AtomicBool::new(false),
            take_group: Box::new(move |queue| queue.take_group(limits.items_max.max(1), key)),
            write: Box::new(move |group| Box::pin(write(group))),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Submits an item and waits for its answer. A submitter that hangs up leaves its item to be
    /// written.
    ///
    /// # Errors
    /// Whatever the writer answered; `Unavailable` when it went away.
    pub async fn submit(&self, item: I) -> Result<O, Error> {
        let _room = self.shared.room.acquire().await;
        let (pending, answered) = Pending::new(item);
        if let Some(lane) = self.shared.enqueue(pending) {
            tokio::spawn(lane.work());
        }
        answer(answered).await
    }

    /// The same, but an item that finds a lane idle and nobody waiting is written by the submitter
    /// itself, which saves two changes of task. For writers that may be dropped at any point.
    ///
    /// # Errors
    /// Whatever the writer answered; `Unavailable` when it went away.
    pub async fn submit_here(&self, item: I) -> Result<O, Error> {
        let Some(lane) = self.shared.idle_lane() else {
            return self.submit(item).await;
        };
        self.shared.let_others_join().await;
        let (pending, answered) = Pending::new(item);
        if self.shared.queue().waiting.is_empty() {
            self.shared.crowded.store(false, Ordering::Relaxed);
            (self.shared.write)(vec![pending]).await;
            drop(lane);
        } else {
            self.shared.queue().waiting.push_front(pending);
            tokio::spawn(lane.work());
        }
        answer(answered).await
    }
}

impl<I, O> fmt::Debug for Batcher<I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batcher").finish_non_exhaustive()
    }
}

async fn answer<O>(answered: Answered<O>) -> Result<O, Error> {
    answered.await.unwrap_or_else(|_| {
        Err(Error::Unavailable(
            "the store was closed while a call was under way; a repeat of the call is safe".into(),
        ))
    })
}

// === impl Pending ===

impl<I, O> Pending<I, O> {
    fn new(item: I) -> (Self, Answered<O>) {
        let (answer, answered) = oneshot::channel();
        (Self { item, answer }, answered)
    }

    /// Answers the submitter; one that hung up is not missed.
    pub fn answer(self, answer: Result<O, Error>) {
        drop(self.answer.send(answer));
    }
}

// === impl Shared ===

impl<I: Send + 'static, O: Send + 'static> Shared<I, O> {
    /// Puts an item in the queue, and hands out a lane if one is idle.
    fn enqueue(self: &Arc<Self>, pending: Pending<I, O>) -> Option<Lane<I, O>> {
        let mut queue = self.queue();
        queue.waiting.push_back(pending);
        self.take_lane(&mut queue)
    }

    /// A lane, if one is idle and nobody waits.
    fn idle_lane(self: &Arc<Self>) -> Option<Lane<I, O>> {
        let mut queue = self.queue();
        if queue.waiting.is_empty() {
            self.take_lane(&mut queue)
        } else {
            None
        }
    }

    fn take_lane(self: &Arc<Self>, queue: &mut Queue<I, O>) -> Option<Lane<I, O>> {
        if queue.lanes_taken == self.lanes {
            return None;
        }
        queue.lanes_taken += 1;
        Some(Lane(Arc::clone(self)))
    }

    /// Whoever was answered with the last group is about to submit again: one turn of the
    /// scheduler lets them share the next one.
    async fn let_others_join(&self) {
        if self.crowded.load(Ordering::Relaxed) {
            yield_now().await;
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue<I, O>> {
        self.queue.lock().expect("no holder of this lock panics")
    }
}

// === impl Queue ===

impl<I, O> Queue<I, O> {
    /// Takes the next group; items of a key that it already has keep their place.
    fn take_group<K: Eq + Hash>(&mut self, max: usize, key: fn(&I) -> K) -> Vec<Pending<I, O>> {
        let mut group = Vec::with_capacity(self.waiting.len().min(max));
        let mut keys = HashSet::with_capacity(group.capacity());
        let mut passed_over = Vec::new();
        while group.len() < max && passed_over.len() < LOOK_AHEAD_ITEMS_MAX {
            let Some(pending) = self.waiting.pop_front() else {
                break;
            };
            if keys.insert(key(&pending.item)) {
                group.push(pending);
            } else {
                passed_over.push(pending);
            }
        }
        for pending in passed_over.into_iter().rev() {
            self.waiting.push_front(pending);
        }
        group
    }
}

// === impl Lane ===

impl<I: Send + 'static, O: Send + 'static> Lane<I, O> {
    /// Writes group after group until nobody waits.
    async fn work(self) {
        loop {
            self.0.let_others_join().await;
            let group = (self.0.take_group)(&mut self.0.queue());
            if group.is_empty() {
                return;
            }
            self.0.crowded.store(group.len() > 1, Ordering::Relaxed);
            (self.0.write)(group).await;
        }
    }
}

impl<I: Send + 'static, O: Send + 'static> Drop for Lane<I, O> {
    fn drop(&mut self) {
        let mut queue = self.0.queue();
        queue.lanes_taken -= 1;
        if queue.waiting.is_empty() {
            return;
        }
        // Without a runtime there is nobody left to be answered.
        if let (Ok(runtime), Some(lane)) = (
            tokio::runtime::Handle::try_current(),
            self.0.take_lane(&mut queue),
        ) {
            drop(queue);
            runtime.spawn(lane.work());
        }
    }
}

#[cfg(test)]
mod tests;
