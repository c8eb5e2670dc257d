//! The races that are run, and those against a store broken on purpose.

use super::attack::keys;
use super::call::Call;
use super::check::check;
use super::drive::drive;
use super::history::History;
use super::report::{Report, Tally};
use super::sabotage::Sabotage;
use super::worker::Order;
use crate::bed::{Flaw, Place, Profile};
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
pub enum Arena {
    /// PostgreSQL.
    Postgres,
    /// Redis.
    Redis,
}

/// One race.
#[derive(Clone, Debug)]
struct Race {
    arena: Arena,
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
pub async fn prove(profile: Profile, program: &Path, only: &str) -> anyhow::Result<Vec<Report>> {
    let mut racing = JoinSet::new();
    for arena in Arena::ALL
        .into_iter()
        .filter(|arena| arena.word().contains(only))
    {
        let race = Race::honest(arena, profile, program);
        racing.spawn(async move { race.run().await });
    }
    racing.join_all().await.into_iter().collect()
}

/// Races against what is broken on purpose; says for each how often the checker saw its rules broken.
///
/// # Errors
/// When a server, a worker or a store cannot be used, or something broken passed.
pub async fn show_teeth(profile: Profile, program: &Path) -> anyhow::Result<Vec<String>> {
    let stores = Flaw::ALL.map(Sabotage::Store);
    let everywhere = Arena::ALL
        .into_iter()
        .flat_map(|arena| stores.map(|s| (arena, s)));
    let in_sql = Sabotage::SQL.map(|sabotage| (Arena::Postgres, sabotage));
    let places = Arc::new(Semaphore::new(SIDE_BY_SIDE));
    let mut racing = JoinSet::new();
    for (number, (arena, sabotage)) in (1..).zip(everywhere.chain(in_sql)) {
        let race = Race::broken(arena, sabotage, number, profile, program);
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
    fn honest(arena: Arena, profile: Profile, program: &Path) -> Self {
        Self {
            arena,
            sabotage: None,
            operator_percent: 6,
            processes: PROCESSES,
            lasts: Duration::from_secs(if profile.long { 90 } else { 13 }),
            seed: profile.seed,
            program: program.to_owned(),
        }
    }

    fn broken(
        arena: Arena,
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
            ..Self::honest(arena, profile, program)
        }
    }

    async fn convict(&self, sabotage: Sabotage) -> anyhow::Result<String> {
        let report = self.run().await?;
        let (store, words) = (self.arena.word(), sabotage.words());
        let seen = sabotage.breaks().iter();
        let times: usize = seen.map(|rule| report.verdict.count(*rule)).sum();
        anyhow::ensure!(
            times > 0,
            "the checker has no teeth: on {store}, {words} passed ({:?} were never seen broken)",
            sabotage.breaks()
        );
        let (calls, all) = (report.tally.calls, report.verdict.broken.len());
        Ok(format!(
            "{store}, {words}: convicted {all} times in {calls} calls"
        ))
    }

    /// Runs the race and judges it.
    async fn run(&self) -> anyhow::Result<Report> {
        let dir = tempfile::tempdir().context("cannot make a directory for the logs")?;
        let place = self.arena.place().await?;
        // Whoever opens the store first prepares it; the others then find it ready.
        drop(place.open().await?);
        let orders: Vec<Order> = (0..self.processes)
            .map(|worker| self.order(worker, &place, dir.path()))
            .collect();
        let (calls, history) = match &place {
            Place::Postgres { url, .. } => {
                let (calls, history) = self.drive_with_history(url, &orders).await?;
                (calls, Some(history))
            }
            Place::Redis { .. } | Place::Embedded { .. } => {
                (drive(&self.program, &orders).await?, None)
            }
        };
        Ok(Report {
            store: place.word(),
            processes: orders.len(),
            seconds: self.lasts.as_secs(),
            tally: Tally::of(&calls, history.as_ref()),
            verdict: check(&calls, history.as_ref()),
        })
    }

    async fn drive_with_history(
        &self,
        url: &str,
        orders: &[Order],
    ) -> anyhow::Result<(Vec<Call>, History)> {
        History::begin(url).await?;
        if let Some(sabotage) = self.sabotage {
            sabotage.spoil(url).await?;
        }
        let calls = tokio::select! {
            calls = drive(&self.program, orders) => calls?,
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
    fn order(&self, worker: u32, place: &Place, dir: &Path) -> Order {
        Order {
            worker,
            seed: self
                .seed
                .wrapping_mul(1_000)
                .wrapping_add(u64::from(worker)),
            place: place.clone().grouping(worker.is_multiple_of(2)),
            flaw: self.sabotage.and_then(Sabotage::flaw),
            name: self.name(),
            operator_percent: self.operator_percent,
            callers: CALLERS,
            lasts: self.lasts,
            dir: dir.to_owned(),
        }
    }
}

// === impl Arena ===

impl Arena {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Postgres, Self::Redis];

    /// Its name.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Redis => "redis",
        }
    }

    async fn place(self) -> anyhow::Result<Place> {
        Ok(match self {
            Self::Postgres => {
                let url = tokio::task::spawn_blocking(|| testbed::fresh_database("race")).await??;
                Place::Postgres {
                    url,
                    group_items_max: 256,
                }
            }
            Self::Redis => {
                let url = tokio::task::spawn_blocking(testbed::redis_url).await??;
                let prefix = format!("race{}", std::process::id());
                Place::Redis { url, prefix }
            }
        })
    }
}
