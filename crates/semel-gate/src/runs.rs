//! The runs in hand, by owner: whose steps may be begun and recorded, and what is left at the end.

use semel::record::{InDoubt, Lease, Owner};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// The runs in hand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runs {
    by_owner: Arc<Mutex<HashMap<Owner, InHand>>>,
}

/// A run that was sent to its handler, or is about to be.
#[derive(Clone, Debug)]
pub(crate) struct InHand {
    pub(crate) lease: Lease,
    pub(crate) in_doubt: InDoubt,
    pub(crate) route: String,
}

/// Keeps a run on the list until it is dropped.
#[derive(Debug)]
pub(crate) struct Listed {
    runs: Runs,
    owner: Owner,
}

// === impl Runs ===

impl Runs {
    pub(crate) fn list(&self, run: InHand) -> Listed {
        let owner = run.lease.owner;
        self.lock().insert(owner, run);
        Listed {
            runs: self.clone(),
            owner,
        }
    }

    /// The run of this owner.
    pub(crate) fn get(&self, owner: &Owner) -> Option<InHand> {
        self.lock().get(owner).cloned()
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<InHand> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Owner, InHand>> {
        self.by_owner.lock().expect("no holder of this lock panics")
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.runs.lock().remove(&self.owner);
    }
}
