//! What the admin API needs of both services and of what is declared.

use super::services::Services;
use crate::admin::{self, Admin, Guard, Service};
use crate::declared::Declared;
use crate::pubsub::PubSub;
use crate::storage::{Storage, StorageError, Table};
use crate::tasks::Tasks;
use async_trait::async_trait;
use std::sync::Arc;
use tokio::sync::watch;

/// How many rows of a table are counted; beyond that it is said to hold so many.
const COUNTED_MAX: usize = 10_000;

/// One service and where it keeps its things.
#[derive(Debug)]
struct AdminService<S> {
    service: S,
    storage: Storage,
}

/// What is declared, and the services that can make it so.
#[derive(Debug)]
struct DeclaredProvisioner {
    declared: Declared,
    tasks: Tasks,
    pubsub: PubSub,
}

/// The desk of these services.
pub(super) fn build(services: &Services, guard: Guard) -> Admin {
    let storage = || services.context.storage.clone();
    let tasks = AdminService {
        service: Tasks::clone(&services.tasks),
        storage: storage(),
    };
    let pubsub = AdminService {
        service: PubSub::clone(&services.pubsub),
        storage: storage(),
    };
    let makes = DeclaredProvisioner {
        declared: services.declared.clone(),
        tasks: Tasks::clone(&services.tasks),
        pubsub: PubSub::clone(&services.pubsub),
    };
    Admin::new(
        Arc::clone(&services.context),
        vec![Arc::new(tasks), Arc::new(pubsub)],
        Arc::new(makes),
        guard,
    )
}

#[async_trait]
impl Service for AdminService<Tasks> {
    fn counts(&self) -> Vec<(&'static str, usize)> {
        vec![("queues", count(&self.storage, Table::Queues))]
    }

    fn busy(&self, _pull: bool, limit: usize) -> Vec<String> {
        let mut busy = self.service.busy();
        busy.truncate(limit);
        busy
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.service.changed()
    }

    async fn reset(&self) -> Result<(), StorageError> {
        self.service.reset().await
    }
}

#[async_trait]
impl Service for AdminService<PubSub> {
    fn counts(&self) -> Vec<(&'static str, usize)> {
        vec![
            ("topics", count(&self.storage, Table::Topics)),
            ("subscriptions", count(&self.storage, Table::Subscriptions)),
            ("snapshots", count(&self.storage, Table::Snapshots)),
        ]
    }

    fn busy(&self, pull: bool, limit: usize) -> Vec<String> {
        let mut busy = self.service.busy(pull);
        busy.truncate(limit);
        busy
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.service.changed()
    }

    async fn reset(&self) -> Result<(), StorageError> {
        self.service.reset().await
    }
}

#[async_trait]
impl admin::Provisioner for DeclaredProvisioner {
    async fn provision(&self) -> Result<(), String> {
        let made = self.declared.apply(&self.tasks, &self.pubsub).await;
        made.map_err(|error| error.to_string())
    }
}

fn count(storage: &Storage, table: Table) -> usize {
    let rows = storage.scan(table, &[], None, COUNTED_MAX);
    rows.map_or(0, |rows| rows.len())
}
