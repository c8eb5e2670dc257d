//! Group commit without timers: everything that arrives while the last group is being written
//! goes into the next one. An idle lane takes a lone item at once, so nobody waits to be batched.

use super::Error;
use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::future::Future;
use std::hash::Hash;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::yield_now;
use tokio::time::Instant;

/// How many items may wait to be batched before submitters wait for room.
const QUEUE_ITEMS_MAX: usize = 65_536;

/// How long a sparing batcher leaves the next group to a lane that is at work: longer than a commit
/// takes, shorter than a caller would notice.
const LANE_PATIENCE: Duration = Duration::from_millis(20);

/// How many turns of the scheduler a group waits for more items at the most.
const JOIN_TURNS_MAX: u32 = 8;

/// How far a group looks past items whose key it already has, in items.
const LOOK_AHEAD_ITEMS_MAX: usize = 4096;

/// Takes items one by one and writes them in groups, on a fixed number of lanes.
///
/// ```
/// use semel::store::batch::{Batcher, Limits, Pending};
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
    limits: Limits,
    sparing: bool,
    queue: Mutex<Queue<I, O>>,
    room: Semaphore,
    /// Whether the last group had more than one item: then the next one probably has, too.
    crowded: AtomicBool,
    take_group: TakeGroup<I, O>,
    write: Write<I, O>,
}

struct Queue<I, O> {
    waiting: VecDeque<Pending<I, O>>,
    /// Since when each lane writes its group; `None` is an idle lane.
    lanes: Vec<Option<Instant>>,
}

/// The right to write on a lane. Giving it up hands it on if anybody waits, also when a caller
/// hangs up or a writer panics.
#[must_use = "a lane that is dropped is handed on"]
pub struct Lane<I: Send + 'static, O: Send + 'static> {
    shared: Arc<Shared<I, O>>,
    number: usize,
    /// Whether a task has it, or is still to begin.
    begun: bool,
}

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
        let limits = Limits {
            lanes: limits.lanes.max(1),
            items_max: limits.items_max.max(1),
        };
        let shared = Shared {
            limits,
            sparing: false,
            queue: Mutex::new(Queue {
                waiting: VecDeque::new(),
                lanes: vec![None; limits.lanes],
            }),
            room: Semaphore::new(QUEUE_ITEMS_MAX),
            crowded: AtomicBool::new(false),
            take_group: Box::new(move |queue| queue.take_group(limits.items_max, key)),
            write: Box::new(move |group| Box::pin(write(group))),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Uses no more lanes than needed, for stores where one large group is cheaper than two small
    /// ones: a further lane opens when half a group waits, or when all others have been at work for
    /// so long that they may be stuck.
    #[must_use]
    pub fn sparing(mut self) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.sparing = true;
        }
        self
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

    /// A lane for a caller that finds one idle and nobody waiting: it may write its item by itself,
    /// which saves two changes of task. The lane is handed on when the caller drops it, however it
    /// comes to that.
    pub async fn alone(&self) -> Option<Lane<I, O>> {
        let mut lane = self.shared.idle_lane()?;
        lane.begun = true;
        self.shared.let_others_join().await;
        if !self.shared.queue().waiting.is_empty() {
            return None;
        }
        self.shared.crowded.store(false, Ordering::Relaxed);
        Some(lane)
    }
}

impl<I, O> fmt::Debug for Batcher<I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batcher").finish_non_exhaustive()
    }
}

async fn answer<O>(answered: Answered<O>) -> Result<O, Error> {
    answered.await.unwrap_or_else(|_| {
        Err(Error::unavailable(
            "the store was closed while a call was under way; a repeat of the call is safe",
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
    /// Puts an item in the queue, and hands out a lane if one is idle and worth opening.
    fn enqueue(self: &Arc<Self>, pending: Pending<I, O>) -> Option<Lane<I, O>> {
        let mut queue = self.queue();
        queue.waiting.push_back(pending);
        self.take_lane(&mut queue)
    }

    /// A lane, if one is idle and worth opening, and nobody waits.
    fn idle_lane(self: &Arc<Self>) -> Option<Lane<I, O>> {
        let mut queue = self.queue();
        if queue.waiting.is_empty() {
            self.take_lane(&mut queue)
        } else {
            None
        }
    }

    fn take_lane(self: &Arc<Self>, queue: &mut Queue<I, O>) -> Option<Lane<I, O>> {
        if !self.wants_lane(queue, None) {
            return None;
        }
        let number = queue.lanes.iter().position(Option::is_none)?;
        if let Some(lane) = queue.lanes.get_mut(number) {
            *lane = Some(Instant::now());
        }
        Some(Lane {
            shared: Arc::clone(self),
            number,
            begun: false,
        })
    }

    /// Whether what waits is not better left to the lanes at work, other than `asking`.
    fn wants_lane(&self, queue: &Queue<I, O>, asking: Option<usize>) -> bool {
        let lanes = queue.lanes.iter().enumerate();
        let mut at_work = lanes
            .filter(|(number, _)| Some(*number) != asking)
            .filter_map(|(_, since)| *since);
        !self.sparing
            || queue.waiting.len() >= self.limits.items_max.div_ceil(2)
            || at_work.all(|since| since.elapsed() > LANE_PATIENCE)
    }

    /// Whoever was answered with the last groups is about to submit again: a turn of the scheduler
    /// lets them share the next one, as long as it brings somebody.
    async fn let_others_join(&self) {
        if !self.crowded.load(Ordering::Relaxed) {
            return;
        }
        let mut waiting = self.queue().waiting.len();
        for _ in 0..JOIN_TURNS_MAX {
            yield_now().await;
            let now = self.queue().waiting.len();
            if now == waiting {
                return;
            }
            waiting = now;
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
    /// Writes group after group, until nobody waits or other lanes are enough.
    async fn work(mut self) {
        self.begun = true;
        while let Some(group) = self.next_group().await {
            let crowded = group.len() > 1;
            self.shared.crowded.store(crowded, Ordering::Relaxed);
            (self.shared.write)(group).await;
        }
    }

    async fn next_group(&self) -> Option<Vec<Pending<I, O>>> {
        self.shared.let_others_join().await;
        let mut queue = self.shared.queue();
        if queue.waiting.is_empty() || !self.shared.wants_lane(&queue, Some(self.number)) {
            return None;
        }
        self.set(&mut queue, Some(Instant::now()));
        Some((self.shared.take_group)(&mut queue))
    }

    fn set(&self, queue: &mut Queue<I, O>, since: Option<Instant>) {
        if let Some(lane) = queue.lanes.get_mut(self.number) {
            *lane = since;
        }
    }
}

impl<I: Send + 'static, O: Send + 'static> fmt::Debug for Lane<I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

impl<I: Send + 'static, O: Send + 'static> Drop for Lane<I, O> {
    fn drop(&mut self) {
        let mut queue = self.shared.queue();
        self.set(&mut queue, None);
        if queue.waiting.is_empty() {
            return;
        }
        // A runtime that ends drops what it is given, this lane too: handing it on would go on for ever.
        if !self.begun {
            let left = std::mem::take(&mut queue.waiting);
            drop(queue);
            drop(left);
            return;
        }
        // Without a runtime there is nobody left to be answered.
        if let (Ok(runtime), Some(lane)) = (
            tokio::runtime::Handle::try_current(),
            self.shared.take_lane(&mut queue),
        ) {
            drop(queue);
            runtime.spawn(lane.work());
        }
    }
}

#[cfg(test)]
mod tests;
