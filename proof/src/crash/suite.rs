//! The cases that are tried, and those that are broken on purpose.

use super::case::{Case, Mode};
use super::check::{Counts, Promise, check, promise_cells};
use super::downstream::Downstream;
use super::drive::{DriveSettings, drive};
use super::evidence::Evidence;
use super::point::ArmedPoint;
use super::transaction;
use crate::faults::{self, Defect, Trial};
use crate::harness::{
    FaultKind, Profile, Report, Row, StoreKind, Verdict, WorkId, convict, firestore_emulator,
    side_by_side,
};
use anyhow::Context;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use semel::protocol::State;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How many pieces of work a case has; the long form has so many times more.
const WORKS: u32 = 160;
const LONG_TIMES: u32 = 10;

/// How many pieces of work a case has that is broken on purpose, and how many run into its fault.
const BROKEN_WORKS: u32 = 80;
const BROKEN_ARMED: usize = 30;

/// The lease of a case, in ms.
const LEASE_MS: std::ops::Range<u64> = 180..400;

/// How many cases run at the same time: they mostly wait for leases.
const SIDE_BY_SIDE: usize = 5;

/// A run with fewer of these shows nothing: how they are called, under which head they are counted, and how many.
const NEEDED: &[(&str, &str, usize)] = &[
    ("successes", "succeeded", 1_000),
    ("faults in flight", "in flight", 50),
    ("unknown answers", "unknown", 20),
];

