//! The races that are run, and those against a store broken on purpose.

use super::call::Call;
use super::check::check;
use super::drive::drive;
use super::history::History;
use super::racer::keys;
use super::report::{RaceCounts, RaceReport};
use super::sabotage::Sabotage;
use super::worker::RacerConfig;
use crate::harness::{Flaw, Profile, StoreLocation};
use anyhow::Context;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// How many processes race.
const PROCESSES: u32 = 8;

/// How many callers each has.
const CALLERS: u64 = 4;

/// How many races against broken stores run at the same time.
const SIDE_BY_SIDE: usize = 3;

/// A kind of store that processes can share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedStore {
    /// PostgreSQL.
    Postgres,
    /// Redis.
    Redis,
}

/// One race.
#[derive(Clone, Debug)]
struct Race {
    store: SharedStore,
    sabotage: Option<Sabotage>,
    operator_percent: u32,
    processes: u32,
    lasts: Duration,
    seed: u64,
    program: PathBuf,
}

/// Races on every store whose name contains `only`, at the same time.
///
/// # Errors
/// When a server, a worker or a store cannot be used.
pub async fn prove(
    profile: Profile,
    program: &Path,
    only: &str,
) -> anyhow::Result<Vec<RaceReport>> {
    let mut racing = JoinSet::new();
    for store in SharedStore::ALL
        .into_iter()
        .filter(|store| store.name().contains(only))
    {
        let race = Race::honest(store, profile, program);
        racing.spawn(async move { race.run().await });
    }
    racing.join_all().await.into_iter().collect()
}

/// Races against what is broken on purpose; says for each how often the checker saw its rules broken.
///
/// # Errors
/// When a server, a worker or a store cannot be used, or something broken passed.
pub async fn convict_broken_builds(
    profile: Profile,
    program: &Path,
) -> anyhow::Result<Vec<String>> {
    let stores = Flaw::ALL.map(Sabotage::Store);
    let everywhere = SharedStore::ALL
        .into_iter()
        .flat_map(|store| stores.map(|s| (store, s)));
    let in_sql = Sabotage::SQL.map(|sabotage| (SharedStore::Postgres, sabotage));
    let places = Arc::new(Semaphore::new(SIDE_BY_SIDE));
    let mut racing = JoinSet::new();
    for (number, (store, sabotage)) in (1..).zip(everywhere.chain(in_sql)) {
        let race = Race::broken(store, sabotage, number, profile, program);
        let places = Arc::clone(&places);
        racing.spawn(async move {
            let _place = places.acquire_owned().await?;
            race.convict(sabotage).await
        });
    }
    racing.join_all().await.into_iter().collect()
}

// === impl Race ===

impl Race {
    fn honest(store: SharedStore, profile: Profile, program: &Path) -> Self {
        Self {
            store,
            sabotage: None,
            operator_percent: 6,
            processes: PROCESSES,
            lasts: Duration::from_secs(if profile.long { 90 } else { 13 }),
            seed: profile.seed,
            program: program.to_owned(),
        }
    }

    fn broken(
        store: SharedStore,
        sabotage: Sabotage,
        number: u64,
        profile: Profile,
        program: &Path,
    ) -> Self {
        Self {
            sabotage: Some(sabotage),
            operator_percent: match sabotage {
                Sabotage::OperatorKeepsTheFence => 30,
                Sabotage::Store(_) | Sabotage::RetentionShrinks | Sabotage::DoubtIsNotParked => 6,
            },
            processes: PROCESSES / 2,
            lasts: Duration::from_secs(3),
            seed: profile.seed.wrapping_add(number),
            ..Self::honest(store, profile, program)
        }
    }

    async fn convict(&self, sabotage: Sabotage) -> anyhow::Result<String> {
        let report = self.run().await?;
        let (store, words) = (self.store.name(), sabotage.name());
        let seen = sabotage.breaks().iter();
        let times: usize = seen.map(|rule| report.verdict.count(*rule)).sum();
        anyhow::ensure!(
            times > 0,
            "the checker has no teeth: on {store}, {words} passed ({:?} were never seen broken)",
            sabotage.breaks()
        );
        let (calls, all) = (report.counts.calls, report.verdict.broken.len());
        Ok(format!(
            "{store}, {words}: convicted {all} times in {calls} calls"
        ))
    }

    /// Runs the race and judges it.
    async fn run(&self) -> anyhow::Result<RaceReport> {
        let dir = tempfile::tempdir().context("cannot make a directory for the logs")?;
        let location = self.store.location().await?;
        // Whoever opens the store first prepares it; the others then find it ready.
        drop(location.open().await?);
        let configs: Vec<RacerConfig> = (0..self.processes)
            .map(|worker| self.config(worker, &location, dir.path()))
            .collect();
        let (calls, history) = match &location {
            StoreLocation::Postgres { url, .. } => {
                let (calls, history) = self.drive_with_history(url, &configs).await?;
                (calls, Some(history))
            }
            StoreLocation::Redis { .. } | StoreLocation::Embedded { .. } => {
                (drive(&self.program, &configs).await?, None)
            }
        };
        Ok(RaceReport {
            store: location.name(),
            processes: configs.len(),
            seconds: self.lasts.as_secs(),
            counts: RaceCounts::of(&calls, history.as_ref()),
            verdict: check(&calls, history.as_ref()),
        })
    }

    async fn drive_with_history(
        &self,
        url: &str,
        configs: &[RacerConfig],
    ) -> anyhow::Result<(Vec<Call>, History)> {
        History::begin(url).await?;
        if let Some(sabotage) = self.sabotage {
            sabotage.spoil(url).await?;
        }
        let calls = tokio::select! {
            calls = drive(&self.program, configs) => calls?,
            aged = History::age(url) => {
                aged?;
                anyhow::bail!("ageing never ends by itself")
            }
        };
        let history = History::read(url, &keys(&self.name())).await?;
        Ok((calls, history))
    }

    fn name(&self) -> String {
        format!("race {} {}", std::process::id(), self.seed)
    }

    /// Every second worker writes its calls in groups.
    fn config(&self, worker: u32, location: &StoreLocation, dir: &Path) -> RacerConfig {
        RacerConfig {
            worker,
            seed: self
                .seed
                .wrapping_mul(1_000)
                .wrapping_add(u64::from(worker)),
            location: location.clone().grouping(worker.is_multiple_of(2)),
            flaw: self.sabotage.and_then(Sabotage::flaw),
            name: self.name(),
            operator_percent: self.operator_percent,
            callers: CALLERS,
            lasts: self.lasts,
            dir: dir.to_owned(),
        }
    }
}

// === impl SharedStore ===

impl SharedStore {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Postgres, Self::Redis];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Redis => "redis",
        }
    }

    async fn location(self) -> anyhow::Result<StoreLocation> {
        Ok(match self {
            Self::Postgres => {
                let url = tokio::task::spawn_blocking(|| testbed::fresh_database("race")).await??;
                StoreLocation::Postgres {
                    url,
                    group_items_max: 256,
                }
            }
            Self::Redis => {
                let url = tokio::task::spawn_blocking(testbed::redis_url).await??;
                let prefix = format!("race{}", std::process::id());
                StoreLocation::Redis { url, prefix }
            }
        })
    }
}
