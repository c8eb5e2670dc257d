//! The deployments that are attacked, and those that are broken on purpose.

use super::attack::{self, ArmedFaults, AttackLog, AttackSettings, Seen};
use super::deployment::{Deployment, GateAddress};
use super::links::Links;
use super::partial_message::PartialMessage;
use super::points::points;
use super::store::DeploymentStore;
use super::trace;
use crate::crash::{self, CASES, Case, Counts, Downstream, Evidence, LongEffects, Mode, Promise};
use crate::faults::{self, Defect, Trial};
use crate::harness::{
    ArmedFault, Cell, Event, FaultKind, InjectedFault, ProcessFault, Report, Role, Row, StoreKind,
    Verdict, convict, side_by_side,
};
use anyhow::Context;
use semel::protocol::State;
use semel_rig::Link;
use std::path::PathBuf;
use std::time::Duration;

/// The lease of every run: long enough that a loaded machine rarely costs one, short enough that many lapse.
const LEASE: Duration = Duration::from_millis(1200);

/// Every nth piece of work is a storm.
const API_EVERY: u32 = 40;

/// How long everything may take to end once the faults are over; what is broken on purpose may be stuck, and is judged
/// all the same.
const HEAL_MAX: Duration = Duration::from_secs(120);
const BROKEN_HEAL_MAX: Duration = Duration::from_secs(4);

/// How long work may take to end then, but for one piece in a hundred: a lease, two of the longest pauses of a sender (a
/// client of the largest storm), the longest effect, and the longest jump of a clock, which lets a lease seem longer.
const LIVE_WITHIN: Duration = Duration::from_millis(1200 + 2 * 3200 + 1800 + 5000);

/// How much longer it may take where doubt is asked about: two runs in doubt, until each acts no more.
const PROBED_WITHIN: Duration = Duration::from_millis(2 * (1200 + 300 + 2000));

/// The mean time between random faults.
const FAULTS_EVERY: Duration = Duration::from_millis(450);

/// How long a link waits for a handler that is being started.
const HANDLER_BACK_WITHIN: Duration = Duration::from_secs(3);

/// How many gates share a store that can be shared.
const GATES: usize = 3;

/// What the broker is told to do wrong; to broken gates it delivers most work again while a long effect goes on, early
/// enough for a slow machine.
const BROKER_FAULTS: &[&str] = &[
    "duplicate=0.08",
    "duplicate-at-once=0.08",
    "lose-answer=0.06",
    "overlap=0.04:300ms",
    "cut=0.02:5",
];
const BROKER_FAULTS_OF_BROKEN: &[&str] = &["duplicate-at-once=0.2", "overlap=0.8:1s"];

/// How often a paused gate must find its run taken over, where that is what brings a fault to light.
const ZOMBIES_MIN: usize = 4;

/// How much work must take effect more than once, where that is what brings a fault to light.
const REPEATED_MIN: usize = 4;

/// Every nth visit of a broken gate meets its armed fault.
const VISITS: u32 = 3;

/// A run with fewer of these shows nothing: how they are called, under which head they are counted, and how many; the
/// short form is satisfied with less.
const NEEDED: [(&str, &str, usize); 4] = [
    ("successes", "succeeded", 1_000),
    ("faults in flight", "in flight", 50),
    ("ambiguous operations", "ambiguous", 20),
    ("answers to probes", "probes", 30),
];
const NEEDED_OF_SHORT: [usize; 4] = [60, 8, 8, 1];

/// What each deployment of the short form must see, so that all of them together see what is needed.
const SEEN_MIN: Seen = Seen {
    zombies: 0,
    repeated: 0,
    in_flight: NEEDED_OF_SHORT[1].div_ceil(SHORT.len()),
    ambiguous: NEEDED_OF_SHORT[2].div_ceil(SHORT.len()),
    probed: 0,
};

/// What is tried in the short form.
const SHORT: &[(StoreKind, Mode)] = &[
    (StoreKind::Embedded, Mode::Retry),
    (StoreKind::Postgres, Mode::Transaction),
    (StoreKind::Redis, Mode::Park),
    (StoreKind::Embedded, Mode::Probe),
];

