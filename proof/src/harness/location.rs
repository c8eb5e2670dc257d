//! Where a store is, as data that a worker process can be told.

use anyhow::Context;
use semel::store::Letters;
use semel_embedded::{EmbeddedSettings, EmbeddedStore};
use semel_firestore::{FirestoreSettings, FirestoreStore};
use semel_postgres::{PostgresSettings, PostgresStore};
use semel_redis::{RedisSettings, RedisStore};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};
use tokio_postgres::{Client, NoTls};

/// How long PostgreSQL keeps what has expired: the least it allows.
pub(crate) const GRACE: Duration = Duration::from_secs(10);

/// How long to try to open a store.
const OPEN_WITHIN: Duration = Duration::from_secs(15);

/// The pause before the next try.
const OPEN_AGAIN: Duration = Duration::from_millis(50);

/// How many items go into one statement of PostgreSQL at the most.
const GROUP_ITEMS_MAX: usize = 256;

/// A kind of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum StoreKind {
    /// In the process that uses it.
    Embedded,
    Postgres,
    Redis,
    /// On Google's emulator, where there is one.
    Firestore,
}

/// Where a store is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoreLocation {
    pub(crate) kind: StoreKind,
    /// The URL of a server, or a directory that one process at a time may open.
    pub(crate) place: String,
    /// What the names of our keys begin with, where others have keys beside them.
    pub(crate) prefix: String,
    /// Whether calls are written in groups, or in the forms for single ones, where it knows the difference; of Firestore,
    /// whether it guesses.
    pub(crate) grouped: bool,
}

// === impl StoreKind ===

impl StoreKind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Postgres => "postgres",
            Self::Redis => "redis",
            Self::Firestore => "firestore",
        }
    }

    /// An empty store of this kind: on a server that tests share, or in this directory.
    pub(crate) async fn fresh(
        self,
        name: &'static str,
        dir: &Path,
    ) -> anyhow::Result<StoreLocation> {
        let place = match self {
            Self::Embedded => dir.join("store").display().to_string(),
            Self::Postgres => spawn_blocking(move || testbed::fresh_database(name)).await??,
            Self::Redis => spawn_blocking(testbed::redis_url).await??,
            Self::Firestore => firestore_emulator()
                .await?
                .context(testbed::FIRESTORE_NOT_RUN)?,
        };
        let prefix = format!("{name}{}", std::process::id());
        Ok(StoreLocation::new(self, place, prefix))
    }
}

// === impl StoreLocation ===

impl StoreLocation {
    pub(crate) const fn new(kind: StoreKind, place: String, prefix: String) -> Self {
        Self {
            kind,
            place,
            prefix,
            grouped: true,
        }
    }

    /// Opens the store; tries again for a while, as whoever restarts a worker would: a loaded server takes its time.
    pub(crate) async fn open(&self) -> anyhow::Result<Arc<dyn Letters>> {
        let until = Instant::now() + OPEN_WITHIN;
        loop {
            match self.open_once().await {
                Err(_) if Instant::now() < until => sleep(OPEN_AGAIN).await,
                opened => return opened,
            }
        }
    }

    async fn open_once(&self) -> anyhow::Result<Arc<dyn Letters>> {
        match self.kind {
            StoreKind::Postgres => {
                let mut settings = PostgresSettings::new(&self.place);
                settings.group_items_max = if self.grouped { GROUP_ITEMS_MAX } else { 1 };
                settings.grace = GRACE;
                Ok(Arc::new(PostgresStore::connect(settings).await?))
            }
            StoreKind::Redis => {
                let mut settings = RedisSettings::new(&self.place);
                settings.prefix.clone_from(&self.prefix);
                Ok(Arc::new(RedisStore::connect(settings).await?))
            }
            StoreKind::Firestore => {
                let mut settings = FirestoreSettings::new(&self.prefix);
                // Whoever sweeps here means it.
                settings.sweep_every = Duration::ZERO;
                settings.emulator_host = Some(self.place.clone());
                settings.guess = self.grouped;
                Ok(Arc::new(FirestoreStore::connect(settings).await?))
            }
            StoreKind::Embedded => {
                let store = EmbeddedStore::open(&self.place, EmbeddedSettings::default());
                Ok(Arc::new(store?))
            }
        }
    }

    /// The database, where it is one.
    pub(crate) fn database(&self) -> Option<&String> {
        (self.kind == StoreKind::Postgres).then_some(&self.place)
    }
}

/// Where the Firestore emulator is; none where there is none.
pub(crate) async fn firestore_emulator() -> anyhow::Result<Option<String>> {
    spawn_blocking(testbed::firestore_host).await?
}

/// Connects to a database of the test's own. The connection lives as long as its client.
pub(crate) async fn connect(url: &str) -> anyhow::Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls)
        .await
        .context("cannot connect to PostgreSQL")?;
    tokio::spawn(connection);
    Ok(client)
}
