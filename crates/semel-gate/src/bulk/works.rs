//! Which work a job has run: several letters may be of one work, and a job runs it once.

use semel::Key;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OwnedMutexGuard;

/// Whether a job has run a work, by its key. Letters of one work take their turns.
#[derive(Debug, Default)]
pub(super) struct Works(Mutex<HashMap<Key, Arc<HasRun>>>);

type HasRun = tokio::sync::Mutex<bool>;

// === impl Works ===

impl Works {
    /// Once the job has no other letter of this work in hand: whether it has run that work.
    pub(super) async fn turn(&self, work: Key) -> OwnedMutexGuard<bool> {
        let has_run = {
            let mut works = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(works.entry(work).or_default())
        };
        has_run.lock_owned().await
    }
}
