//! Opening the store that a URL names.

use semel::memory::MemoryStore;
use semel::store::Letters;
use semel::{Error, Store};
use semel_embedded::{EmbeddedSettings, EmbeddedStore};
use semel_postgres::{PostgresSettings, PostgresStore};
use semel_redis::{RedisSettings, RedisStore};
use std::sync::Arc;

/// One store, as records and as letters.
#[derive(Clone, Debug)]
pub(crate) struct Opened {
    pub(crate) records: Arc<dyn Store>,
    pub(crate) letters: Arc<dyn Letters>,
}

pub(crate) async fn open(url: &str) -> Result<Opened, Error> {
    match url.split_once(':') {
        Some(("memory", "")) => Ok(Opened::of(MemoryStore::new())),
        Some(("dir", path)) if !path.is_empty() => {
            let store = EmbeddedStore::open(path, EmbeddedSettings::default());
            Ok(Opened::of(store?))
        }
        Some(("postgres" | "postgresql", _)) => {
            let store = PostgresStore::connect(PostgresSettings::new(url)).await;
            Ok(Opened::of(store?))
        }
        Some(("redis" | "rediss", _)) => {
            let store = RedisStore::connect(RedisSettings::new(url)).await;
            Ok(Opened::of(store?))
        }
        // The rest of the URL may hold a password, so only the scheme is named.
        Some((scheme, _)) => Err(Error::invalid(format!(
            "there is no store for {scheme}: — use postgres://…, redis://…, dir:PATH (one process) or memory: (tests)"
        ))),
        None => Err(Error::invalid(
            "the store's URL names no store: use postgres://…, redis://…, dir:PATH (one process) or memory: (tests)",
        )),
    }
}

// === impl Opened ===

impl Opened {
    fn of(store: impl Letters) -> Self {
        let letters: Arc<dyn Letters> = Arc::new(store);
        let records: Arc<dyn Store> = Arc::clone(&letters) as Arc<dyn Store>;
        Self { records, letters }
    }
}
