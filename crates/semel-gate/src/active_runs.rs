//! The runs in hand, by owner: whose steps may be begun and recorded, and what is left at the end.

use crate::trace::context::TraceContext;
use semel::Key;
use semel::protocol::{InDoubt, Lease, Owner};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// The runs in hand.
#[derive(Clone, Debug, Default)]
pub(crate) struct ActiveRuns {
    by_owner: Arc<Mutex<HashMap<Owner, ActiveRun>>>,
}

/// A run that was sent to its handler, or is about to be.
#[derive(Clone, Debug)]
pub(crate) struct ActiveRun {
    pub(crate) lease: Lease,
    pub(crate) in_doubt: InDoubt,
    pub(crate) route: String,
    /// The span of the delivery that runs it, if that is recorded.
    pub(crate) span: Option<TraceContext>,
}

/// Keeps a run on the list until it is dropped.
#[derive(Debug)]
pub(crate) struct RunGuard {
    runs: ActiveRuns,
    owner: Owner,
}

// === impl ActiveRuns ===

impl ActiveRuns {
    pub(crate) fn list(&self, run: ActiveRun) -> RunGuard {
        let owner = run.lease.owner;
        self.lock().insert(owner, run);
        RunGuard {
            runs: self.clone(),
            owner,
        }
    }

    /// The run of this owner.
    pub(crate) fn get(&self, owner: &Owner) -> Option<ActiveRun> {
        self.lock().get(owner).cloned()
    }

    /// The span of the run of this key, if it is in hand and recorded.
    pub(crate) fn span_of(&self, key: &Key) -> Option<TraceContext> {
        let runs = self.lock();
        let run = runs.values().find(|run| run.lease.key == *key)?;
        run.span.clone()
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<ActiveRun> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Owner, ActiveRun>> {
        self.by_owner.lock().expect("no holder of this lock panics")
    }
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        self.runs.lock().remove(&self.owner);
    }
}
