//! The driver: lets a sender and a fleet meet, and strikes the fleet while they do.

use super::case::{Case, WorkId};
use super::fleet::{Event, Fleet, Stopped, Strike};
use super::message::{Armed, Said};
use super::point::Fault;
use super::sender::{Sender, Sent};
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// How often the driver looks at its clock.
const TICK: Duration = Duration::from_millis(4);

/// How long the last pieces of work may take to end once the faults are over.
const DRAIN_MAX: Duration = Duration::from_secs(20);

/// How many leases a pause lasts: always past the lease.
const PAUSE_LEASES: std::ops::Range<f64> = 1.2..2.5;

/// How hard a case is tried.
#[derive(Clone, Debug)]
pub struct Effort {
    /// The program to start workers from: the test itself.
    pub program: PathBuf,
    /// What every choice is drawn from.
    pub seed: u64,
    /// How many pieces of work.
    pub works: u32,
    /// How many effects in a hundred last longer than a lease.
    pub long_percent: u32,
    /// How many worker processes at a time.
    pub workers: usize,
    /// The faults that wait at named points, each for one piece of work.
    pub traps: Vec<Armed>,
    /// The mean time between random faults.
    pub strikes_every: Duration,
}

/// What driving a case left behind in the driver.
#[derive(Debug)]
pub struct Drive {
    /// Every delivery.
    pub sent: Vec<Sent>,
    /// Every fault.
    pub strikes: Vec<Strike>,
    /// How many processes were started; their ledgers are numbered.
    pub workers: u32,
    /// The pieces of work that did not end in time.
    pub stuck: Vec<WorkId>,
}

struct Driver<'a> {
    case: &'a Case,
    effort: &'a Effort,
    rng: StdRng,
    sender: Sender,
    fleet: Fleet,
    strikes: Vec<Strike>,
    next_strike: Instant,
}

/// Drives a case to its end.
///
/// # Errors
/// When a worker cannot be started or ends by itself.
pub async fn drive(case: &Case, effort: &Effort) -> anyhow::Result<Drive> {
    let (events, mut heard) = mpsc::unbounded_channel();
    let fleet = Fleet::start(effort.program.clone(), case.clone(), effort.workers, events)?;
    let mut driver = Driver::new(case, effort, fleet);
    let mut drained_by = None;
    while !driver.is_done() {
        let now = Instant::now();
        if driver.sender.has_sent_all() && now > *drained_by.get_or_insert(now + DRAIN_MAX) {
            break;
        }
        driver.act(now).await?;
        tokio::select! {
            event = heard.recv() => if let Some(event) = event { driver.hear(event).await? },
            () = sleep_until(now + TICK) => {}
        }
    }
    let (workers, stuck) = (driver.fleet.started(), driver.sender.unended());
    driver.fleet.dismiss().await?;
    Ok(Drive {
        sent: driver.sender.history,
        strikes: driver.strikes,
        workers,
        stuck,
    })
}

// === impl Driver ===

impl<'a> Driver<'a> {
    fn new(case: &'a Case, effort: &'a Effort, fleet: Fleet) -> Self {
        let mut rng = StdRng::seed_from_u64(effort.seed);
        let mut traps = effort.traps.clone();
        traps.shuffle(&mut rng);
        let sender = Sender::new(rng.random(), case, effort, traps);
        Self {
            case,
            effort,
            rng,
            sender,
            fleet,
            strikes: Vec::new(),
            next_strike: Instant::now() + effort.strikes_every,
        }
    }

    fn is_done(&self) -> bool {
        let idle = |worker: &super::fleet::Worker| worker.in_hand.is_empty() && !worker.is_paused();
        self.sender.is_done() && self.fleet.workers.iter().all(idle)
    }

    async fn act(&mut self, now: Instant) -> anyhow::Result<()> {
        self.fleet.resume_due(now)?;
        if now >= self.next_strike && !self.sender.has_sent_all() {
            self.strike(now)?;
        }
        loop {
            let Some(&number) = self.fleet.with_room().choose(&mut self.rng) else {
                return Ok(());
            };
            let Some(delivery) = self.sender.next(now) else {
                return Ok(());
            };
            if let Some(worker) = self.fleet.find(number) {
                worker.hand(&delivery).await?;
            }
            self.sender.sent(delivery, number, now);
        }
    }

    /// A fault at a random moment, to a random worker.
    fn strike(&mut self, now: Instant) -> anyhow::Result<()> {
        let pause = self.effort.strikes_every;
        self.next_strike = now + pause.mul_f64(self.rng.random_range(0.3..1.7));
        let Some(&number) = self.fleet.strikeable().choose(&mut self.rng) else {
            return Ok(());
        };
        match Fault::ALL.choose(&mut self.rng) {
            Some(Fault::Kill) => self.fleet.kill(number),
            Some(Fault::Pause) | None => self.pause(number, Stopped::ByDriver, now),
        }
    }

    fn pause(&mut self, number: u32, stopped: Stopped, now: Instant) -> anyhow::Result<()> {
        let end = now + self.case.lease.mul_f64(self.rng.random_range(PAUSE_LEASES));
        if let Some(strike) = self.fleet.pause(number, stopped, end)? {
            self.struck(strike);
        }
        Ok(())
    }

    fn struck(&mut self, strike: Strike) {
        let (worker, fault) = (strike.worker, strike.fault);
        if let Some(point) = strike.point {
            self.sender.sprung(worker, Armed { point, fault });
        }
        self.strikes.push(strike);
    }

    async fn hear(&mut self, event: Event) -> anyhow::Result<()> {
        let now = Instant::now();
        let (number, said) = match event {
            Event::Said(number, said) => (number, said),
            Event::Gone(number) => return self.bury(number, now).await,
        };
        let Some(worker) = self.fleet.find(number) else {
            return Ok(());
        };
        match said {
            Said::Ready => worker.is_ready(),
            Said::Resumed => worker.is_resumed(),
            Said::Pausing => self.pause(number, Stopped::ByItself, now)?,
            Said::Answered { delivery, heard } => {
                worker.in_hand.remove(&delivery);
                self.sender.heard(delivery, heard, now);
            }
        }
        Ok(())
    }

    async fn bury(&mut self, number: u32, now: Instant) -> anyhow::Result<()> {
        let (worker, strike) = self.fleet.bury(number).await?;
        self.struck(strike);
        for delivery in worker.in_hand {
            self.sender.lost(delivery, now);
        }
        self.fleet.spawn()
    }
}
