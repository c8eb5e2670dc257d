//! The fight: a broker delivers through the gates while the nemesis strikes; then everything heals, and must end.

use super::crew::Crew;
use super::havoc::Havoc;
use super::links::Links;
use super::nemesis::Nemesis;
use super::scene::{Role, Scene};
use super::sender::Sender;
use super::snare::Snare;
use super::store::Server;
use super::storm::Heard;
use super::trace::Trace;
use crate::crash::WorkId;
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

/// How much longer a scene is fought that has seen too few zombies.
const ZOMBIES_WITHIN: Duration = Duration::from_secs(40);

/// How hard a scene is tried.
#[derive(Clone, Debug)]
pub(super) struct Effort {
    /// The program to start processes from: the test itself.
    pub(super) program: PathBuf,
    /// How long faults are made.
    pub(super) lasts: Duration,
    /// The mean time between random faults; none unless it is given.
    pub(super) strikes_every: Option<Duration>,
    /// How many equal requests the storms have, in turn.
    pub(super) storms: Vec<usize>,
    pub(super) snares: Snares,
    /// How many paused processes must find that their run was taken over, however long it takes.
    pub(super) zombies_min: usize,
    /// How long everything may take to end once the faults are over.
    pub(super) heal_max: Duration,
}

/// The snares that processes find.
#[derive(Clone, Debug)]
pub(super) enum Snares {
    /// Those that the nemesis draws.
    Drawn,
    /// This one, over and over, for one of the gates: another takes over. Whom it pauses then goes on.
    Only(Snare),
    None,
}

/// What a fight left behind in the driver.
#[derive(Debug)]
pub(super) struct Fought {
    pub(super) havoc: Havoc,
    pub(super) heard: Vec<Heard>,
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

/// A fight under way.
pub(super) struct Fight<'a> {
    pub(super) scene: &'a Scene,
    pub(super) effort: &'a Effort,
    pub(super) crew: Crew,
    pub(super) havoc: Havoc,
    pub(super) sent: JoinSet<anyhow::Result<Vec<Heard>>>,
    pub(super) heard: Vec<Heard>,
    works: u32,
    storms: usize,
    zombies: usize,
    /// The runs that such a process had in hand: each counts once.
    spent: BTreeSet<u64>,
    trace: Trace,
    sent_at: Instant,
}

/// Fights a scene to its end.
///
/// # Errors
/// When a process cannot be started or ends by itself.
pub(super) async fn run(
    scene: &Scene,
    effort: &Effort,
    server: Server,
    links: Links,
) -> anyhow::Result<Fought> {
    let sender = Sender {
        case: Arc::new(scene.case.clone()),
        broker: scene.broker,
        front: links.front.port(),
        gates: scene.gates.iter().map(|seat| seat.port).collect(),
        unclear: Arc::new(AtomicU32::new(0)),
    };
    let has_server = !matches!(server, Server::None);
    let nemesis = Nemesis::new(scene.seed, effort.strikes_every, has_server);
    let mut fight = Fight {
        crew: Crew::new(effort.program.clone(), scene.clone()),
        havoc: Havoc::new(nemesis, server, links, scene.case.lease),
        trace: Trace::new(&scene.case),
        scene,
        effort,
        sent: JoinSet::new(),
        heard: Vec::new(),
        works: 0,
        storms: 0,
        zombies: 0,
        spent: BTreeSet::new(),
        sent_at: Instant::now(),
    };
    fight.man()?;
    let until = Instant::now() + effort.lasts;
    let at_last = until + ZOMBIES_WITHIN;
    while Instant::now() < until || (fight.zombies < effort.zombies_min && Instant::now() < at_last)
    {
        fight.look().await?;
        fight.havoc.strike(&mut fight.crew)?;
        fight.send(&sender)?;
        sleep(TICK).await;
    }
    let began = Instant::now();
    let healed_at = fight.heal(began).await?;
    let stuck = fight.wait(began).await?;
    let ended_after = began.elapsed();
    fight.dismiss().await?;
    Ok(Fought {
        havoc: fight.havoc,
        heard: fight.heard,
        works: fight.works,
        processes: fight.crew.started(),
        unclear: usize::try_from(sender.unclear.load(Ordering::Relaxed))?,
        healed_at,
        ended_after,
        stuck,
        storms: fight.storms,
        zombies: fight.zombies,
    })
}

// === impl Fight ===

impl Fight<'_> {
    /// Starts everybody.
    fn man(&mut self) -> anyhow::Result<()> {
        let gates = (0..self.scene.gates.len()).map(Role::Gate);
        for role in gates.chain([Role::Broker, Role::Handler]) {
            self.start(role)?;
        }
        Ok(())
    }

    fn start(&mut self, role: Role) -> anyhow::Result<()> {
        let snare = match &self.effort.snares {
            Snares::Drawn => self.havoc.nemesis.snare(role),
            Snares::Only(only) => (role == Role::Gate(0)).then(|| only.clone()),
            Snares::None => None,
        };
        self.crew.start(role, snare)
    }

    /// Sees who died or stopped, and starts again who did.
    async fn look(&mut self) -> anyhow::Result<()> {
        let now = Instant::now();
        self.wake_zombies(now)?;
        self.crew.resume(now)?;
        let lease = self.scene.case.lease;
        let until = match self.effort.snares {
            Snares::Drawn | Snares::None => self.havoc.nemesis.pause(now, lease),
            Snares::Only(_) => now + lease * ZOMBIE_LEASES_MAX,
        };
        let stopped = self.crew.stopped(until)?;
        self.havoc.strikes.extend(stopped);
        while let Some((member, strike)) = self.crew.bury()? {
            self.havoc.note(strike);
            self.start(member.role)?;
        }
        self.havoc.look(&mut self.crew).await?;
        while let Some(done) = self.sent.try_join_next() {
            self.heard.extend(done??);
        }
        Ok(())
    }

    /// A zombie is most dangerous while the one that took over from it runs.
    fn wake_zombies(&mut self, now: Instant) -> anyhow::Result<()> {
        if !matches!(self.effort.snares, Snares::Only(_)) {
            return Ok(());
        }
        for number in self.crew.paused() {
            let open = &self.crew.open(number)? - &self.spent;
            if self.trace.is_taken_over(&open) {
                self.crew.wake(number, now);
                self.zombies += 1;
                self.spent.extend(open);
            }
        }
        Ok(())
    }

    fn send(&mut self, sender: &Sender) -> anyhow::Result<()> {
        let begun = self.trace.begun(&self.crew.handlers)?;
        let now = Instant::now();
        for _ in 0..SENT_PER_TICK {
            let ahead = usize::try_from(self.works)?.saturating_sub(begun);
            // Work can end, parked, without ever having begun.
            if ahead > AHEAD_MAX && now < self.sent_at + SENT_ANYWAY {
                break;
            }
            self.sent_at = now;
            let work = WorkId(self.works);
            let turn = self.storms % self.effort.storms.len().max(1);
            let clients = self.effort.storms.get(turn).copied().unwrap_or(1);
            sender.send(&mut self.sent, work, clients);
            self.storms += usize::from(self.scene.case.is_asked_for(work));
            self.works += 1;
        }
        Ok(())
    }
}
