//! A worker process: a few callers that attack the same keys as everybody else, and write down each answer.

use super::log::Log;
use super::racer::Racer;
use crate::harness::{Flaw, Intercepted, StoreLocation};
use anyhow::Context;
use rand::SeedableRng;
use rand::rngs::StdRng;
use semel::Store;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How far apart the dice of two callers start.
const SEEDS_APART: u64 = 0x9E37_79B9;

/// What a worker process is started with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RacerConfig {
    /// Its number.
    pub worker: u32,
    /// What its dice start from.
    pub seed: u64,
    /// Where the store is.
    pub location: StoreLocation,
    /// What is wrong with the store on purpose.
    pub flaw: Option<Flaw>,
    /// Keeps the keys of this race apart from everybody else's.
    pub name: String,
    /// How many calls in a hundred are an operator's.
    pub operator_percent: u32,
    /// How many callers it has.
    pub callers: u64,
    /// How long it attacks.
    pub lasts: Duration,
    /// Where answers are written down.
    pub dir: PathBuf,
}

/// Attacks until the time is over.
///
/// # Errors
/// When the order cannot be read, the store not be opened, or an answer not be written down.
pub fn work(config: &str) -> anyhow::Result<()> {
    let config: RacerConfig = serde_json::from_str(config).context("this is no worker's config")?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let store = open(&config).await?;
        let log = Arc::new(Log::create(&config.log())?);
        let until = Instant::now() + config.lasts;
        let mut callers = Vec::new();
        for caller in 0..config.callers {
            let seed = config.seed.wrapping_add(caller.wrapping_mul(SEEDS_APART));
            let rng = StdRng::seed_from_u64(seed);
            let (store, log) = (Arc::clone(&store), Arc::clone(&log));
            let racer = Racer::new(&config, store, log, rng).await?;
            callers.push(tokio::spawn(racer.race(until)));
        }
        for caller in callers {
            caller.await??;
        }
        log.close()
    })
}

async fn open(config: &RacerConfig) -> anyhow::Result<Arc<dyn Store>> {
    let store = config.location.open().await?;
    Ok(match config.flaw {
        Some(interceptor) => Arc::new(Intercepted { store, interceptor }),
        None => store,
    })
}

// === impl RacerConfig ===

impl RacerConfig {
    /// Where this worker writes its answers.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.dir.join(format!("worker-{}.calls", self.worker))
    }
}
