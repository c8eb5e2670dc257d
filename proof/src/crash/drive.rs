//! The driver: lets a sender and worker processes meet, and injects faults while they do.

use super::case::Case;
use super::message::{Delivery, WorkerMessage};
use super::point::ArmedPoint;
use super::sender::{Sender, Sent};
use crate::harness::{InjectedFault, ProcessFault, Processes, Role, WorkId};
use anyhow::Context;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// How often the driver looks at its clock and at its processes.
const TICK: Duration = Duration::from_millis(4);

/// How long the last pieces of work may take to end once the faults are over.
const DRAIN_MAX: Duration = Duration::from_secs(20);

/// How long a worker may take to end when there is nothing left to do.
const SHUT_DOWN_MAX: Duration = Duration::from_secs(5);

/// How many leases a pause lasts: always past the lease.
const PAUSE_LEASES: std::ops::Range<f64> = 1.2..2.5;

/// How many deliveries a worker is given at a time.
const IN_HAND_MAX: usize = 6;

/// How hard a case is tried.
#[derive(Clone, Debug)]
pub(crate) struct DriveSettings {
    /// The program to start workers from: the test itself.
    pub(crate) program: PathBuf,
    /// What every choice is drawn from.
    pub(crate) seed: u64,
    /// How many pieces of work are planned; there are more when a fault was not met.
    pub(crate) works: u32,
    /// How many effects in a hundred last longer than a lease.
    pub(crate) long_percent: u32,
    /// How many worker processes at a time.
    pub(crate) workers: usize,
    /// The faults that wait at named points, each for one piece of work.
    pub(crate) armed: Vec<ArmedPoint>,
    /// The mean time between random faults.
    pub(crate) faults_every: Duration,
}

/// What driving a case left behind in the driver.
#[derive(Debug)]
pub(crate) struct DriveLog {
    pub(crate) sent: Vec<Sent>,
    pub(crate) injected: Vec<InjectedFault>,
    /// How many pieces of work there were.
    pub(crate) works: u32,
    /// How many processes were started; their ledgers are numbered.
    pub(crate) processes: u32,
    /// The pieces of work that did not end in time.
    pub(crate) stuck: Vec<WorkId>,
}

/// What workers say, by number; nothing more when one has ended.
type Messages = mpsc::UnboundedSender<(u32, Option<WorkerMessage>)>;

struct Driver<'a> {
    case: &'a Case,
    settings: &'a DriveSettings,
    rng: StdRng,
    sender: Sender,
    processes: Processes,
    pipes: BTreeMap<u32, Pipe>,
    messages: Messages,
    injected: Vec<InjectedFault>,
    next_fault: Instant,
    next_look: Instant,
}

/// What a worker is told by, and has been told.
struct Pipe {
    stdin: ChildStdin,
    ready: bool,
    in_hand: BTreeSet<u64>,
    /// Everything that it said before its end was heard.
    closed: bool,
}

/// Drives a case to its end.
pub(crate) async fn drive(case: &Case, settings: &DriveSettings) -> anyhow::Result<DriveLog> {
    let (messages, mut heard) = mpsc::unbounded_channel();
    let mut driver = Driver::new(case, settings, messages);
    for _ in 0..settings.workers {
        driver.start()?;
    }
    let mut drained_by = None;
    while !driver.is_done() {
        let now = Instant::now();
        if !driver.sender.has_sent_all() {
            drained_by = None;
        } else if now > *drained_by.get_or_insert(now + DRAIN_MAX) {
            break;
        }
        driver.act(now).await?;
        tokio::select! {
            message = heard.recv() => if let Some((number, message)) = message {
                driver.hear(number, message);
            },
            () = sleep_until(now + TICK) => {}
        }
    }
    driver.end().await
}

// === impl Driver ===

impl<'a> Driver<'a> {
    fn new(case: &'a Case, settings: &'a DriveSettings, messages: Messages) -> Self {
        let mut rng = StdRng::seed_from_u64(settings.seed);
        let mut armed = settings.armed.clone();
        armed.shuffle(&mut rng);
        let now = Instant::now();
        Self {
            case,
            settings,
            sender: Sender::new(rng.random(), case, settings, armed),
            rng,
            processes: Processes::new(&settings.program, &case.dir),
            pipes: BTreeMap::new(),
            messages,
            injected: Vec::new(),
            next_fault: now + settings.faults_every,
            next_look: now,
        }
    }

    fn start(&mut self) -> anyhow::Result<()> {
        let worker = self.processes.start(Role::Worker, None, self.case, true)?;
        let (number, pipes) = (worker.number, worker.program.take_pipes());
        let (stdin, stdout) = pipes.context("they were asked for")?;
        let pipe = Pipe {
            stdin: ChildStdin::from_std(stdin)?,
            ready: false,
            in_hand: BTreeSet::new(),
            closed: false,
        };
        self.pipes.insert(number, pipe);
        let stdout = ChildStdout::from_std(stdout)?;
        tokio::spawn(listen(number, stdout, self.messages.clone()));
        Ok(())
    }

