//! Where a store is, as data that a worker process can be told.

use anyhow::Context;
use semel::store::Letters;
use semel_embedded::{EmbeddedSettings, EmbeddedStore};
use semel_postgres::{PostgresSettings, PostgresStore};
use semel_redis::{RedisSettings, RedisStore};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
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

/// A kind of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreKind {
    /// In the process that uses it.
    Embedded,
    Postgres,
    Redis,
}

/// Where a store is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum StoreLocation {
    Postgres {
        url: String,
        /// How many items go into one statement at the most; 1 uses the forms for single ones.
        group_items_max: usize,
    },
    Redis {
        url: String,
        /// What the names of our keys begin with.
        prefix: String,
    },
    /// A directory that one process at a time may open.
    Embedded { dir: PathBuf },
}

// === impl StoreKind ===

impl StoreKind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Postgres => "postgres",
            Self::Redis => "redis",
        }
    }

    /// An empty store of this kind: on a server that tests share, or in this directory.
    pub(crate) async fn fresh(
        self,
        name: &'static str,
        dir: &Path,
    ) -> anyhow::Result<StoreLocation> {
        Ok(match self {
            Self::Embedded => StoreLocation::Embedded {
                dir: dir.join("store"),
            },
            Self::Postgres => StoreLocation::Postgres {
                url: spawn_blocking(move || testbed::fresh_database(name)).await??,
                group_items_max: 256,
            },
            Self::Redis => StoreLocation::Redis {
                url: spawn_blocking(testbed::redis_url).await??,
                prefix: format!("{name}{}", std::process::id()),
            },
        })
    }
}

// === impl StoreLocation ===

impl StoreLocation {
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
        match self {
            Self::Postgres {
                url,
                group_items_max,
            } => {
                let mut settings = PostgresSettings::new(url);
                settings.group_items_max = *group_items_max;
                settings.grace = GRACE;
                Ok(Arc::new(PostgresStore::connect(settings).await?))
            }
            Self::Redis { url, prefix } => {
                let mut settings = RedisSettings::new(url);
                settings.prefix.clone_from(prefix);
                Ok(Arc::new(RedisStore::connect(settings).await?))
            }
            Self::Embedded { dir } => Ok(Arc::new(EmbeddedStore::open(
                dir,
                EmbeddedSettings::default(),
            )?)),
        }
    }

    /// The same store, its calls written in groups or one by one, where it knows the difference.
    pub(crate) fn grouping(self, groups: bool) -> Self {
        match self {
            Self::Postgres { url, .. } => Self::Postgres {
                url,
                group_items_max: if groups { 256 } else { 1 },
            },
            location @ (Self::Redis { .. } | Self::Embedded { .. }) => location,
        }
    }

    pub(crate) const fn kind(&self) -> StoreKind {
        match self {
            Self::Postgres { .. } => StoreKind::Postgres,
            Self::Redis { .. } => StoreKind::Redis,
            Self::Embedded { .. } => StoreKind::Embedded,
        }
    }

    /// The database, where it is one.
    pub(crate) const fn database(&self) -> Option<&String> {
        match self {
            Self::Postgres { url, .. } => Some(url),
            Self::Redis { .. } | Self::Embedded { .. } => None,
        }
    }
}

/// Connects to a database of the test's own. The connection lives as long as its client.
pub(crate) async fn connect(url: &str) -> anyhow::Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls)
        .await
        .context("cannot connect to PostgreSQL")?;
    tokio::spawn(connection);
    Ok(client)
}