/// What the long form tries beside what crash runs try: only a gate asks.
const PROBED: [(StoreKind, Mode); 3] = [
    (StoreKind::Embedded, Mode::Probe),
    (StoreKind::Postgres, Mode::Probe),
    (StoreKind::Redis, Mode::Probe),
];

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
    pub filter: String,
    /// Whether the long form is asked for: largest storms, and every point must be met.
    pub whole: bool,
    /// How many deployments at the same time.
    pub side_by_side: usize,
}

/// What a deployment is made from.
#[derive(Clone, Copy, Debug)]
struct DeploymentPlan {
    store: StoreKind,
    mode: Mode,
    defect: Option<Defect>,
    broker_faults: &'static [&'static str],
    long: LongEffects,
}

/// What came of an attack.
struct Attacked {
    log: AttackLog,
    evidence: Evidence,
    verdict: Verdict<Promise>,
    counts: Counts,
}

/// Attacks every deployment that is asked for; each is told as it ends.
///
/// # Errors
/// When a server or a process cannot be used.
pub async fn prove(plan: &Plan, tell: fn(&str)) -> anyhow::Result<Report> {
    let whole = plan.whole || !plan.filter.is_empty();
    let deployments = if whole {
        [&CASES[..], &PROBED].concat()
    } else {
        SHORT.to_vec()
    };
    let named = |(_, (store, mode)): &(u64, (StoreKind, Mode))| {
        format!("{} {}", store.name(), mode.name()).contains(&plan.filter)
    };
    let attacks = (0..).zip(deployments).filter(named);
    let attacks = attacks.map(|(number, (store, mode))| {
        let planned = DeploymentPlan {
            store,
            mode,
            defect: None,
            broker_faults: BROKER_FAULTS,
            long: LongEffects { first: 4, later: 4 },
        };
        run(planned, plan.seed_of(number), plan.settings(mode))
    });
    let (mut report, mut late) = (Report::default(), Vec::new());
    side_by_side(plan.side_by_side, attacks, |attacked: Attacked| {
        let met = attacked.log.injected.iter().filter_map(point_met);
        report.points.extend(met);
        late.extend(attacked.late(plan.whole));
        let row = attacked.row();
        tell(&format!("{row}{}", row.complaints.join("\n")));
        report.add(row);
    })
    .await?;
    let mut needed = NEEDED;
    if !plan.whole {
        let short = needed.iter_mut().zip(NEEDED_OF_SHORT);
        short.for_each(|((.., least), min)| *least = min);
    }
    report.invalid = report.total().too_few(&needed);
    report.invalid.extend(late);
    if plan.whole {
        let missed = every_point().filter(|point| !report.points.contains(point));
        let missed: Vec<String> = missed.map(|it| format!("{it} was never met")).collect();
        report.invalid.extend(missed);
    }
    Ok(report)
}

/// Attacks what is broken on purpose; says for each how often the checker saw the promise broken.
///
/// # Errors
/// When a server or a process cannot be used, or something broken passed.
pub async fn convict_broken_gates(plan: &Plan) -> anyhow::Result<Vec<String>> {
    let mut trials = Vec::new();
    for (number, (fault, trial)) in (100..).zip(faults::trials()) {
        let Trial::Gate {
            store,
            mode,
            promise,
            armed,
            long,
        } = trial
        else {
            continue;
        };
        let planned = DeploymentPlan {
            store,
            mode,
            defect: fault.defect,
            broker_faults: BROKER_FAULTS_OF_BROKEN,
            long,
        };
        let (seed, settings) = (
            plan.seed_of(number),
            plan.settings_of_broken(mode, promise, armed),
        );
        trials.push(async move {
            let what = format!("{}, {}", store.name(), fault.name);
            convict(&what, &[promise], |again| {
                let attack = run(planned, seed.wrapping_add(again), settings.clone());
                async { Ok(attack.await?.verdict) }
            })
            .await
        });
    }
    let mut convicted = Vec::new();
    side_by_side(trials.len(), trials, |it| convicted.push(it)).await?;
    Ok(convicted)
}

