//! The scenes that are fought, and those that are broken on purpose.

use super::fight::{self, Effort, Fought, Snares};
use super::flaw::GateFlaw;
use super::links::Links;
use super::scene::{Long, Scene, Seat};
use super::store::Keep;
use super::table::{Floor, Table};
use super::trace;
use crate::crash::{self, Case, Downstream, Evidence, Mode, Senders, Verdict};
use anyhow::Context;
use semel_rig::Link;
use std::path::PathBuf;
use std::time::Duration;
use tokio::task::JoinSet;

/// The lease of every run: long enough that a loaded machine rarely costs one, short enough that many lapse.
const LEASE: Duration = Duration::from_millis(1200);

/// Every so-manieth piece of work is a storm.
const API_EVERY: u32 = 40;

/// How long everything may take to end once the faults are over.
const HEAL_MAX: Duration = Duration::from_secs(120);

/// How long work may take to end then, but for one piece in a hundred: a lease, two of the longest pauses of a sender (a
/// client of the largest storm), the longest effect, and the longest jump of a clock, which lets a lease seem longer.
const LIVE_WITHIN: Duration = Duration::from_millis(1200 + 2 * 3200 + 1800 + 5000);

/// The mean time between random faults.
const STRIKES_EVERY: Duration = Duration::from_millis(450);

/// How long a link waits for a handler that is being started.
const HANDLER_BACK_WITHIN: Duration = Duration::from_secs(3);

/// How many gates share a store that can be shared.
const GATES: usize = 3;

/// What the broker is told to do wrong.
const BROKER_FAULTS: [&str; 5] = [
    "duplicate=0.08",
    "duplicate-at-once=0.08",
    "lose-answer=0.06",
    "overlap=0.04:300ms",
    "cut=0.02:5",
];

/// How many effects are long.
const LONG: Long = Long { first: 4, later: 4 };

/// What is tried in the short form.
const SHORT: [(Where, Mode); 3] = [
    (Where::Embedded, Mode::Retry),
    (Where::Postgres, Mode::Transaction),
    (Where::Redis, Mode::Park),
];

/// What is tried.
const SCENES: [(Where, Mode); 10] = [
    (Where::Embedded, Mode::Retry),
    (Where::Embedded, Mode::Park),
    (Where::Embedded, Mode::Downstream),
    (Where::Postgres, Mode::Transaction),
    (Where::Postgres, Mode::Retry),
    (Where::Postgres, Mode::Park),
    (Where::Postgres, Mode::Downstream),
    (Where::Redis, Mode::Retry),
    (Where::Redis, Mode::Park),
    (Where::Redis, Mode::Downstream),
];

/// A kind of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// In the gate's own process.
    Embedded,
    /// A PostgreSQL server.
    Postgres,
    /// A Redis server.
    Redis,
}

/// How long to fight, and with which dice.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The program to start processes from.
    pub program: PathBuf,
    /// What every choice is drawn from.
    pub seed: u64,
    /// How long each scene is fought.
    pub lasts: Duration,
    /// Only scenes whose name, such as `redis park`, contains this.
    pub only: String,
    /// Whether the long form is asked for: largest storms, and every point must be met.
    pub whole: bool,
    /// How many scenes at the same time.
    pub side_by_side: usize,
}

/// Fights every scene that is asked for.
///
/// # Errors
/// When a server or a process cannot be used, a promise was broken, or the run was too easy to mean anything.
pub async fn prove(plan: &Plan, tell: fn(&str)) -> anyhow::Result<Table> {
    let named = |(_, (store, mode)): &(u64, (Where, Mode))| {
        format!("{} {}", store.word(), mode.words()).contains(&plan.only)
    };
    let scenes: &[_] = if plan.whole || !plan.only.is_empty() {
        &SCENES
    } else {
        &SHORT
    };
    let mut scenes = (0..).zip(scenes.iter().copied()).filter(named);
    let (mut running, mut table) = (JoinSet::new(), Table::default());
    loop {
        while running.len() < plan.side_by_side
            && let Some((number, (store, mode))) = scenes.next()
        {
            let seed = plan.seed.wrapping_mul(1_000).wrapping_add(number);
            let staged = Staged {
                store,
                mode,
                flaw: None,
                broker_faults: &BROKER_FAULTS,
                long: LONG,
            };
            running.spawn(run(staged, seed, plan.effort()));
        }
        let Some(done) = running.join_next().await else {
            break;
        };
        let (scene, fought, evidence, verdict) = done??;
        tell(&table.add(&scene, &fought, &evidence, verdict));
    }
    Ok(table)
}

