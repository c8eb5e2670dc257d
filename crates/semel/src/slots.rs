//! Slots: how many runs may be in hand at once, and how many deliveries may wait for their turn.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::time::Instant;

/// A limit on runs, shared by all work that is given it. Duplicates that wait, attach or are
/// replayed take none.
///
/// ```
/// use semel::slots::Slots;
/// use semel::work::Work;
/// use semel::{Fingerprint, Key};
///
/// let slots = Slots::new(10, 100);
/// let work = Work::new(Key::from_bytes([1; 32]), Fingerprint::of(b"payload")).slots(&slots);
/// assert_eq!((slots.runs(), slots.queued()), (0, 0));
/// # drop(work);
/// ```
#[derive(Clone, Debug)]
pub struct Slots {
    runs_max: usize,
    queue_max: usize,
    free: Arc<Semaphore>,
    places: Arc<Semaphore>,
}

/// How long one delivery has waited for a slot, for whoever asked for it to read.
///
/// ```
/// use semel::slots::{SlotWait, Slots};
/// use semel::work::Work;
/// use semel::{Fingerprint, Key};
///
/// let work = Work::new(Key::from_bytes([1; 32]), Fingerprint::of(b"payload"));
/// let wait: SlotWait = work.slot_wait();
/// assert_eq!(wait.waited(), None);
/// ```
#[derive(Clone, Debug, Default)]
pub struct SlotWait {
    micros: Arc<AtomicU64>,
}

/// A place in the queue. Its turn stays where it is, however often the one who waits looks up.
pub(crate) struct Place<'a> {
    turn: Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send + 'a>>,
    begun: Instant,
    wait: &'a SlotWait,
    _place: SemaphorePermit<'a>,
}

/// A place to run in, given back when it is dropped.
#[derive(Debug)]
pub struct Slot {
    _permit: Option<OwnedSemaphorePermit>,
}

// === impl Slots ===

impl Slots {
    /// Room for so many runs, and for so many deliveries that wait for one to end.
    #[must_use]
    pub fn new(runs_max: usize, queue_max: usize) -> Self {
        let bounded = |n: usize| n.min(Semaphore::MAX_PERMITS);
        Self {
            runs_max: bounded(runs_max),
            queue_max: bounded(queue_max),
            free: Arc::new(Semaphore::new(bounded(runs_max))),
            places: Arc::new(Semaphore::new(bounded(queue_max))),
        }
    }

    /// How many runs are in hand.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.runs_max - self.free.available_permits()
    }

    /// How many deliveries wait for a slot.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queue_max - self.places.available_permits()
    }

    /// Sends everyone home who waits, and lets nobody begin any more.
    pub fn close(&self) {
        self.free.close();
    }

    /// A slot for a run that claims nothing, after a wait in the queue if need be; `None` when too many wait already, or
    /// nobody may begin any more.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// use semel::slots::{SlotWait, Slots};
    ///
    /// let slots = Slots::new(1, 0);
    /// let wait = SlotWait::default();
    /// let slot = slots.take(&wait).await;
    /// assert!(slot.is_some() && slots.take(&wait).await.is_none());
    /// # });
    /// ```
    pub async fn take(&self, wait: &SlotWait) -> Option<Slot> {
        if let Some(slot) = self.try_take() {
            return Some(slot);
        }
        self.queue(wait)?.turn().await
    }

    pub(crate) fn try_take(&self) -> Option<Slot> {
        Arc::clone(&self.free)
            .try_acquire_owned()
            .ok()
            .map(Slot::of)
    }

    /// A place in the queue, unless too many wait already.
    pub(crate) fn queue<'a>(&'a self, wait: &'a SlotWait) -> Option<Place<'a>> {
        Some(Place {
            _place: self.places.try_acquire().ok()?,
            turn: Box::pin(Arc::clone(&self.free).acquire_owned()),
            begun: Instant::now(),
            wait,
        })
    }
}

// === impl SlotWait ===

impl SlotWait {
    /// How long it was; `None` when there was a slot at once, or none was asked for.
    #[must_use]
    pub fn waited(&self) -> Option<Duration> {
        let micros = self.micros.load(Ordering::Relaxed);
        (micros > 0).then(|| Duration::from_micros(micros))
    }

    /// Counts on, and at least something: who waited is told from who did not.
    fn add(&self, waited: Duration) {
        let micros = u64::try_from(waited.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros.max(1), Ordering::Relaxed);
    }
}

// === impl Place ===

impl Place<'_> {
    /// Resolves when it is its turn; `None` when there will be no turn any more. May be dropped and
    /// called again.
    pub(crate) async fn turn(&mut self) -> Option<Slot> {
        self.turn.as_mut().await.ok().map(Slot::of)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.wait.add(self.begun.elapsed());
    }
}

// === impl Slot ===

impl Slot {
    /// Where runs are not limited.
    pub(crate) const fn unlimited() -> Self {
        Self { _permit: None }
    }

    const fn of(permit: OwnedSemaphorePermit) -> Self {
        Self {
            _permit: Some(permit),
        }
    }
}
