//! A worker process: a few callers that attack the same keys as everybody else, and write down each answer.

use super::racer::Racer;
use crate::faults::{Defect, plant};
use crate::harness::{Ledger, ProcessConfig, StoreLocation, run_process};
use rand::SeedableRng;
use rand::rngs::StdRng;
use semel::Store;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::time::Instant;

/// How far apart the dice of two callers start.
const SEEDS_APART: u64 = 0x9E37_79B9;

/// What all workers of a race are started with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RaceSettings {
    /// What their dice start from.
    pub(crate) seed: u64,
    /// Where the store is.
    pub(crate) location: StoreLocation,
    /// What is wrong on purpose.
    pub(crate) defect: Option<Defect>,
    /// Keeps the keys of this race apart from everybody else's.
    pub(crate) name: String,
    /// How many calls in a hundred are an operator's.
    pub(crate) operator_percent: u32,
    /// How many callers each has.
    pub(crate) callers: u64,
    /// How long they race.
    pub(crate) lasts: Duration,
    /// Where answers are written down.
    pub(crate) dir: PathBuf,
}

/// Races until the time is over.
///
/// # Errors
/// When what it is started with cannot be read, or the store cannot be opened.
pub fn work(config: &str) -> anyhow::Result<()> {
    run_process(config, Builder::new_current_thread(), race)
}

async fn race(config: ProcessConfig<RaceSettings>) -> anyhow::Result<()> {
    let (number, settings) = (config.number, &config.settings);
    // Every second worker writes its calls in groups.
    let location = StoreLocation {
        grouped: number.is_multiple_of(2),
        ..settings.location.clone()
    };
    let store: Arc<dyn Store> = plant(settings.defect, location.open().await?);
    let ledger = Ledger::open(&settings.dir, number)?;
    let until = Instant::now() + settings.lasts;
    let seed = settings
        .seed
        .wrapping_mul(1_000)
        .wrapping_add(u64::from(number));
    let mut callers = Vec::new();
    for caller in 0..settings.callers {
        let seed = seed.wrapping_add(caller.wrapping_mul(SEEDS_APART));
        let rng = StdRng::seed_from_u64(seed);
        let racer = Racer::new(&config, Arc::clone(&store), ledger.clone(), rng).await?;
        callers.push(tokio::spawn(racer.race(until)));
    }
    for caller in callers {
        caller.await??;
    }
    Ok(())
}
