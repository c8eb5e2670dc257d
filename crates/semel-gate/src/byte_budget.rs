//! ByteBudget: bytes that many share. What fits is taken at once, also while something larger waits; who
//! waits does so in turn, and wakes nobody else.

use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{Mutex, Notify};

/// So many bytes that may be held at a time.
#[derive(Debug)]
pub(crate) struct ByteBudget {
    free: AtomicUsize,
    turn: Mutex<()>,
    given_back: Notify,
}

/// Bytes of a budget, given back unless they are kept.
#[derive(Debug)]
#[must_use]
pub(crate) struct Acquired<'a> {
    budget: &'a ByteBudget,
    bytes: usize,
}

// === impl ByteBudget ===

impl ByteBudget {
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            free: AtomicUsize::new(bytes),
            turn: Mutex::default(),
            given_back: Notify::new(),
        }
    }

    /// Takes bytes if they are free.
    pub(crate) fn try_take(&self, bytes: usize) -> Option<Acquired<'_>> {
        let taken = self
            .free
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |free| {
                free.checked_sub(bytes)
            });
        taken.ok().map(|_| Acquired {
            budget: self,
            bytes,
        })
    }

    /// Takes bytes as soon as they are free.
    pub(crate) async fn take(&self, bytes: usize) -> Acquired<'_> {
        if let Some(taken) = self.try_take(bytes) {
            return taken;
        }
        let _turn = self.turn.lock().await;
        loop {
            if let Some(taken) = self.try_take(bytes) {
                return taken;
            }
            self.given_back.notified().await;
        }
    }

    /// Gives back what was kept.
    pub(crate) fn give_back(&self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.free.fetch_add(bytes, Ordering::Relaxed);
        self.given_back.notify_one();
    }

    #[cfg(test)]
    pub(crate) fn free(&self) -> usize {
        self.free.load(Ordering::Relaxed)
    }
}

// === impl Acquired ===

impl Acquired<'_> {
    /// Whoever keeps them gives them back.
    pub(crate) fn keep(mut self) {
        self.bytes = 0;
    }
}

impl Drop for Acquired<'_> {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;

    #[tokio::test(start_paused = true)]
    async fn what_fits_passes_what_waits() {
        let budget = ByteBudget::new(10);
        let held = budget.try_take(6).unwrap();
        let mut large = std::pin::pin!(budget.take(8));
        let waits = timeout(Duration::from_secs(1), &mut large).await;
        assert!(waits.is_err());
        drop(budget.try_take(4).unwrap());
        drop(held);
        large.await.keep();
        assert_eq!(budget.free(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn all_that_wait_have_their_turn() {
        let budget = ByteBudget::new(10);
        let held = budget.try_take(10).unwrap();
        let one = async { drop(budget.take(10).await) };
        let two = async { drop(budget.take(3).await) };
        let three = async { drop(budget.take(7).await) };
        let leaves = async { drop(held) };
        let all = async { tokio::join!(one, two, three, leaves) };
        timeout(Duration::from_secs(1), all).await.unwrap();
        assert_eq!(budget.free(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn who_gives_up_lets_the_next_one_wait() {
        let budget = ByteBudget::new(10);
        let held = budget.try_take(5).unwrap();
        let gives_up = timeout(Duration::from_secs(1), budget.take(10));
        let patient = async { drop(budget.take(6).await) };
        let leaves = async {
            tokio::time::sleep(Duration::from_secs(2)).await;
            drop(held);
        };
        let (gave_up, (), ()) = tokio::join!(gives_up, patient, leaves);
        assert!(gave_up.is_err());
    }
}
