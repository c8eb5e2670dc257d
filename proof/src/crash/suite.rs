//! The cases that are tried, and those that are broken on purpose.

use super::case::{Broken, Case, Mode, Senders, WorkId};
use super::check::{Promise, Verdict, check};
use super::downstream::Downstream;
use super::drive::{Effort, drive};
use super::evidence::Evidence;
use super::message::Armed;
use super::point::{Fault, Point};
use super::report::Report;
use super::transaction;
use crate::bed::{Flaw, Place, Profile};
use anyhow::Context;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::task::JoinSet;

/// How many pieces of work a case has; the long form has so many times more.
const WORKS: u32 = 160;
const LONG_TIMES: u32 = 10;

/// How many pieces of work a case has that is broken on purpose, and how many run into its fault.
const TEETH_WORKS: u32 = 80;
const TEETH_TRAPS: usize = 30;

/// The lease of a case, in ms.
const LEASE_MS: std::ops::Range<u64> = 180..400;

/// How many cases run at the same time: they mostly wait for leases.
const SIDE_BY_SIDE: usize = 5;

/// What is tried. The embedded store has one process at a time and takes longest: it begins.
const CASES: [(Where, Mode); 10] = [
    (Where::Embedded, Mode::Downstream),
    (Where::Embedded, Mode::Park),
    (Where::Embedded, Mode::Retry),
    (Where::Postgres, Mode::Transaction),
    (Where::Postgres, Mode::Downstream),
    (Where::Postgres, Mode::Park),
    (Where::Postgres, Mode::Retry),
    (Where::Redis, Mode::Downstream),
    (Where::Redis, Mode::Park),
    (Where::Redis, Mode::Retry),
];

/// Something broken, and what brings it to light.
struct Tooth {
    broken: Broken,
    store: Where,
    mode: Mode,
    /// The promise that must be seen broken.
    promise: Promise,
    /// The fault that every other piece of work runs into.
    trap: Option<Armed>,
}

const TEETH: [Tooth; 4] = [
    Tooth {
        broken: Broken::CompletesApart,
        store: Where::Postgres,
        mode: Mode::Transaction,
        promise: Promise::NoDuplicate,
        trap: Some(Armed {
            point: Point::TransactionCompleted,
            fault: Fault::Kill,
        }),
    },
    Tooth {
        broken: Broken::EffectBeforeClaim,
        store: Where::Redis,
        mode: Mode::Retry,
        promise: Promise::NoDuplicate,
        trap: None,
    },
    Tooth {
        broken: Broken::Store(Flaw::ClaimIgnoresTheLease),
        store: Where::Redis,
        mode: Mode::Park,
        promise: Promise::NoDuplicate,
        trap: None,
    },
    Tooth {
        broken: Broken::Store(Flaw::CompleteWithoutFence),
        store: Where::Postgres,
        mode: Mode::Retry,
        promise: Promise::SameAnswer,
        trap: Some(Armed {
            point: Point::EffectDone,
            fault: Fault::Pause,
        }),
    },
];

/// A kind of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Where {
    Postgres,
    Redis,
    Embedded,
}

/// Tries every case whose name, such as `redis park`, contains `only`.
///
/// # Errors
/// When a server, a worker or a store cannot be used.
pub async fn prove(profile: Profile, program: &Path, only: &str) -> anyhow::Result<Report> {
    let mut report = Report::default();
    let mut running = JoinSet::new();
    let named =
        |(store, mode): &(Where, Mode)| format!("{} {}", store.word(), mode.words()).contains(only);
    let mut cases = (0..).zip(CASES.into_iter().filter(named));
    loop {
        while running.len() < SIDE_BY_SIDE
            && let Some((number, (store, mode))) = cases.next()
        {
            let effort = Effort::of(profile, program, number, store, mode);
            running.spawn(run(store, mode, None, effort));
        }
        let Some(done) = running.join_next().await else {
            return Ok(report);
        };
        let (evidence, verdict) = done??;
        report.add(&evidence, verdict);
    }
}