    fn is_done(&self) -> bool {
        let paused = self.processes.numbers(|it| it.paused_until.is_some());
        let idle = self.pipes.values().all(|pipe| pipe.in_hand.is_empty());
        self.sender.is_done() && idle && paused.is_empty()
    }

    async fn act(&mut self, now: Instant) -> anyhow::Result<()> {
        if now >= self.next_look {
            self.next_look = now + TICK;
            self.look(now)?;
        }
        if now >= self.next_fault && !self.sender.has_sent_all() {
            self.inject(now)?;
        }
        loop {
            // The sender does not know which are paused.
            let room = |pipe: &Pipe| pipe.ready && pipe.in_hand.len() < IN_HAND_MAX;
            let with_room = self.pipes.iter().filter(|(_, pipe)| room(pipe));
            let with_room: Vec<u32> = with_room.map(|(number, _)| *number).collect();
            let Some(&number) = with_room.choose(&mut self.rng) else {
                return Ok(());
            };
            let Some(delivery) = self.sender.next(now) else {
                return Ok(());
            };
            if let Some(pipe) = self.pipes.get_mut(&number) {
                pipe.hand(&delivery).await?;
            }
            self.sender.sent(delivery, number, now);
        }
    }

    /// Sees who was paused long enough, who stopped itself, and who died.
    fn look(&mut self, now: Instant) -> anyhow::Result<()> {
        self.processes.resume(now)?;
        let until = self.pause_end(now);
        for stopped in self.processes.stopped(until)? {
            self.note(stopped);
        }
        while let Some((worker, killed)) = self.processes.reap(|it| {
            let pipe = self.pipes.get(&it.number);
            pipe.is_some_and(|pipe| pipe.closed)
        })? {
            self.note(killed);
            let pipe = self.pipes.remove(&worker.number);
            for delivery in pipe.into_iter().flat_map(|pipe| pipe.in_hand) {
                self.sender.lost(delivery, now);
            }
            self.start()?;
        }
        Ok(())
    }

    /// A fault at a random moment, to a random worker.
    fn inject(&mut self, now: Instant) -> anyhow::Result<()> {
        let pause = self.settings.faults_every;
        self.next_fault = now + pause.mul_f64(self.rng.random_range(0.3..1.7));
        let pipes = &self.pipes;
        let ready = |number| pipes.get(&number).is_some_and(|pipe| pipe.ready);
        let running = |number, paused: Option<Instant>| paused.is_none() && ready(number);
        let victims = self
            .processes
            .numbers(|it| running(it.number, it.paused_until));
        let Some(&number) = victims.choose(&mut self.rng) else {
            return Ok(());
        };
        match ProcessFault::ALL.choose(&mut self.rng) {
            Some(ProcessFault::Kill) => self.processes.kill(number),
            Some(ProcessFault::Pause) | None => {
                let until = self.pause_end(now);
                let paused = self.processes.pause(number, until)?;
                self.injected.extend(paused);
                Ok(())
            }
        }
    }

    fn pause_end(&mut self, now: Instant) -> Instant {
        now + self.case.lease.mul_f64(self.rng.random_range(PAUSE_LEASES))
    }

    fn note(&mut self, injected: InjectedFault) {
        self.sender.fault_hit(&injected);
        self.injected.push(injected);
    }

    fn hear(&mut self, number: u32, message: Option<WorkerMessage>) {
        let Some(pipe) = self.pipes.get_mut(&number) else {
            return;
        };
        match message {
            None => {
                pipe.closed = true;
                pipe.ready = false;
            }
            Some(WorkerMessage::Ready) => pipe.ready = true,
            Some(WorkerMessage::Answered { delivery, answer }) => {
                pipe.in_hand.remove(&delivery);
                self.sender.heard(delivery, answer, Instant::now());
            }
        }
    }

    /// Lets every worker end in its own time; one that does not is killed as it is dropped.
    async fn end(mut self) -> anyhow::Result<DriveLog> {
        self.pipes.clear();
        for worker in &mut self.processes.running {
            worker.program.process().resume()?;
            worker.program.wait_ended(SHUT_DOWN_MAX).await.ok();
        }
        Ok(DriveLog {
            works: self.sender.works_sent(),
            stuck: self.sender.unended(),
            sent: self.sender.history,
            injected: self.injected,
            processes: self.processes.started(),
        })
    }
}

async fn listen(number: u32, stdout: ChildStdout, messages: Messages) {
    let mut lines = BufReader::new(stdout).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        // A SIGKILL can cut a line: the sender has not heard it then.
        if let Ok(message) = serde_json::from_str(&line) {
            messages.send((number, Some(message))).ok();
        }
    }
    messages.send((number, None)).ok();
}

// === impl Pipe ===

impl Pipe {
    /// Hands over a delivery. A worker that just died cannot take it, and nobody can know whether it did.
    async fn hand(&mut self, delivery: &Delivery) -> anyhow::Result<()> {
        let mut line = serde_json::to_vec(delivery)?;
        line.push(b'\n');
        self.in_hand.insert(delivery.id);
        self.stdin.write_all(&line).await.ok();
        Ok(())
    }
}
