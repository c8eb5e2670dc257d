//! The attack: a broker delivers through the gates while the nemesis injects faults; then everything heals, and must end.

use super::deployment::Deployment;
use super::injector::Injector;
use super::links::Links;
use super::nemesis::Nemesis;
use super::sender::TaskSender;
use super::store::Server;
use super::storm::ClientAnswer;
use super::trace::{self, Trace};
use crate::harness::{ArmedFault, InjectedFault, Processes, Role, WorkId};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// How often the driver looks around.
pub(super) const TICK: Duration = Duration::from_millis(15);

/// How many pieces of work are sent and not begun yet, at the most.
const AHEAD_MAX: usize = 40;

/// After this long without one, a piece of work is sent all the same.
const SENT_ANYWAY: Duration = Duration::from_millis(150);

/// How many pieces of work are sent at a tick, at the most.
const SENT_PER_TICK: usize = 4;

/// How many leases a process stays paused that nobody takes over from.
const ZOMBIE_LEASES_MAX: u32 = 4;

/// How much longer a deployment is attacked that has seen too little.
const SEEN_WITHIN: Duration = Duration::from_secs(40);

/// How hard a deployment is tried.
#[derive(Clone, Debug)]
pub(super) struct AttackSettings {
    /// The program to start processes from: the test itself.
    pub(super) program: PathBuf,
    /// How long faults are made.
    pub(super) lasts: Duration,
    /// The mean time between random faults; none unless it is given.
    pub(super) faults_every: Option<Duration>,
    /// How many equal requests the storms have, in turn.
    pub(super) storms: Vec<usize>,
    pub(super) armed_faults: ArmedFaults,
    /// What must be seen, however long it takes.
    pub(super) seen_min: Seen,
    /// How long everything may take to end once the faults are over.
    pub(super) heal_max: Duration,
}

/// What an attack has seen; how much of it is chance.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// Paused processes that found their run taken over.
    pub(super) zombies: usize,
    /// Faults that met something in flight.
    pub(super) in_flight: usize,
    /// Operations of which nobody knows whether they took place.
    pub(super) ambiguous: usize,
    /// Works that took effect more than once.
    pub(super) repeated: usize,
    /// Answers to probes.
    pub(super) probed: usize,
}

/// The armed faults that processes find.
#[derive(Clone, Debug)]
pub(super) enum ArmedFaults {
    /// Those that the nemesis draws.
    Drawn,
    /// This one, over and over, for one of the gates: another takes over. Whom it pauses then goes on.
    Only(ArmedFault),
    None,
}

/// What an attack left behind in the driver.
#[derive(Debug, Default)]
pub(super) struct AttackLog {
    pub(super) injected: Vec<InjectedFault>,
    /// When a handler was found dead, in µs since 1970.
    pub(super) handler_deaths: Vec<u64>,
    /// How far the store's clock is off for good.
    pub(super) clock_off: Duration,
    pub(super) heard: Vec<ClientAnswer>,
    pub(super) works: u32,
    pub(super) processes: u32,
    pub(super) unclear: usize,
    /// When everybody was there again after the last fault, in µs since 1970.
    pub(super) healed_at: u64,
    /// How long everything took to end after the faults.
    pub(super) ended_after: Duration,
    /// What did not end in time.
    pub(super) stuck: Vec<String>,
    pub(super) storms: usize,
    /// How many paused processes went on because their run was taken over.
    pub(super) zombies: usize,
}

/// An attack under way.
pub(super) struct Attack<'a> {
    pub(super) deployment: &'a Deployment,
    pub(super) settings: &'a AttackSettings,
    pub(super) processes: Processes,
    /// The numbers of all that were the handler.
    handlers: Vec<u32>,
    pub(super) injector: Injector,
    pub(super) sent: JoinSet<anyhow::Result<Vec<ClientAnswer>>>,
    pub(super) log: AttackLog,
    /// The runs that paused processes found taken over: each counts once.
    overtaken: BTreeSet<u64>,
    /// The work of paused processes that was delivered again.
    delivered_again: BTreeSet<WorkId>,
    trace: Trace,
    sent_at: Instant,
}

/// Attacks a deployment to its end.
///
/// # Errors
/// When a process cannot be started or ends by itself.
pub(super) async fn run(
    deployment: &Deployment,
    settings: &AttackSettings,
    server: Server,
    links: Links,
) -> anyhow::Result<AttackLog> {
    let sender = TaskSender {
        case: Arc::new(deployment.case.clone()),
        broker: deployment.broker,
        front: links.front.port(),
        gates: links.gate_ports.clone(),
        unclear: Arc::new(AtomicU32::new(0)),
    };
    let has_server = !matches!(server, Server::None);
    let nemesis = Nemesis::new(deployment.seed, settings.faults_every, has_server);
    let mut attack = Attack {
        processes: Processes::new(&settings.program, &deployment.case.dir),
        handlers: Vec::new(),
        injector: Injector::new(nemesis, server, links, deployment.case.lease),
        trace: Trace::new(&deployment.case),
        deployment,
        settings,
        sent: JoinSet::new(),
        log: AttackLog::default(),
        overtaken: BTreeSet::new(),
        delivered_again: BTreeSet::new(),
        sent_at: Instant::now(),
    };
    attack.start_all()?;
    let until = Instant::now() + settings.lasts;
    let at_last = until + SEEN_WITHIN;
    while Instant::now() < until
        || (!attack.seen(&sender).reaches(settings.seen_min) && Instant::now() < at_last)
    {
        attack.look(&sender).await?;
        attack.injector.inject(&mut attack.processes)?;
        attack.send(&sender)?;
        sleep(TICK).await;
    }
    let began = Instant::now();
    attack.log.healed_at = attack.heal(began).await?;
    attack.log.stuck = attack.wait(began).await?;
    attack.log.ended_after = began.elapsed();
    attack.shut_down().await?;
    Ok(AttackLog {
        processes: attack.processes.started(),
        unclear: usize::try_from(sender.unclear.load(Ordering::Relaxed))?,
        injected: attack.injector.injected,
        handler_deaths: attack.injector.handler_deaths,
        clock_off: attack.injector.clock_off,
        ..attack.log
    })
}

