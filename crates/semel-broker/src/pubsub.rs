//! Pub/Sub v1. What is published is copied into the backlog of every subscription that wants it, in storage, before the
//! publisher is answered; it leaves a backlog when its acknowledgement is in storage too.

mod service;
mod shown;
mod registry;
mod resources;
mod topics;
mod subscriptions;
mod update;
mod snapshots;
mod schemas;
mod publish;
mod pull;
mod stream;
mod acknowledge;
mod seek;
mod subscription_worker;
mod dead_letter;
mod push;
mod backlog;
mod filter;
mod rows;
mod names;
mod access;
mod validate;
mod errors;
#[cfg(test)]
mod tests;

use crate::context::Context;
use crate::storage::StorageError;
pub(crate) use registry::Registry;
pub(crate) use shown::{ShownSubscription, ShownTopic};
use std::sync::Arc;
use tokio_util::sync::DropGuard;

/// The service. When it is dropped, its deliveries end.
#[derive(Debug)]
pub(crate) struct PubSub {
    registry: Arc<Registry>,
    #[expect(dead_code, reason = "dropped with the service")]
    open: DropGuard,
}

// === impl PubSub ===

impl PubSub {
    /// Goes on where the last broker on this storage stopped. Needs a runtime: pushes begin at once.
    pub(crate) fn open(context: Arc<Context>) -> Result<Self, StorageError> {
        let registry = Arc::new(Registry::open(context)?);
        registry.start_workers();
        let open = registry.closed.clone().drop_guard();
        Ok(Self { registry, open })
    }

    /// The whole service.
    pub(crate) fn registry(&self) -> Arc<Registry> {
        Arc::clone(&self.registry)
    }
}
