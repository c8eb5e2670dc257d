//! Slots: how many runs may be in hand at once, and how many deliveries may wait for their turn.

use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

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

/// A place to run in, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Slot {
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

    pub(crate) fn try_take(&self) -> Option<Slot> {
        Arc::clone(&self.free)
            .try_acquire_owned()
            .ok()
            .map(Slot::of)
    }

    /// Waits for a slot, unless too many do already.
    pub(crate) async fn queue(&self, patience: Duration) -> Option<Slot> {
        let _place = self.places.try_acquire().ok()?;
        let free = timeout(patience, Arc::clone(&self.free).acquire_owned()).await;
        free.ok()?.ok().map(Slot::of)
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