/// Tries what is broken on purpose; says for each whether, and how often, the checker saw the promise broken.
///
/// # Errors
/// When a server, a worker or a store cannot be used, or something broken passed.
pub async fn show_teeth(profile: Profile, program: &Path) -> anyhow::Result<Vec<String>> {
    let mut running = JoinSet::new();
    for (number, tooth) in (100..).zip(TEETH) {
        let effort = Effort {
            works: TEETH_WORKS,
            long_percent: 50,
            traps: tooth
                .trap
                .map_or(Vec::new(), |trap| vec![trap; TEETH_TRAPS]),
            ..Effort::of(profile, program, number, tooth.store, tooth.mode)
        };
        running.spawn(tooth.bite(effort));
    }
    let mut convicted = Vec::new();
    while let Some(done) = running.join_next().await {
        convicted.push(done??);
    }
    Ok(convicted)
}

async fn run(
    store: Where,
    mode: Mode,
    broken: Option<Broken>,
    effort: Effort,
) -> anyhow::Result<(Evidence, Verdict)> {
    let dir = tempfile::tempdir().context("cannot make a directory for the ledger")?;
    let downstream = Downstream::start().await?;
    let name = format!("crash-{}-{}", std::process::id(), effort.seed);
    let case = Case {
        place: store.place(dir.path()).await?,
        name,
        mode,
        broken,
        lease: Duration::from_millis(StdRng::seed_from_u64(effort.seed).random_range(LEASE_MS)),
        dir: dir.path().to_owned(),
        downstream: downstream.port,
        senders: Senders::Driver,
    };
    transaction::prepare(&case).await?;
    let drive = drive(&case, &effort).await?;
    let evidence = Evidence::gather(&case, effort.works, drive, &downstream).await?;
    let verdict = check(&evidence);
    Ok((evidence, verdict))
}

// === impl Where ===

impl Where {
    async fn place(self, dir: &Path) -> anyhow::Result<Place> {
        Ok(match self {
            Self::Postgres => {
                let url =
                    tokio::task::spawn_blocking(|| testbed::fresh_database("crash")).await??;
                Place::Postgres {
                    url,
                    group_items_max: 256,
                }
            }
            Self::Redis => {
                let url = tokio::task::spawn_blocking(testbed::redis_url).await??;
                let prefix = format!("crash{}", std::process::id());
                Place::Redis { url, prefix }
            }
            Self::Embedded => Place::Embedded {
                dir: dir.join("store"),
            },
        })
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Redis => "redis",
            Self::Embedded => "embedded",
        }
    }

    const fn workers(self) -> usize {
        match self {
            Self::Postgres | Self::Redis => 3,
            Self::Embedded => 1,
        }
    }
}

// === impl Tooth ===

impl Tooth {
    async fn bite(self, effort: Effort) -> anyhow::Result<String> {
        let (promise, words) = (self.promise, self.broken.words());
        let (_, verdict) = run(self.store, self.mode, Some(self.broken), effort).await?;
        let (times, all) = (verdict.count(promise), verdict.broken.len());
        anyhow::ensure!(
            times > 0,
            "the checker has no teeth: {words} passed ({promise:?} was never seen broken; {all} others)"
        );
        let store = self.store.word();
        Ok(format!(
            "{store}, {words}: convicted, {promise:?} broken {times} times"
        ))
    }
}

// === impl Effort ===

impl Effort {
    fn of(profile: Profile, program: &Path, number: u64, store: Where, mode: Mode) -> Self {
        let times = if profile.long { LONG_TIMES } else { 1 };
        Self {
            program: PathBuf::from(program),
            seed: profile.seed.wrapping_mul(1_000).wrapping_add(number),
            works: WORKS * times,
            long_percent: 4,
            workers: store.workers(),
            traps: (0..times).flat_map(|_| mode.traps()).collect(),
            strikes_every: Duration::from_millis(250),
        }
    }
}

// === impl Mode ===

impl Mode {
    /// Every pair of point and fault that this mode can meet.
    fn traps(self) -> impl Iterator<Item = Armed> {
        let either = [WorkId(0), WorkId(1)];
        let met = move |point: &Point| {
            either
                .iter()
                .any(|work| point.is_on_the_way_of(self, *work))
        };
        let points = Point::ALL.into_iter().filter(met);
        points.flat_map(|point| Fault::ALL.map(|fault| Armed { point, fault }))
    }
}