/// Sets a deployment up, attacks it and judges it.
async fn run(
    planned: DeploymentPlan,
    seed: u64,
    settings: AttackSettings,
) -> anyhow::Result<Attacked> {
    let DeploymentPlan { store, mode, .. } = planned;
    let dir = tempfile::tempdir().context("cannot make a directory for the ledgers")?;
    let downstream = Downstream::start().await?;
    let name = format!("gate{}x{seed}", std::process::id());
    let deployed = DeploymentStore::start(store, &name, dir.path()).await?;
    let handler = testbed::free_port()?;
    let (gates, links) = gates(store, &deployed, handler).await?;
    let case = Case {
        name,
        location: deployed.location.clone(),
        mode,
        defect: planned.defect,
        lease: LEASE,
        dir: dir.path().to_owned(),
        downstream: downstream.port,
        api_every: Some(API_EVERY),
    };
    if mode == Mode::Transaction {
        drop(case.location.open().await?);
    }
    crash::prepare(&case).await?;
    let deployment = Deployment {
        case,
        seed,
        gates,
        broker: testbed::free_port()?,
        broker_dir: dir.path().join("broker"),
        broker_faults: planned
            .broker_faults
            .iter()
            .map(ToString::to_string)
            .collect(),
        handler,
        long: planned.long,
    };
    let log = attack::run(&deployment, &settings, deployed.server.clone(), links).await?;
    let evidence = trace::evidence(&deployment.case, &log, &downstream).await?;
    let (verdict, counts) = crash::check(&evidence);
    Ok(Attacked {
        log,
        evidence,
        verdict,
        counts,
    })
}

/// Where the gates will listen, and the links before and behind them.
async fn gates(
    store: StoreKind,
    deployed: &DeploymentStore,
    handler: u16,
) -> anyhow::Result<(Vec<GateAddress>, Links)> {
    let (mut gates, mut stores, mut handlers) = (Vec::new(), Vec::new(), Vec::new());
    let count = match store {
        StoreKind::Embedded => 1,
        StoreKind::Postgres | StoreKind::Redis | StoreKind::Firestore => GATES,
    };
    for number in 0..count {
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
    let gate_ports: Vec<u16> = gates.iter().map(|gate| gate.port).collect();
    let links = Links {
        front: Link::to_any(gate_ports.clone(), Duration::ZERO).await?,
        gate_ports,
        stores,
        handlers,
    };
    Ok((gates, links))
}

/// The point where a fault was met, as reports name it.
fn point_met(injected: &InjectedFault) -> Option<String> {
    let (role, _) = injected.kind.to_process()?;
    let point = injected.point.as_ref()?;
    Some(format!("the {}'s point {point}", role.name()))
}

fn every_point() -> impl Iterator<Item = String> {
    let roles = [Role::Gate(0), Role::Broker, Role::Handler];
    roles.into_iter().flat_map(|role| {
        let partial = PartialMessage::ALL.into_iter();
        let partial = partial.filter(move |it| it.victim == role);
        let points = points(role).into_iter().chain(partial.map(|it| it.point));
        points.map(move |point| format!("the {}'s point {point}", role.name()))
    })
}

const fn zombies_min(armed: Option<(&str, ProcessFault)>) -> usize {
    match armed {
        Some((_, ProcessFault::Pause)) => ZOMBIES_MIN,
        Some((_, ProcessFault::Kill)) | None => 0,
    }
}

// === impl Plan ===

impl Plan {
    const fn seed_of(&self, number: u64) -> u64 {
        self.seed.wrapping_mul(1_000).wrapping_add(number)
    }

    /// How hard each deployment is tried.
    fn settings(&self, mode: Mode) -> AttackSettings {
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
            // The long form tells instead that it was too short.
            seen_min: if self.whole {
                Seen::default()
            } else {
                Seen {
                    probed: if mode == Mode::Probe {
                        NEEDED_OF_SHORT[3]
                    } else {
                        0
                    },
                    ..SEEN_MIN
                }
            },
        }
    }

    /// How hard a broken gate is tried that must break this promise, and may run into this fault.
    fn settings_of_broken(
        &self,
        mode: Mode,
        promise: Promise,
        armed: Option<(&str, ProcessFault)>,
    ) -> AttackSettings {
        let armed_faults = armed.map_or(ArmedFaults::None, |(point, fault)| {
            ArmedFaults::Only(ArmedFault {
                point: point.to_owned(),
                visit: VISITS,
                fault,
                again: true,
            })
        });
        AttackSettings {
            storms: vec![2],
            faults_every: None,
            heal_max: BROKEN_HEAL_MAX,
            armed_faults,
            seen_min: Seen {
                zombies: zombies_min(armed),
                repeated: if promise == Promise::NoDuplicate {
                    REPEATED_MIN
                } else {
                    0
                },
                ..Seen::default()
            },
            ..self.settings(mode)
        }
    }
}

