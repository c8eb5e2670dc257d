//! What each route promises, as whoever started the gate proved it: for the page.

use crate::settings::Promise;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// What the routes promise; known once the store has been read.
#[derive(Clone, Debug, Default)]
pub struct PromiseLines(Arc<OnceLock<BTreeMap<String, PromiseLine>>>);

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
    /// Makes them known, by the names of their routes. The first word counts.
    pub fn prove(&self, lines: BTreeMap<String, PromiseLine>) {
        self.0.get_or_init(|| lines);
    }

    pub(crate) fn of(&self, route: &str) -> Option<&PromiseLine> {
        self.0.get()?.get(route)
    }
}
