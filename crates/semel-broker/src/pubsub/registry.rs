//! Everything there is, by name.

use super::errors::not_found;
use super::names;
use super::resources::{Snapshot, Subscription, SubscriptionState, Topic};
use super::rows;
use super::schemas::{self, SchemaRevisions};
use crate::context::Context;
use crate::storage::{Batch, StorageError, Table};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::{RwLock, watch};
use tokio_util::sync::CancellationToken;
use tonic::Status;

/// The whole service.
#[derive(Debug)]
pub(crate) struct Registry {
    pub(super) context: Arc<Context>,
    names: Mutex<ResourceMaps>,
    /// Shared by all who move messages; held alone by whoever changes what topics, subscriptions and
    /// snapshots there are, so that these see every message or none.
    pub(super) topology: RwLock<()>,
    pub(super) changed: watch::Sender<u64>,
    pub(super) closed: CancellationToken,
    consumers: AtomicU64,
}

#[derive(Debug, Default)]
pub(super) struct ResourceMaps {
    pub(super) topics: BTreeMap<String, Arc<Topic>>,
    pub(super) subscriptions: BTreeMap<String, Arc<Subscription>>,
    pub(super) snapshots: BTreeMap<String, Arc<Snapshot>>,
    pub(super) schemas: BTreeMap<String, Arc<SchemaRevisions>>,
    pub(super) next_number: u64,
}

// === impl Registry ===

impl Registry {
    pub(super) fn open(context: Arc<Context>) -> Result<Self, StorageError> {
        let mut names = ResourceMaps {
            next_number: rows::next_number(&context.storage)?,
            ..ResourceMaps::default()
        };
        names.read_topics(&context)?;
        names.read_subscriptions(&context)?;
        names.read_snapshots(&context)?;
        names.read_schemas(&context)?;
        Ok(Self {
            context,
            names: Mutex::new(names),
            topology: RwLock::default(),
            changed: watch::channel(0).0,
            closed: CancellationToken::new(),
            consumers: AtomicU64::new(0),
        })
    }