// === impl Seen ===

impl Seen {
    const fn reaches(self, min: Self) -> bool {
        self.zombies >= min.zombies
            && self.in_flight >= min.in_flight
            && self.ambiguous >= min.ambiguous
            && self.repeated >= min.repeated
            && self.probed >= min.probed
    }
}

// === impl Attack ===

impl Attack<'_> {
    fn seen(&self, sender: &TaskSender) -> Seen {
        let injected = &self.injector.injected;
        let unclear = sender.unclear.load(Ordering::Relaxed);
        Seen {
            zombies: self.log.zombies,
            in_flight: trace::met_in_flight(injected).count(),
            ambiguous: trace::killed(injected).len() + unclear as usize,
            repeated: self.trace.repeated(),
            probed: self.trace.probed(),
        }
    }

    /// Starts everybody.
    fn start_all(&mut self) -> anyhow::Result<()> {
        let gates = (0..self.deployment.gates.len()).map(Role::Gate);
        for role in gates.chain([Role::Broker, Role::Handler]) {
            self.start(role)?;
        }
        Ok(())
    }

    fn start(&mut self, role: Role) -> anyhow::Result<()> {
        let armed_fault = match &self.settings.armed_faults {
            ArmedFaults::Drawn => self.injector.nemesis.armed_fault(role),
            ArmedFaults::Only(only) => (role == Role::Gate(0)).then(|| only.clone()),
            ArmedFaults::None => None,
        };
        self.start_armed(role, armed_fault)
    }

    pub(super) fn start_armed(
        &mut self,
        role: Role,
        armed: Option<ArmedFault>,
    ) -> anyhow::Result<()> {
        let started = self.processes.start(role, armed, self.deployment, false)?;
        if role == Role::Handler {
            self.handlers.push(started.number);
        }
        Ok(())
    }

    /// Sees who died or stopped, and starts again who did.
    async fn look(&mut self, sender: &TaskSender) -> anyhow::Result<()> {
        let now = Instant::now();
        self.wake_zombies(now, sender)?;
        self.processes.resume(now)?;
        let lease = self.deployment.case.lease;
        let until = match self.settings.armed_faults {
            ArmedFaults::Drawn | ArmedFaults::None => self.injector.nemesis.pause(now, lease),
            ArmedFaults::Only(_) => now + lease * ZOMBIE_LEASES_MAX,
        };
        let stopped = self.processes.stopped(until)?;
        self.injector.injected.extend(stopped);
        while let Some((process, injection)) = self.processes.reap(|_| true)? {
            self.injector.note(injection);
            self.start(process.role)?;
        }
        self.injector.look(&mut self.processes).await?;
        while let Some(done) = self.sent.try_join_next() {
            self.log.heard.extend(done??);
        }
        Ok(())
    }

    /// What a paused gate has in hand is delivered again once its lease is over. The gate goes on as soon as another has
    /// taken over: a zombie is most dangerous while that one runs.
    fn wake_zombies(&mut self, now: Instant, sender: &TaskSender) -> anyhow::Result<()> {
        if !matches!(self.settings.armed_faults, ArmedFaults::Only(_)) {
            return Ok(());
        }
        for (number, until) in self.processes.paused() {
            let in_flight = &self.processes.in_flight(number)? - &self.overtaken;
            let overtaken = self.trace.overtaken(&in_flight);
            if !overtaken.is_empty() {
                self.processes.resume_at(number, now);
                self.log.zombies += 1;
                self.overtaken.extend(overtaken);
            } else if until <= now + self.deployment.case.lease * (ZOMBIE_LEASES_MAX - 1) {
                for work in &self.trace.answered(&in_flight) - &self.delivered_again {
                    sender.deliver_again(&mut self.sent, work);
                    self.delivered_again.insert(work);
                }
            }
        }
        Ok(())
    }

    fn send(&mut self, sender: &TaskSender) -> anyhow::Result<()> {
        let begun = self.trace.begun(&self.handlers)?;
        let now = Instant::now();
        for _ in 0..SENT_PER_TICK {
            let ahead = usize::try_from(self.log.works)?.saturating_sub(begun);
            // Work can end, parked, without ever having begun.
            if ahead > AHEAD_MAX && now < self.sent_at + SENT_ANYWAY {
                break;
            }
            self.sent_at = now;
            let work = WorkId(self.log.works);
            let turn = self.log.storms % self.settings.storms.len().max(1);
            let clients = self.settings.storms.get(turn).copied().unwrap_or(1);
            sender.send(&mut self.sent, work, clients);
            self.log.storms += usize::from(self.deployment.case.is_asked_for(work));
            self.log.works += 1;
        }
        Ok(())
    }
}
