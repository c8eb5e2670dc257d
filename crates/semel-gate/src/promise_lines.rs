//! What each route promises, as whoever started the gate proved it: for the page.

use crate::settings::Promise;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// What the routes promise, as far as the store and the servers of landings were read.
#[derive(Clone, Debug, Default)]
pub struct PromiseLines(Arc<RwLock<BTreeMap<String, PromiseLine>>>);

/// What one route promises.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromiseLine {
    /// What is proved; none: nothing is.
    pub proved: Option<Promise>,
    /// What a crash does to its effects, and why.
    pub says: String,
}

// === impl PromiseLines ===

impl PromiseLines {
    /// Makes them known, by the names of their routes, in place of those before.
    pub fn prove(&self, lines: BTreeMap<String, PromiseLine>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = lines;
    }

    pub(crate) fn of(&self, route: &str) -> Option<PromiseLine> {
        let lines = self.0.read().unwrap_or_else(PoisonError::into_inner);
        lines.get(route).cloned()
    }
}