    pub(super) fn names(&self) -> MutexGuard<'_, ResourceMaps> {
        self.names.lock().expect("nobody panics holding it")
    }

    pub(super) fn topic(&self, name: &str) -> Result<Arc<Topic>, Status> {
        names::check("topic", name, "topics")?;
        let topic = self.names().topics.get(name).cloned();
        topic.ok_or_else(|| not_found(name))
    }

    pub(super) fn subscription(&self, name: &str) -> Result<Arc<Subscription>, Status> {
        names::check("subscription", name, "subscriptions")?;
        let subscription = self.names().subscriptions.get(name).cloned();
        subscription.ok_or_else(|| not_found(name))
    }

    /// A number nobody had before.
    pub(super) fn consumer(&self) -> u64 {
        self.consumers.fetch_add(1, Ordering::Relaxed)
    }

    /// A number for a topic or backlog; it is used up when the batch is committed.
    pub(super) fn number(&self, batch: &mut Batch) -> u64 {
        let mut names = self.names();
        let number = names.next_number;
        names.next_number += 1;
        rows::put_next_number(batch, names.next_number);
        number
    }

    pub(super) async fn commit(&self, batch: Batch) -> Result<(), Status> {
        Ok(self.context.storage.commit(batch).await?)
    }

    /// For what a power cut may take back: it is delivered once more then.
    pub(super) async fn write(&self, batch: Batch) -> Result<(), Status> {
        Ok(self.context.storage.write(batch).await?)
    }

    /// Commits what nobody waits for.
    pub(super) fn commit_behind(&self, batch: Batch) {
        if batch.is_empty() {
            return;
        }
        let storage = self.context.storage.clone();
        tokio::spawn(async move {
            if let Err(error) = storage.commit(batch).await {
                tracing::warn!(%error, "pubsub could not tidy up");
            }
        });
    }

    /// Wakes whoever looks after a subscription or waits for it.
    pub(super) fn notify(&self, subscription: &Subscription) {
        subscription.wake.send_replace(());
        self.changed
            .send_modify(|changes| *changes = changes.wrapping_add(1));
    }

    /// The subscription is deleted.
    pub(super) fn end(&self, subscription: &Subscription) {
        subscription.state().deleted = true;
        self.abandon(&mut subscription.state());
        self.notify(subscription);
    }

    /// Its backlog is empty; of what was outstanding nobody hears any more.
    pub(super) fn abandon(&self, state: &mut SubscriptionState) {
        let ended = state.backlog.abandon();
        self.note(ended, self.context.clock.now());
    }

    pub(super) fn busy(&self, include_pull: bool) -> Vec<String> {
        let subscriptions: Vec<_> = self.names().subscriptions.values().cloned().collect();
        let busy = subscriptions.iter().filter(|subscription| {
            let state = subscription.state();
            (include_pull || state.pushes()) && state.is_busy()
        });
        busy.map(|subscription| subscription.name.clone()).collect()
    }

    pub(super) async fn reset(&self) -> Result<(), StorageError> {
        let _alone = self.topology.write().await;
        let mut batch = Batch::default();
        for table in [
            Table::Topics,
            Table::Subscriptions,
            Table::Snapshots,
            Table::Schemas,
            Table::Messages,
        ] {
            rows::delete_all(&mut batch, &self.context.storage, table, b"")?;
        }
        self.context.storage.commit(batch).await?;
        let gone = {
            let mut names = self.names();
            names.topics.clear();
            names.snapshots.clear();
            names.schemas.clear();
            std::mem::take(&mut names.subscriptions)
        };
        for subscription in gone.values() {
            self.end(subscription);
        }
        self.changed
            .send_modify(|changes| *changes = changes.wrapping_add(1));
        Ok(())
    }
}

// === impl ResourceMaps ===

impl ResourceMaps {
    fn read_topics(&mut self, context: &Context) -> Result<(), StorageError> {
        for row in context.storage.rows(Table::Topics, b"") {
            let topic = Topic::kept(rows::decode(row?.value)?);
            let name = topic.state().settings.name.clone();
            self.topics.insert(name, Arc::new(topic));
        }
        Ok(())
    }

    fn read_subscriptions(&mut self, context: &Context) -> Result<(), StorageError> {
        for row in context.storage.rows(Table::Subscriptions, b"") {
            let subscription = Arc::new(Subscription::kept(context, rows::decode(row?.value)?)?);
            let settings = subscription.state().settings.clone();
            let topic = self.topics.get(&settings.topic);
            if let Some(topic) = topic.filter(|_| !settings.detached) {
                let mut topic = topic.state();
                let last = subscription.state().backlog.last();
                topic.next = topic.next.max(last.map_or(0, |last| last + 1));
                topic.subscriptions.push(Arc::clone(&subscription));
            }
            self.subscriptions.insert(settings.name, subscription);
        }
        Ok(())
    }

    fn read_schemas(&mut self, context: &Context) -> Result<(), StorageError> {
        for row in context.storage.rows(Table::Schemas, b"") {
            let schema = schemas::kept(row?)?;
            let name = schema.last().schema.name.clone();
            self.schemas.insert(name, Arc::new(schema));
        }
        Ok(())
    }

    fn read_snapshots(&mut self, context: &Context) -> Result<(), StorageError> {
        for row in context.storage.rows(Table::Snapshots, b"") {
            let snapshot = Arc::new(Snapshot::kept(rows::decode(row?.value)?));
            let topic = snapshot.settings().topic.clone();
            if let Some(topic) = self.topics.get(&topic) {
                topic.state().snapshots.push(Arc::clone(&snapshot));
            }
            self.snapshots.insert(snapshot.name.clone(), snapshot);
        }
        Ok(())
    }
}
