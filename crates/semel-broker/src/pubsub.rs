//! Pub/Sub v1. What is published is copied into the backlog of every subscription that wants it, in storage, before the
//! publisher is answered; it leaves a backlog when its acknowledgement is in storage too.

mod publisher;
mod subscriber;
mod house;
mod things;
mod topics;
mod subscriptions;
mod update;
mod snapshots;
mod publish;
mod receive;
mod stream;
mod settle;
mod seek;
mod keep;
mod dead_letter;
mod push;
mod backlog;
mod filter;
mod rows;
mod names;
mod limits;
mod errors;
#[cfg(test)]
mod tests;

use crate::context::Context;
use crate::storage::StorageError;
use house::House;
use std::sync::Arc;
use tokio::sync::watch;
use tokio_util::sync::DropGuard;

/// The service; clones are the same one. When the last is dropped, its deliveries end.
#[derive(Clone, Debug)]
pub(crate) struct PubSub {
    house: Arc<House>,
    #[expect(dead_code, reason = "dropped with the last clone")]
    open: Arc<DropGuard>,
}

// === impl PubSub ===

impl PubSub {
    /// Goes on where the last broker on this storage stopped. Needs a runtime: pushes begin at once.
    pub(crate) fn open(context: Arc<Context>) -> Result<Self, StorageError> {
        let house = Arc::new(House::open(context)?);
        house.keep_all();
        let open = Arc::new(house.closed.clone().drop_guard());
        Ok(Self { house, open })
    }

    /// The full names of subscriptions with anything undelivered or unacknowledged: those that push,
    /// and on request those that are pulled from.
    pub(crate) fn busy(&self, include_pull: bool) -> Vec<String> {
        self.house.busy(include_pull)
    }

    /// Changes whenever [`PubSub::busy`] may have; get it before looking there.
    pub(crate) fn changed(&self) -> watch::Receiver<u64> {
        self.house.changed.subscribe()
    }

    /// Everything is gone: topics, subscriptions, snapshots, messages.
    pub(crate) async fn reset(&self) -> Result<(), StorageError> {
        let house = Arc::clone(&self.house);
        let reset = tokio::spawn(async move { house.reset().await });
        let ended = |_| Err(StorageError("the reset did not finish".into()));
        reset.await.unwrap_or_else(ended)
    }
}
