//! Duplicates of settled keys: from memory, and from PostgreSQL.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use async_trait::async_trait;
use semel::work::Failure;
use semel::{Ended, Key, Semel, Settings, Store};

use crate::first_run::{preload, work};
use crate::report::{Group, Row, Target};
use crate::rounds::{Contender, Pace, rounds};
use crate::{disk, embedded, load, postgres};

/// Duplicates of keys that were settled before.
struct Duplicates {
    semel: Semel,
    keys: Arc<[Key]>,
    callers: usize,
    /// How many a caller asks for before it lets others have the thread: an answer from memory never waits.
    at_a_time: u64,
}

/// The few keys that everybody asks for.
const HOT_KEYS: u64 = 16;
const CACHED_CALLERS: usize = 64;
const CACHED_AT_A_TIME: u64 = 64;
const CACHED_TARGET: Target = Target::AtLeast(500_000.0);

/// So many that two callers hardly ever ask for the same one at once: they would share one answer.
const SPREAD_KEYS: u64 = 100_000;
const UNCACHED_CALLERS: usize = 256;
const UNCACHED_TARGET: Target = Target::AtLeast(50_000.0);

pub(crate) async fn measure(pace: Pace) -> anyhow::Result<Group> {
    let dir = disk::directory()?;
    let cached = Duplicates {
        callers: CACHED_CALLERS,
        at_a_time: CACHED_AT_A_TIME,
        ..Duplicates::of(embedded::open(dir.path())?, HOT_KEYS, Settings::default()).await?
    };
    let server = postgres::server()?;
    let store = postgres::open(&server.create_database("settled")?).await?;
    let no_cache = Settings {
        shared_cache: Duration::ZERO,
        ..Settings::default()
    };
    let uncached = Duplicates::of(store, SPREAD_KEYS, no_cache).await?;
    let [cached, uncached] = rounds(
        [
            ("duplicates from memory", Box::new(cached)),
            ("duplicates from PostgreSQL", Box::new(uncached)),
        ],
        pace,
    )
    .await?;
    let row = |from: &str, callers, rates| {
        Row::rate(
            format!("from {from}, {callers} callers (duplicates)"),
            rates,
        )
    };
    Ok(Group {
        title: "Settled duplicates",
        conditions: vec![
            postgres::conditions(&server).await?,
            format!("From memory: {HOT_KEYS} keys of an embedded store, on all cores."),
            format!(
                "From PostgreSQL: {SPREAD_KEYS} keys, with `shared_cache` zero, so that each duplicate asks the store."
            ),
        ],
        rows: vec![
            row("memory", CACHED_CALLERS, &cached).judged(CACHED_TARGET),
            row("PostgreSQL", UNCACHED_CALLERS, &uncached).judged(UNCACHED_TARGET),
        ],
    })
}

// === impl Duplicates ===

impl Duplicates {
    async fn of(store: Arc<dyn Store>, keys: u64, settings: Settings) -> anyhow::Result<Self> {
        let keys = preload(&store, keys).await?;
        Ok(Self {
            semel: Semel::with_settings(store, settings),
            keys: keys.into(),
            callers: UNCACHED_CALLERS,
            at_a_time: 1,
        })
    }
}

#[async_trait]
impl Contender for Duplicates {
    async fn turn(&mut self, pace: Pace) -> anyhow::Result<f64> {
        let (semel, keys, at_a_time) = (self.semel.clone(), Arc::clone(&self.keys), self.at_a_time);
        let ask = move |_caller| {
            let (semel, keys) = (semel.clone(), Arc::clone(&keys));
            async move {
                for _ in 0..at_a_time {
                    duplicate(&semel, &keys).await?;
                }
                tokio::task::yield_now().await;
                Ok(at_a_time)
            }
        };
        load::rate(self.callers, pace, ask).await
    }
}

async fn duplicate(semel: &Semel, keys: &[Key]) -> anyhow::Result<()> {
    let key = keys
        .get(rand::random_range(0..keys.len()))
        .context("no keys")?;
    let never = |_| async { Err(Failure::final_failure("a settled key ran again")) };
    let ended = semel.run(work(*key), never).await?;
    if !matches!(ended, Ended::Replayed(_)) {
        bail!("a duplicate of a settled key came to {ended:?}");
    }
    Ok(())
}