/// What is tried. The embedded store has one process at a time and takes longest: it begins.
pub(crate) const CASES: [(StoreKind, Mode); 10] = [
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

/// What is tried of Firestore, where there is an emulator. In the short form, which all that needs one shares two minutes
/// with, only the first.
const FIRESTORE_CASES: [(StoreKind, Mode); 4] = [
    (StoreKind::Firestore, Mode::Transaction),
    (StoreKind::Firestore, Mode::Downstream),
    (StoreKind::Firestore, Mode::Park),
    (StoreKind::Firestore, Mode::Retry),
];

/// How many pieces of work a case has on Firestore, whose every call takes milliseconds.
const FIRESTORE_WORKS: u32 = 60;

/// How many times longer its leases are, for the same reason.
const FIRESTORE_LEASES: u32 = 3;

type Tried = (Evidence, Verdict<Promise>, Counts);

/// Tries every case whose name, such as `redis park`, contains `filter`.
///
/// # Errors
/// When a server, a worker or a store cannot be used.
pub async fn prove(profile: Profile, program: &Path, filter: &str) -> anyhow::Result<Report> {
    let named = |(store, mode): &(StoreKind, Mode)| {
        format!("{} {}", store.name(), mode.name()).contains(filter)
    };
    let on_firestore = match firestore_emulator().await? {
        Some(_) if profile.long => FIRESTORE_CASES.len(),
        Some(_) => 1,
        None => 0,
    };
    let all = CASES.into_iter();
    let all = all.chain(FIRESTORE_CASES.into_iter().take(on_firestore));
    let cases = (0..).zip(all.filter(named));
    let cases = cases.map(|(number, (store, mode))| {
        let settings = DriveSettings::of(profile, program, number, store, mode);
        run(store, mode, None, settings)
    });
    let mut report = Report::default();
    side_by_side(SIDE_BY_SIDE, cases, |(evidence, verdict, counts): Tried| {
        let met = evidence.drive.injected.iter();
        let met = met.filter_map(ArmedPoint::name_of);
        report.points.extend(met);
        report.add(row(&evidence, &verdict, counts));
    })
    .await?;
    report.invalid = report.total().too_few(NEEDED);
    let missed = ArmedPoint::all().map(ArmedPoint::name);
    let missed: Vec<String> = missed.filter(|it| !report.points.contains(it)).collect();
    let missed = missed.into_iter().map(|it| format!("{it} was never met"));
    report.invalid.extend(missed);
    Ok(report)
}

/// Tries what is broken on purpose; says for each how often the checker saw the promise broken.
///
/// # Errors
/// When a server, a worker or a store cannot be used, or something broken passed.
pub async fn convict_broken_builds(
    profile: Profile,
    program: &Path,
) -> anyhow::Result<Vec<String>> {
    let mut trials = Vec::new();
    for (number, (fault, trial)) in (100..).zip(faults::trials()) {
        let Trial::Crash {
            store,
            mode,
            promise,
            armed,
        } = trial
        else {
            continue;
        };
        let settings = DriveSettings {
            works: BROKEN_WORKS,
            long_percent: 50,
            armed: armed.map_or(Vec::new(), |armed| vec![armed; BROKEN_ARMED]),
            ..DriveSettings::of(profile, program, number, store, mode)
        };
        trials.push(async move {
            let what = format!("{}, {}", store.name(), fault.name);
            convict(&what, &[promise], |again| {
                let settings = DriveSettings {
                    seed: settings.seed.wrapping_add(again),
                    ..settings.clone()
                };
                async { Ok(run(store, mode, fault.defect, settings).await?.1) }
            })
            .await
        });
    }
    let mut convicted = Vec::new();
    side_by_side(trials.len(), trials, |it| convicted.push(it)).await?;
    Ok(convicted)
}

async fn run(
    store: StoreKind,
    mode: Mode,
    defect: Option<Defect>,
    settings: DriveSettings,
) -> anyhow::Result<Tried> {
    let dir = tempfile::tempdir().context("cannot make a directory for the ledgers")?;
    let downstream = Downstream::start().await?;
    let case = Case {
        location: store.fresh("crash", dir.path()).await?,
        name: format!("crash-{}-{}", std::process::id(), settings.seed),
        mode,
        defect,
        lease: lease(store, settings.seed),
        dir: dir.path().to_owned(),
        downstream: downstream.port,
        api_every: None,
    };
    transaction::prepare(&case).await?;
    let drive = drive(&case, &settings).await?;
    let evidence = Evidence::gather(&case, drive, &downstream).await?;
    let (verdict, counts) = check(&evidence);
    Ok((evidence, verdict, counts))
}

fn lease(store: StoreKind, seed: u64) -> Duration {
    let lease = StdRng::seed_from_u64(seed).random_range(LEASE_MS);
    let lease = Duration::from_millis(lease);
    match store {
        StoreKind::Embedded | StoreKind::Postgres | StoreKind::Redis => lease,
        StoreKind::Firestore => lease * FIRESTORE_LEASES,
    }
}

fn row(evidence: &Evidence, verdict: &Verdict<Promise>, counts: Counts) -> Row {
    let (sent, injected) = (&evidence.drive.sent, &evidence.drive.injected);
    let with = |is: fn(FaultKind) -> bool| injected.iter().filter(|it| is(it.kind)).count();
    let kills = with(|kind| matches!(kind, FaultKind::Kill(_)));
    let pauses = with(|kind| matches!(kind, FaultKind::Pause(_)));
    let met = injected.iter().filter(|it| !it.in_flight.is_empty());
    let mut cells = vec![
        ("deliveries", sent.len().into()),
        ("runs", counts.runs.into()),
        ("succeeded", evidence.in_state(State::Succeeded).into()),
        ("parked", evidence.in_state(State::Parked).into()),
        ("kills", kills.into()),
        ("pauses", pauses.into()),
        ("in flight", met.count().into()),
        ("unknown", evidence.unknown().into()),
    ];
    cells.extend(promise_cells(verdict, counts, 0));
    Row {
        store: evidence.case.location.kind.name(),
        mode: evidence.case.mode.name(),
        cells,
        complaints: verdict.complaints("work"),
    }
}

// === impl DriveSettings ===

impl DriveSettings {
    fn of(profile: Profile, program: &Path, number: u64, store: StoreKind, mode: Mode) -> Self {
        let times = if profile.long { LONG_TIMES } else { 1 };
        Self {
            program: PathBuf::from(program),
            seed: profile.seed.wrapping_mul(1_000).wrapping_add(number),
            works: times
                * match store {
                    StoreKind::Embedded | StoreKind::Postgres | StoreKind::Redis => WORKS,
                    StoreKind::Firestore => FIRESTORE_WORKS,
                },
            long_percent: 4,
            workers: match store {
                StoreKind::Postgres | StoreKind::Redis | StoreKind::Firestore => 3,
                StoreKind::Embedded => 1,
            },
            armed: (0..times).flat_map(|_| mode.armed()).collect(),
            faults_every: Duration::from_millis(250),
        }
    }
}

// === impl Mode ===

impl Mode {
    /// Every pair of point and fault that this mode can meet.
    fn armed(self) -> impl Iterator<Item = ArmedPoint> {
        let either = [WorkId(0), WorkId(1)];
        ArmedPoint::all().filter(move |armed| {
            let mut works = either.iter();
            works.any(|work| armed.point.is_on_the_way_of(self, *work))
        })
    }
}