// === impl Attacked ===

impl Attacked {
    /// That it took too long to end, if it did.
    fn late(&self, whole: bool) -> Option<String> {
        let max = match self.evidence.case.mode {
            _ if !whole => HEAL_MAX,
            Mode::Probe => LIVE_WITHIN + PROBED_WITHIN,
            Mode::Transaction | Mode::Downstream | Mode::Park | Mode::Retry => LIVE_WITHIN,
        };
        let p99 = trace::p99_to_end(&self.evidence, &self.log);
        let (store, mode) = self.name();
        (p99 > max).then(|| {
            format!("{store} {mode}: {p99:?} after the heal one work in a hundred had not ended, {max:?} are allowed")
        })
    }

    fn name(&self) -> (&'static str, &'static str) {
        let case = &self.evidence.case;
        (case.location.kind.name(), case.mode.name())
    }

    fn row(&self) -> Row {
        let stuck = self.log.stuck.iter();
        let stuck = stuck.map(|what| format!("stuck after the heal: {what}"));
        let (store, mode) = self.name();
        Row {
            store,
            mode,
            cells: self.cells(),
            complaints: self
                .verdict
                .complaints("work")
                .into_iter()
                .chain(stuck)
                .collect(),
        }
    }

    fn cells(&self) -> Vec<(&'static str, Cell)> {
        let Self {
            log,
            evidence,
            verdict,
            counts,
        } = self;
        let injected = &log.injected;
        let count = |is: fn(FaultKind) -> bool| injected.iter().filter(|it| is(it.kind)).count();
        let cut = |event: &&Event| matches!(event, Event::Cut { .. });
        let handler_cuts = evidence.ledgers.values().flatten().filter(cut).count();
        let probed = |event: &&Event| matches!(event, Event::Probed { .. });
        let probes = evidence.ledgers.values().flatten().filter(probed).count();
        let met = trace::met_in_flight(injected);
        let gate_kills = count(|kind| matches!(kind, FaultKind::Kill(Role::Gate(_))));
        let broker_kills = count(|kind| kind == FaultKind::Kill(Role::Broker));
        let handler_kills = count(|kind| kind == FaultKind::Kill(Role::Handler));
        let pauses = count(|kind| matches!(kind, FaultKind::Pause(_)));
        let mut cells = vec![
            ("works", Cell::from(log.works as usize)),
            ("storms", log.storms.into()),
            ("effects begun", counts.runs.into()),
            ("succeeded", evidence.in_state(State::Succeeded).into()),
            ("parked", evidence.in_state(State::Parked).into()),
            ("faults", (injected.len() + handler_cuts).into()),
            ("gate kills", gate_kills.into()),
            ("broker kills", broker_kills.into()),
            ("handler kills", handler_kills.into()),
            ("pauses", pauses.into()),
            ("drains", count(|kind| kind == FaultKind::Drain).into()),
            (
                "cuts",
                (count(|kind| kind == FaultKind::Cut) + handler_cuts).into(),
            ),
            (
                "black holes",
                count(|kind| kind == FaultKind::Blackhole).into(),
            ),
            (
                "store crashes",
                count(|kind| kind == FaultKind::Outage).into(),
            ),
            (
                "clock jumps",
                count(|kind| kind == FaultKind::ClockJump).into(),
            ),
            ("in flight", (met.count() + handler_cuts).into()),
            ("ambiguous", (evidence.unknown() + log.unclear).into()),
            ("probes", probes.into()),
        ];
        cells.extend(crash::promise_cells(verdict, *counts, log.stuck.len()));
        cells.extend([
            ("p99 to end", trace::p99_to_end(evidence, log).into()),
            ("ended after", log.ended_after.into()),
        ]);
        cells
    }
}