/// What came of a scene.
pub(super) type Tried = (Scene, Fought, Evidence, Verdict);

/// What a scene is made from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Staged {
    pub(super) store: Where,
    pub(super) mode: Mode,
    pub(super) flaw: Option<GateFlaw>,
    pub(super) broker_faults: &'static [&'static str],
    pub(super) long: Long,
}

/// Stages a scene, fights it and judges it.
pub(super) async fn run(staged: Staged, seed: u64, effort: Effort) -> anyhow::Result<Tried> {
    let Staged {
        store,
        mode,
        flaw,
        broker_faults,
        long,
    } = staged;
    let dir = tempfile::tempdir().context("cannot make a directory for the ledgers")?;
    let downstream = Downstream::start().await?;
    let name = format!("gate{}x{seed}", std::process::id());
    let keep = Keep::start(store, &name, dir.path()).await?;
    let handler = testbed::free_port()?;
    let (mut gates, mut stores, mut handlers) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..store.gates() {
        let (place, link) = keep.linked().await?;
        stores.push(link);
        // The first gate reaches the handler without a link, so that it is refused where nobody listens.
        let link = match number {
            0 => None,
            _ => Some(Link::to_any(vec![handler], HANDLER_BACK_WITHIN).await?),
        };
        gates.push(Seat {
            port: testbed::free_port()?,
            place,
            handler: link.as_ref().map_or(handler, Link::port),
        });
        handlers.push(link);
    }
    let case = Case {
        name,
        place: keep.place.clone(),
        mode,
        broken: None,
        lease: LEASE,
        dir: dir.path().to_owned(),
        downstream: downstream.port,
        senders: Senders::Gate {
            api_every: API_EVERY,
        },
    };
    if mode == Mode::Transaction {
        drop(case.place.open().await?);
    }
    crash::prepare(&case).await?;
    let ports = gates.iter().map(|seat| seat.port);
    let links = Links {
        front: Link::to_any(ports.collect(), Duration::ZERO).await?,
        stores,
        handlers,
    };
    let scene = Scene {
        case,
        seed,
        gates,
        broker: testbed::free_port()?,
        broker_dir: dir.path().join("broker"),
        broker_faults: broker_faults.iter().map(|it| (*it).to_owned()).collect(),
        handler,
        long,
        flaw,
    };
    let fought = fight::run(&scene, &effort, keep.server.clone(), links).await?;
    let evidence = trace::evidence(&scene.case, &fought, &downstream).await?;
    let verdict = crash::check(&evidence);
    Ok((scene, fought, evidence, verdict))
}

// === impl Where ===

impl Where {
    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Postgres => "postgres",
            Self::Redis => "redis",
        }
    }

    const fn gates(self) -> usize {
        match self {
            Self::Embedded => 1,
            Self::Postgres | Self::Redis => GATES,
        }
    }
}

// === impl Plan ===

impl Plan {
    /// How hard each scene is tried.
    pub(super) fn effort(&self) -> Effort {
        Effort {
            program: self.program.clone(),
            lasts: self.lasts,
            strikes_every: Some(STRIKES_EVERY),
            storms: if self.whole {
                vec![
                    2, 16, 256, 4096, 2, 16, 256, 2, 16, 256, 2, 16, 256, 2, 16, 2, 16, 2, 16, 2,
                ]
            } else {
                vec![2, 16, 256]
            },
            heal_max: HEAL_MAX,
            snares: Snares::Drawn,
            zombies_min: 0,
        }
    }

    /// What makes a run as a whole too easy to mean anything, or too slow to end.
    #[must_use]
    pub fn invalid(&self, table: &Table) -> Vec<String> {
        let floor = if self.whole {
            Floor {
                succeeded: 1_000,
                in_flight: 50,
                unknown: 20,
                every_point: true,
                p99_max: LIVE_WITHIN,
            }
        } else {
            Floor {
                succeeded: 60,
                in_flight: 8,
                unknown: 8,
                every_point: false,
                p99_max: HEAL_MAX,
            }
        };
        table.invalid(floor)
    }
}
