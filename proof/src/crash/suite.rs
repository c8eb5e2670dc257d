//! The cases that are tried, and those that are broken on purpose.

use super::case::{Broken, Case, Mode, Senders, WorkId};
use super::check::{Promise, Verdict, check};
use super::downstream::Downstream;
use super::drive::{DriveSettings, drive};
use super::evidence::Evidence;
use super::message::ArmedPoint;
use super::point::{Point, ProcessFault};
use super::report::CrashReport;
use super::transaction;
use crate::harness::{Flaw, Profile, StoreLocation};
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
const BROKEN_WORKS: u32 = 80;
const BROKEN_TRAPS: usize = 30;

/// The lease of a case, in ms.
const LEASE_MS: std::ops::Range<u64> = 180..400;

/// How many cases run at the same time: they mostly wait for leases.
const SIDE_BY_SIDE: usize = 5;

/// What is tried. The embedded store has one process at a time and takes longest: it begins.
const CASES: [(StoreKind, Mode); 10] = [
    (StoreKind::Embedded, Mode::Downstream),
    (StoreKind::Embedded, Mode::Park),
    (StoreKind::Embedded, Mode::Retry),
    (StoreKind::Postgres, Mode::Transaction),
    (StoreKind::Postgres, Mode::Downstream),
    (StoreKind::Postgres, Mode::Park),
    (StoreKind::Postgres, Mode::Retry),
    (StoreKind::Redis, Mode::Downstream),
    (StoreKind::Redis, Mode::Park),
    (StoreKind::Redis, Mode::Retry),
];

/// Something broken, and what brings it to light.
struct BrokenBuild {
    broken: Broken,
    store: StoreKind,
    mode: Mode,
    /// The promise that must be seen broken.
    promise: Promise,
    /// The fault that every other piece of work runs into.
    trap: Option<ArmedPoint>,
}

const BROKEN_BUILDS: [BrokenBuild; 4] = [
    BrokenBuild {
        broken: Broken::CompletesApart,
        store: StoreKind::Postgres,
        mode: Mode::Transaction,
        promise: Promise::NoDuplicate,
        trap: Some(ArmedPoint {
            point: Point::TransactionCompleted,
            fault: ProcessFault::Kill,
        }),
    },
    BrokenBuild {
        broken: Broken::EffectBeforeClaim,
        store: StoreKind::Redis,
        mode: Mode::Retry,
        promise: Promise::NoDuplicate,
        trap: None,
    },
    BrokenBuild {
        broken: Broken::Store(Flaw::ClaimIgnoresTheLease),
        store: StoreKind::Redis,
        mode: Mode::Park,
        promise: Promise::NoDuplicate,
        trap: None,
    },
    BrokenBuild {
        broken: Broken::Store(Flaw::CompleteWithoutFence),
        store: StoreKind::Postgres,
        mode: Mode::Retry,
        promise: Promise::SameAnswer,
        trap: Some(ArmedPoint {
            point: Point::EffectDone,
            fault: ProcessFault::Pause,
        }),
    },
];

/// A kind of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StoreKind {
    Postgres,
    Redis,
    Embedded,
}

