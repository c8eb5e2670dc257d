//! Pub/Sub v1. What is published is copied into the backlog of every subscription that wants it, in storage, before the
//! publisher is answered; it leaves a backlog when its acknowledgement is in storage too.

mod publisher;
mod subscriber;
mod registry;
mod resources;
mod topics;
mod subscriptions;
mod update;
mod snapshots;
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
mod validate;
mod errors;
#[cfg(test)]
mod tests;

use crate::context::Context;
use crate::storage::StorageError;
use registry::Registry;
use std::sync::Arc;
use tokio::sync::watch;
use tokio_util::sync::DropGuard;

/// The service; clones are the same one. When the last is dropped, its deliveries end.
#[derive(Clone, Debug)]
pub(crate) struct PubSub {
    registry: Arc<Registry>,
    #[expect(dead_code, reason = "dropped with the last clone")]
    open: Arc<DropGuard>,
}

// === impl PubSub ===

impl PubSub {
    /// Goes on where the last broker on this storage stopped. Needs a runtime: pushes begin at once.
    pub(crate) fn open(context: Arc<Context>) -> Result<Self, StorageError> {
        let registry = Arc::new(Registry::open(context)?);
        registry.start_workers();
        let open = Arc::new(registry.closed.clone().drop_guard());
        Ok(Self { registry, open })
    }

    /// The full names of subscriptions with anything undelivered or unacknowledged: those that push,
    /// and on request those that are pulled from.
    pub(crate) fn busy(&self, include_pull: bool) -> Vec<String> {
        self.registry.busy(include_pull)
    }

    /// Changes whenever [`PubSub::busy`] may have; get it before looking there.
    pub(crate) fn changed(&self) -> watch::Receiver<u64> {
        self.registry.changed.subscribe()
    }

    /// Everything is gone: topics, subscriptions, snapshots, messages.
    pub(crate) async fn reset(&self) -> Result<(), StorageError> {
        let registry = Arc::clone(&self.registry);
        let reset = tokio::spawn(async move { registry.reset().await });
        let ended = |_| Err(StorageError("the reset did not finish".into()));
        reset.await.unwrap_or_else(ended)
    }
}
