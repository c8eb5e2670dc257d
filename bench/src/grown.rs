//! Stores with settled keys in them, each in a place of its own, and how much room a key takes there.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use redis::aio::MultiplexedConnection;
use semel::{Semel, Settings, Store};
use tokio::time::sleep;

use crate::first_run::preload;
use crate::pattern::connect;
use crate::{disk, embedded, postgres, redis as redis_group};

/// Where stores of one kind are made.
#[derive(Clone)]
pub(crate) enum Ground {
    /// Each in a database of its own on this server.
    Postgres(Arc<testbed::Postgres>),
    /// Each in a directory of its own.
    Embedded,
    /// Each on a server of its own.
    Redis,
}

/// A store with settled keys. The store goes before the place it lives in.
pub(crate) struct Grown {
    pub(crate) semel: Semel,
    pub(crate) weights: Weights,
    /// What must stay as long as the store is used.
    _home: Box<dyn Any + Send>,
}

/// How many bytes there are of what.
type Weights = Vec<(&'static str, u64)>;

/// Everything in the database that is not PostgreSQL's own: tables, their indexes and long values.
const TABLES_BYTES: &str = "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c \
     JOIN pg_namespace n ON n.oid = c.relnamespace \
     WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema')";

/// How long to leave Redis alone between two looks whether it has rewritten its file.
const REWRITE_POLL: Duration = Duration::from_millis(50);

// === impl Ground ===

impl Ground {
    /// One of each kind.
    pub(crate) fn all() -> anyhow::Result<[Self; 3]> {
        let server = postgres::server()?;
        Ok([
            Self::Postgres(Arc::new(server)),
            Self::Embedded,
            Self::Redis,
        ])
    }

    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Postgres(_) => "PostgreSQL",
            Self::Embedded => "embedded",
            Self::Redis => "Redis",
        }
    }

    pub(crate) async fn conditions(&self) -> anyhow::Result<String> {
        match self {
            Self::Postgres(server) => postgres::conditions(server).await,
            Self::Embedded => Ok("Embedded: directories on the disk of the project.".to_owned()),
            Self::Redis => redis_group::conditions(&redis_group::server()?).await,
        }
    }

    /// A new store in which `keys` keys are settled, weighed and at rest.
    pub(crate) async fn grow(&self, keys: u64) -> anyhow::Result<Grown> {
        match self {
            Self::Postgres(server) => {
                let name = format!("grown_{:016x}", rand::random::<u64>());
                let url = server.create_database(&name)?;
                let store = filled(postgres::open(&url).await?, keys).await?;
                Ok(Grown::new(store, rest_postgres(&url).await?, ()))
            }
            Self::Embedded => {
                let dir = disk::directory()?;
                let store = filled(embedded::open(dir.path())?, keys).await?;
                let weights = vec![("directory", disk::bytes(dir.path())?)];
                Ok(Grown::new(store, weights, dir))
            }
            Self::Redis => {
                let server = redis_group::server()?;
                let store = filled(redis_group::open(&server).await?, keys).await?;
                let weights = rest_redis(&server).await?;
                Ok(Grown::new(store, weights, server))
            }
        }
    }
}

async fn filled(store: Arc<dyn Store>, keys: u64) -> anyhow::Result<Arc<dyn Store>> {
    preload(&store, keys).await?;
    Ok(store)
}

/// Does what PostgreSQL would do by itself after a while, so that it does not do it while others are measured.
pub(crate) async fn rest_postgres(url: &str) -> anyhow::Result<Weights> {
    let client = connect(url).await?;
    client.batch_execute("VACUUM ANALYZE").await?;
    client.batch_execute("CHECKPOINT").await?;
    let bytes: i64 = client.query_one(TABLES_BYTES, &[]).await?.try_get(0)?;
    Ok(vec![("tables and indexes", u64::try_from(bytes)?)])
}

/// The same for Redis, whose file grows until it is rewritten.
async fn rest_redis(server: &testbed::Redis) -> anyhow::Result<Weights> {
    let mut connection = redis_group::connection(server).await?;
    let dataset = info(&mut connection, "used_memory_dataset").await?;
    let written = info(&mut connection, "aof_current_size").await?;
    let (): () = redis::cmd("BGREWRITEAOF")
        .query_async(&mut connection)
        .await?;
    while info(&mut connection, "aof_rewrite_scheduled").await? != 0
        || info(&mut connection, "aof_rewrite_in_progress").await? != 0
    {
        sleep(REWRITE_POLL).await;
    }
    let rewritten = info(&mut connection, "aof_current_size").await?;
    Ok(vec![
        ("used_memory_dataset", dataset),
        ("append-only file, as written", written),
        ("append-only file, rewritten", rewritten),
    ])
}

/// One number of what Redis tells about itself.
async fn info(connection: &mut MultiplexedConnection, name: &str) -> anyhow::Result<u64> {
    let text: String = redis::cmd("INFO").query_async(connection).await?;
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines
        .find(|(found, _)| *found == name)
        .with_context(|| format!("Redis does not tell {name}"))?;
    value
        .trim()
        .parse()
        .with_context(|| format!("{name} is {value:?}"))
}

// === impl Grown ===

impl Grown {
    fn new(store: Arc<dyn Store>, weights: Weights, home: impl Any + Send) -> Self {
        Self {
            semel: Semel::with_settings(store, Settings::default()),
            weights,
            _home: Box::new(home),
        }
    }
}