/// Tries every case whose name, such as `redis park`, contains `only`.
///
/// # Errors
/// When a server, a worker or a store cannot be used.
pub async fn prove(profile: Profile, program: &Path, only: &str) -> anyhow::Result<CrashReport> {
    let mut report = CrashReport::default();
    let mut running = JoinSet::new();
    let named = |(store, mode): &(StoreKind, Mode)| {
        format!("{} {}", store.name(), mode.name()).contains(only)
    };
    let mut cases = (0..).zip(CASES.into_iter().filter(named));
    loop {
        while running.len() < SIDE_BY_SIDE
            && let Some((number, (store, mode))) = cases.next()
        {
            let settings = DriveSettings::of(profile, program, number, store, mode);
            running.spawn(run(store, mode, None, settings));
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
pub async fn convict_broken_builds(
    profile: Profile,
    program: &Path,
) -> anyhow::Result<Vec<String>> {
    let mut running = JoinSet::new();
    for (number, build) in (100..).zip(BROKEN_BUILDS) {
        let settings = DriveSettings {
            works: BROKEN_WORKS,
            long_percent: 50,
            armed_points: build
                .trap
                .map_or(Vec::new(), |trap| vec![trap; BROKEN_TRAPS]),
            ..DriveSettings::of(profile, program, number, build.store, build.mode)
        };
        running.spawn(build.convict(settings));
    }
    let mut convicted = Vec::new();
    while let Some(done) = running.join_next().await {
        convicted.push(done??);
    }
    Ok(convicted)
}

async fn run(
    store: StoreKind,
    mode: Mode,
    broken: Option<Broken>,
    settings: DriveSettings,
) -> anyhow::Result<(Evidence, Verdict)> {
    let dir = tempfile::tempdir().context("cannot make a directory for the ledger")?;
    let downstream = Downstream::start().await?;
    let name = format!("crash-{}-{}", std::process::id(), settings.seed);
    let case = Case {
        location: store.location(dir.path()).await?,
        name,
        mode,
        broken,
        lease: Duration::from_millis(StdRng::seed_from_u64(settings.seed).random_range(LEASE_MS)),
        dir: dir.path().to_owned(),
        downstream: downstream.port,
        senders: Senders::Driver,
    };
    transaction::prepare(&case).await?;
    let drive = drive(&case, &settings).await?;
    let evidence = Evidence::gather(&case, settings.works, drive, &downstream).await?;
    let verdict = check(&evidence);
    Ok((evidence, verdict))
}

// === impl StoreKind ===

impl StoreKind {
    async fn location(self, dir: &Path) -> anyhow::Result<StoreLocation> {
        Ok(match self {
            Self::Postgres => {
                let url =
                    tokio::task::spawn_blocking(|| testbed::fresh_database("crash")).await??;
                StoreLocation::Postgres {
                    url,
                    group_items_max: 256,
                }
            }
            Self::Redis => {
                let url = tokio::task::spawn_blocking(testbed::redis_url).await??;
                let prefix = format!("crash{}", std::process::id());
                StoreLocation::Redis { url, prefix }
            }
            Self::Embedded => StoreLocation::Embedded {
                dir: dir.join("store"),
            },
        })
    }

    const fn name(self) -> &'static str {
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

// === impl BrokenBuild ===

impl BrokenBuild {
    async fn convict(self, settings: DriveSettings) -> anyhow::Result<String> {
        let (promise, words) = (self.promise, self.broken.name());
        let (_, verdict) = run(self.store, self.mode, Some(self.broken), settings).await?;
        let (times, all) = (verdict.count(promise), verdict.broken.len());
        anyhow::ensure!(
            times > 0,
            "the checker has no teeth: {words} passed ({promise:?} was never seen broken; {all} others)"
        );
        let store = self.store.name();
        Ok(format!(
            "{store}, {words}: convicted, {promise:?} broken {times} times"
        ))
    }
}

// === impl DriveSettings ===

impl DriveSettings {
    fn of(profile: Profile, program: &Path, number: u64, store: StoreKind, mode: Mode) -> Self {
        let times = if profile.long { LONG_TIMES } else { 1 };
        Self {
            program: PathBuf::from(program),
            seed: profile.seed.wrapping_mul(1_000).wrapping_add(number),
            works: WORKS * times,
            long_percent: 4,
            workers: store.workers(),
            armed_points: (0..times).flat_map(|_| mode.armed_points()).collect(),
            faults_every: Duration::from_millis(250),
        }
    }
}

// === impl Mode ===

impl Mode {
    /// Every pair of point and fault that this mode can meet.
    fn armed_points(self) -> impl Iterator<Item = ArmedPoint> {
        let either = [WorkId(0), WorkId(1)];
        let met = move |point: &Point| {
            either
                .iter()
                .any(|work| point.is_on_the_way_of(self, *work))
        };
        let points = Point::ALL.into_iter().filter(met);
        points.flat_map(|point| ProcessFault::ALL.map(|fault| ArmedPoint { point, fault }))
    }
}
