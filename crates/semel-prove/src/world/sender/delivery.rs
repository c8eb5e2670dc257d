//! What is delivered: an identity that stays the same, and what is in it.

use crate::scenario::template::Variables;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Something that is delivered, perhaps many times: its identity stays the same.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    pub(crate) id: String,
    /// What it is about: shared by two deliveries that come in the wrong order, otherwise its own.
    pub(crate) entity: String,
    pub(crate) n: u64,
    pub(crate) payload: Payload,
    attempts: Arc<AtomicU32>,
}

/// What is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Payload {
    /// What the scenario calls `body`.
    Default,
    Other,
    Bad,
    /// The default one, but the request does not say its key.
    Keyless,
}

// === impl Payload ===

impl Payload {
    /// Whether it is owed its effect. What else came under its key may be refused for ever; the rest must only end.
    pub(crate) fn can_succeed(self) -> bool {
        matches!(self, Self::Default | Self::Other)
    }
}

// === impl Delivery ===

impl Delivery {
    pub(crate) fn new(id: String, n: u64) -> Self {
        Self {
            entity: id.clone(),
            id,
            n,
            payload: Payload::Default,
            attempts: Arc::default(),
        }
    }

    /// Another one about the same entity.
    pub(crate) fn about(mut self, entity: Option<&str>) -> Self {
        if let Some(entity) = entity {
            entity.clone_into(&mut self.entity);
        }
        self
    }

    /// These variables, and its own.
    pub(crate) fn variables(&self, others: &Variables) -> Variables {
        others
            .clone()
            .with("id", &self.id)
            .with("entity", &self.entity)
            .with("n", self.n)
    }

    /// How often it was sent.
    pub(crate) fn attempts(&self) -> u32 {
        self.attempts.load(Ordering::Relaxed)
    }

    pub(super) fn next_attempt(&self) -> u32 {
        self.attempts.fetch_add(1, Ordering::Relaxed) + 1
    }
}
