//! The deployments that are attacked, and those that are broken on purpose.

use super::attack::{self, ArmedFaults, AttackLog, AttackSettings};
use super::deployment::{Deployment, GateAddress, LongEffects};
use super::flaw::GateFlaw;
use super::links::Links;
use super::report::{Floor, GateReport};
use super::store::DeploymentStore;
use super::trace;
use crate::crash::{self, Case, Downstream, Evidence, Mode, Senders, Verdict};
use anyhow::Context;
use semel_rig::Link;
use std::path::PathBuf;
use std::time::Duration;
use tokio::task::JoinSet;

/// The lease of every run: long enough that a loaded machine rarely costs one, short enough that many lapse.
const LEASE: Duration = Duration::from_millis(1200);

/// Every nth piece of work is a storm.
const API_EVERY: u32 = 40;

/// How long everything may take to end once the faults are over.
const HEAL_MAX: Duration = Duration::from_secs(120);

/// How long work may take to end then, but for one piece in a hundred: a lease, two of the longest pauses of a sender (a
/// client of the largest storm), the longest effect, and the longest jump of a clock, which lets a lease seem longer.
const LIVE_WITHIN: Duration = Duration::from_millis(1200 + 2 * 3200 + 1800 + 5000);

/// The mean time between random faults.
const FAULTS_EVERY: Duration = Duration::from_millis(450);

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
const LONG: LongEffects = LongEffects { first: 4, later: 4 };

/// What is tried in the short form.
const SHORT: [(GateStore, Mode); 3] = [
    (GateStore::Embedded, Mode::Retry),
    (GateStore::Postgres, Mode::Transaction),
    (GateStore::Redis, Mode::Park),
];

/// What is tried.
const DEPLOYMENTS: [(GateStore, Mode); 10] = [
    (GateStore::Embedded, Mode::Retry),
    (GateStore::Embedded, Mode::Park),
    (GateStore::Embedded, Mode::Downstream),
    (GateStore::Postgres, Mode::Transaction),
    (GateStore::Postgres, Mode::Retry),
    (GateStore::Postgres, Mode::Park),
    (GateStore::Postgres, Mode::Downstream),
    (GateStore::Redis, Mode::Retry),
    (GateStore::Redis, Mode::Park),
    (GateStore::Redis, Mode::Downstream),
];

/// A kind of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateStore {
    /// In the gate's own process.
    Embedded,
    /// A PostgreSQL server.
    Postgres,
    /// A Redis server.
    Redis,
}

/// How long to attack, and with which dice.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The program to start processes from.
    pub program: PathBuf,
    /// What every choice is drawn from.
    pub seed: u64,
    /// How long each deployment is attacked.
    pub lasts: Duration,
    /// Only deployments whose name, such as `redis park`, contains this.
    pub only: String,
    /// Whether the long form is asked for: largest storms, and every point must be met.
    pub whole: bool,
    /// How many deployments at the same time.
    pub side_by_side: usize,
}

/// Attacks every deployment that is asked for.
///
/// # Errors
/// When a server or a process cannot be used, a promise was broken, or the run was too easy to mean anything.
pub async fn prove(plan: &Plan, tell: fn(&str)) -> anyhow::Result<GateReport> {
    let named = |(_, (store, mode)): &(u64, (GateStore, Mode))| {
        format!("{} {}", store.name(), mode.name()).contains(&plan.only)
    };
    let deployments: &[_] = if plan.whole || !plan.only.is_empty() {
        &DEPLOYMENTS
    } else {
        &SHORT
    };
    let mut deployments = (0..).zip(deployments.iter().copied()).filter(named);
    let (mut running, mut report) = (JoinSet::new(), GateReport::default());
    loop {
        while running.len() < plan.side_by_side
            && let Some((number, (store, mode))) = deployments.next()
        {
            let seed = plan.seed.wrapping_mul(1_000).wrapping_add(number);
            let planned = DeploymentPlan {
                store,
                mode,
                flaw: None,
                broker_faults: &BROKER_FAULTS,
                long: LONG,
            };
            running.spawn(run(planned, seed, plan.settings()));
        }
        let Some(done) = running.join_next().await else {
            break;
        };
        let (deployment, log, evidence, verdict) = done??;
        tell(&report.add(&deployment, &log, &evidence, verdict));
    }
    Ok(report)
}

/// What came of a deployment.
pub(super) type Attacked = (Deployment, AttackLog, Evidence, Verdict);

/// What a deployment is made from.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeploymentPlan {
    pub(super) store: GateStore,
    pub(super) mode: Mode,
    pub(super) flaw: Option<GateFlaw>,
    pub(super) broker_faults: &'static [&'static str],
    pub(super) long: LongEffects,
}

/// Stages a deployment, fights it and judges it.
pub(super) async fn run(
    planned: DeploymentPlan,
    seed: u64,
    settings: AttackSettings,
) -> anyhow::Result<Attacked> {
    let DeploymentPlan {
        store,
        mode,
        flaw,
        broker_faults,
        long,
    } = planned;
    let dir = tempfile::tempdir().context("cannot make a directory for the ledgers")?;
    let downstream = Downstream::start().await?;
    let name = format!("gate{}x{seed}", std::process::id());
    let deployed = DeploymentStore::start(store, &name, dir.path()).await?;
    let handler = testbed::free_port()?;
    let (mut gates, mut stores, mut handlers) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..store.gates() {
        let (location, link) = deployed.linked().await?;
        stores.push(link);
        // The first gate reaches the handler without a link, so that it is refused where nobody listens.
        let link = match number {
            0 => None,
            _ => Some(Link::to_any(vec![handler], HANDLER_BACK_WITHIN).await?),
        };
        gates.push(GateAddress {
            port: testbed::free_port()?,
            location,
            handler: link.as_ref().map_or(handler, Link::port),
        });
        handlers.push(link);
    }
    let case = Case {
        name,
        location: deployed.location.clone(),
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
        drop(case.location.open().await?);
    }
    crash::prepare(&case).await?;
    let ports = gates.iter().map(|address| address.port);
    let links = Links {
        front: Link::to_any(ports.collect(), Duration::ZERO).await?,
        stores,
        handlers,
    };
    let deployment = Deployment {
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
    let log = attack::run(&deployment, &settings, deployed.server.clone(), links).await?;
    let evidence = trace::evidence(&deployment.case, &log, &downstream).await?;
    let verdict = crash::check(&evidence);
    Ok((deployment, log, evidence, verdict))
}

// === impl GateStore ===

impl GateStore {
    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
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
    /// How hard each deployment is tried.
    pub(super) fn settings(&self) -> AttackSettings {
        AttackSettings {
            program: self.program.clone(),
            lasts: self.lasts,
            faults_every: Some(FAULTS_EVERY),
            storms: if self.whole {
                vec![
                    2, 16, 256, 4096, 2, 16, 256, 2, 16, 256, 2, 16, 256, 2, 16, 2, 16, 2, 16, 2,
                ]
            } else {
                vec![2, 16, 256]
            },
            heal_max: HEAL_MAX,
            armed_faults: ArmedFaults::Drawn,
            zombies_min: 0,
        }
    }

    /// What makes a run as a whole too easy to mean anything, or too slow to end.
    #[must_use]
    pub fn invalid(&self, report: &GateReport) -> Vec<String> {
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
        report.invalid(floor)
    }
}
