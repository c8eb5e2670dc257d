//! The driver: lets a sender and a processes meet, and injects faults into the processes while they do.

use super::case::{Case, WorkId};
use super::message::{ArmedPoint, WorkerMessage};
use super::point::ProcessFault;
use super::processes::{Event, InjectedFault, Processes, Stopped};
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
pub struct DriveSettings {
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
    pub armed_points: Vec<ArmedPoint>,
    /// The mean time between random faults.
    pub faults_every: Duration,
}

/// What driving a case left behind in the driver.
#[derive(Debug)]
pub struct DriveLog {
    /// Every delivery.
    pub sent: Vec<Sent>,
    /// Every fault.
    pub injected: Vec<InjectedFault>,
    /// How many processes were started; their ledgers are numbered.
    pub workers: u32,
    /// The pieces of work that did not end in time.
    pub stuck: Vec<WorkId>,
}

struct Driver<'a> {
    case: &'a Case,
    settings: &'a DriveSettings,
    rng: StdRng,
    sender: Sender,
    processes: Processes,
    injected: Vec<InjectedFault>,
    next_fault: Instant,
}

/// Drives a case to its end.
///
/// # Errors
/// When a worker cannot be started or ends by itself.
pub async fn drive(case: &Case, settings: &DriveSettings) -> anyhow::Result<DriveLog> {
    let (events, mut heard) = mpsc::unbounded_channel();
    let processes = Processes::start(
        settings.program.clone(),
        case.clone(),
        settings.workers,
        events,
    )?;
    let mut driver = Driver::new(case, settings, processes);
    let mut drained_by = None;
    while !driver.is_done() {
        let now = Instant::now();
        if driver.sender.has_sent_all() && now > *drained_by.get_or_insert(now + DRAIN_MAX) {
            break;
        }
        driver.act(now).await?;
        tokio::select! {
            event = heard.recv() => if let Some(event) = event { driver.handle(event).await? },
            () = sleep_until(now + TICK) => {}
        }
    }
    let (workers, stuck) = (driver.processes.started(), driver.sender.unended());
    driver.processes.shut_down().await?;
    Ok(DriveLog {
        sent: driver.sender.history,
        injected: driver.injected,
        workers,
        stuck,
    })
}

// === impl Driver ===

impl<'a> Driver<'a> {
    fn new(case: &'a Case, settings: &'a DriveSettings, processes: Processes) -> Self {
        let mut rng = StdRng::seed_from_u64(settings.seed);
        let mut armed_points = settings.armed_points.clone();
        armed_points.shuffle(&mut rng);
        let sender = Sender::new(rng.random(), case, settings, armed_points);
        Self {
            case,
            settings,
            rng,
            sender,
            processes,
            injected: Vec::new(),
            next_fault: Instant::now() + settings.faults_every,
        }
    }

    fn is_done(&self) -> bool {
        let idle = |worker: &super::processes::WorkerProcess| {
            worker.in_hand.is_empty() && !worker.is_paused()
        };
        self.sender.is_done() && self.processes.workers.iter().all(idle)
    }

    async fn act(&mut self, now: Instant) -> anyhow::Result<()> {
        self.processes.resume_due(now)?;
        if now >= self.next_fault && !self.sender.has_sent_all() {
            self.inject(now)?;
        }
        loop {
            let Some(&number) = self.processes.with_room().choose(&mut self.rng) else {
                return Ok(());
            };
            let Some(delivery) = self.sender.next(now) else {
                return Ok(());
            };
            if let Some(worker) = self.processes.find(number) {
                worker.hand(&delivery).await?;
            }
            self.sender.sent(delivery, number, now);
        }
    }

    /// A fault at a random moment, to a random worker.
    fn inject(&mut self, now: Instant) -> anyhow::Result<()> {
        let pause = self.settings.faults_every;
        self.next_fault = now + pause.mul_f64(self.rng.random_range(0.3..1.7));
        let Some(&number) = self.processes.faultable().choose(&mut self.rng) else {
            return Ok(());
        };
        match ProcessFault::ALL.choose(&mut self.rng) {
            Some(ProcessFault::Kill) => self.processes.kill(number),
            Some(ProcessFault::Pause) | None => self.pause(number, Stopped::ByDriver, now),
        }
    }

    fn pause(&mut self, number: u32, stopped: Stopped, now: Instant) -> anyhow::Result<()> {
        let end = now + self.case.lease.mul_f64(self.rng.random_range(PAUSE_LEASES));
        if let Some(fault) = self.processes.pause(number, stopped, end)? {
            self.struck(fault);
        }
        Ok(())
    }

    fn struck(&mut self, injected: InjectedFault) {
        let (worker, fault) = (injected.worker, injected.fault);
        if let Some(point) = injected.point {
            self.sender.fault_hit(worker, ArmedPoint { point, fault });
        }
        self.injected.push(injected);
    }

    async fn handle(&mut self, event: Event) -> anyhow::Result<()> {
        let now = Instant::now();
        let (number, said) = match event {
            Event::Message(number, said) => (number, said),
            Event::Gone(number) => return self.reap(number, now).await,
        };
        let Some(worker) = self.processes.find(number) else {
            return Ok(());
        };
        match said {
            WorkerMessage::Ready => worker.is_ready(),
            WorkerMessage::Resumed => worker.is_resumed(),
            WorkerMessage::Pausing => self.pause(number, Stopped::ByItself, now)?,
            WorkerMessage::Answered { delivery, heard } => {
                worker.in_hand.remove(&delivery);
                self.sender.heard(delivery, heard, now);
            }
        }
        Ok(())
    }

    async fn reap(&mut self, number: u32, now: Instant) -> anyhow::Result<()> {
        let (worker, fault) = self.processes.reap(number).await?;
        self.struck(fault);
        for delivery in worker.in_hand {
            self.sender.lost(delivery, now);
        }
        self.processes.spawn()
    }
}
