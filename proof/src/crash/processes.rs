//! The processes: the worker processes of a case, as the driver holds them.

use super::case::Case;
use super::ledger;
use super::message::{ArmedPoint, Delivery, WorkerConfig, WorkerMessage};
use super::point::{Point, ProcessFault};
use anyhow::Context;
use semel_rig::{BOUND, Program, Signal};
use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// How many deliveries a worker is given at a time.
const IN_HAND_MAX: usize = 6;

/// How long a worker may take to end when there is nothing left to do.
const SHUT_DOWN_MAX: Duration = Duration::from_secs(5);

/// The worker processes of a case. Each slot holds one at a time; a new one gets a new number.
#[derive(Debug)]
pub(super) struct Processes {
    program: PathBuf,
    case: Case,
    pub(super) workers: Vec<WorkerProcess>,
    started: u32,
    events: mpsc::UnboundedSender<Event>,
}

/// A worker process.
#[derive(Debug)]
pub(super) struct WorkerProcess {
    pub(super) number: u32,
    pub(super) in_hand: BTreeSet<u64>,
    ready: bool,
    pause: Pause,
    stdin: ChildStdin,
    program: Program,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pause {
    No,
    Until(Instant, Stopped),
    /// SIGCONT was sent, and a worker that stopped itself has not said yet that it goes on.
    Ending,
}

/// Who stopped a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stopped {
    ByDriver,
    ByItself,
}

/// Something about a worker, by number.
#[derive(Debug)]
pub(super) enum Event {
    Message(u32, WorkerMessage),
    Gone(u32),
}

/// A fault, and what it met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InjectedFault {
    /// Which worker.
    pub worker: u32,
    /// What was done to it.
    pub fault: ProcessFault,
    /// At which point, if it was one with a name.
    pub point: Option<Point>,
    /// The deliveries it had in hand.
    pub open: BTreeSet<u64>,
}

// === impl Processes ===

impl Processes {
    pub(super) fn start(
        program: PathBuf,
        case: Case,
        workers: usize,
        events: mpsc::UnboundedSender<Event>,
    ) -> anyhow::Result<Self> {
        let mut processes = Self {
            program,
            case,
            workers: Vec::new(),
            started: 0,
            events,
        };
        for _ in 0..workers {
            processes.spawn()?;
        }
        Ok(processes)
    }

    /// How many processes were started.
    pub(super) const fn started(&self) -> u32 {
        self.started
    }

    pub(super) fn spawn(&mut self) -> anyhow::Result<()> {
        let number = self.started;
        self.started += 1;
        let config = WorkerConfig {
            worker: number,
            case: self.case.clone(),
        };
        let mut command = Command::new(&self.program);
        command.args(["worker", &serde_json::to_string(&config)?]);
        let mut program = Program::builder(&mut command)
            .piped()
            .last_signal(Signal::KILL)
            .start()?;
        let (stdin, stdout) = program.take_pipes().context("they were asked for")?;
        let stdin = ChildStdin::from_std(stdin)?;
        let stdout = ChildStdout::from_std(stdout)?;
        tokio::spawn(listen(number, stdout, self.events.clone()));
        self.workers.push(WorkerProcess {
            number,
            in_hand: BTreeSet::new(),
            ready: false,
            pause: Pause::No,
            stdin,
            program,
        });
        Ok(())
    }

    pub(super) fn find(&mut self, number: u32) -> Option<&mut WorkerProcess> {
        self.workers
            .iter_mut()
            .find(|worker| worker.number == number)
    }

    /// The workers that can be given a delivery; the sender does not know which are paused.
    pub(super) fn with_room(&self) -> Vec<u32> {
        let room = |worker: &&WorkerProcess| worker.ready && worker.in_hand.len() < IN_HAND_MAX;
        self.numbers(room)
    }

    /// The workers that a random fault can be done to.
    pub(super) fn faultable(&self) -> Vec<u32> {
        self.numbers(|worker| worker.ready && worker.pause == Pause::No)
    }

    fn numbers(&self, which: impl Fn(&&WorkerProcess) -> bool) -> Vec<u32> {
        let chosen = self.workers.iter().filter(which);
        chosen.map(|worker| worker.number).collect()
    }

    /// Lets go on whoever was paused long enough. A worker that stopped itself may have missed the signal.
    pub(super) fn resume_due(&mut self, now: Instant) -> anyhow::Result<()> {
        for worker in &mut self.workers {
            match worker.pause {
                Pause::No => {}
                Pause::Until(end, _) if end > now => {}
                Pause::Until(_, Stopped::ByDriver) => {
                    worker.program.process().resume()?;
                    worker.pause = Pause::No;
                }
                Pause::Until(_, Stopped::ByItself) | Pause::Ending => {
                    worker.program.process().resume()?;
                    worker.pause = Pause::Ending;
                }
            }
        }
        Ok(())
    }

    pub(super) fn kill(&mut self, number: u32) -> anyhow::Result<()> {
        if let Some(worker) = self.find(number) {
            worker.program.process().kill()?;
        }
        Ok(())
    }

    /// Pauses a worker, and notes what it has in hand once it stands still. `None`: it died first.
    pub(super) fn pause(
        &mut self,
        number: u32,
        stopped: Stopped,
        end: Instant,
    ) -> anyhow::Result<Option<InjectedFault>> {
        let case = self.case.clone();
        let Some(worker) = self.find(number) else {
            return Ok(None);
        };
        if worker.program.process().pause().is_err() {
            return Ok(None);
        }
        worker.pause = Pause::Until(end, stopped);
        let (open, last) = open(&case, number)?;
        let point = match stopped {
            Stopped::ByDriver => None,
            Stopped::ByItself => last.map(|armed| armed.point),
        };
        Ok(Some(InjectedFault {
            worker: number,
            fault: ProcessFault::Pause,
            point,
            open,
        }))
    }

    /// Buries a worker that ended, and says what it was killed with in hand.
    pub(super) async fn reap(
        &mut self,
        number: u32,
    ) -> anyhow::Result<(WorkerProcess, InjectedFault)> {
        let place = self.workers.iter().position(|w| w.number == number);
        let mut worker = self.workers.remove(place.context("a worker dies once")?);
        let status = worker.program.wait_ended(BOUND).await?;
        anyhow::ensure!(
            status.signal() == Some(Signal::KILL.as_raw()),
            "worker {number} of {} ended by itself: {status}\n{}",
            self.case.name,
            worker.program.log_tail()
        );
        let (open, last) = open(&self.case, number)?;
        let point = last.filter(|armed| armed.fault == ProcessFault::Kill);
        let fault = InjectedFault {
            worker: number,
            fault: ProcessFault::Kill,
            point: point.map(|armed| armed.point),
            open,
        };
        Ok((worker, fault))
    }

    /// Lets every worker end in its own time, and ends the ones that do not.
    pub(super) async fn shut_down(self) -> anyhow::Result<()> {
        for mut worker in self.workers {
            worker.program.process().resume()?;
            drop(worker.stdin);
            if worker.program.wait_ended(SHUT_DOWN_MAX).await.is_err() {
                worker.program.kill()?;
            }
        }
        Ok(())
    }
}

/// The deliveries a worker has received and not answered, and the fault it ran into last.
fn open(case: &Case, worker: u32) -> anyhow::Result<(BTreeSet<u64>, Option<ArmedPoint>)> {
    let lines = ledger::read(&case.ledger(worker))?;
    let last = lines.iter().rev().find_map(|line| match line {
        ledger::Line::FaultHit(armed) => Some(*armed),
        ledger::Line::Received { .. }
        | ledger::Line::Answered { .. }
        | ledger::Line::Begun(_)
        | ledger::Line::Effect { .. }
        | ledger::Line::PointHit { .. }
        | ledger::Line::Cut { .. }
        | ledger::Line::Doubted { .. }
        | ledger::Line::Stalled { .. } => None,
    });
    Ok((ledger::open(&lines), last))
}

async fn listen(number: u32, stdout: ChildStdout, events: mpsc::UnboundedSender<Event>) {
    let mut lines = BufReader::new(stdout).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        // A SIGKILL can cut a line: the sender has not heard it then.
        if let Ok(said) = serde_json::from_str(&line) {
            events.send(Event::Message(number, said)).ok();
        }
    }
    events.send(Event::Gone(number)).ok();
}

// === impl WorkerProcess ===

impl WorkerProcess {
    pub(super) fn is_ready(&mut self) {
        self.ready = true;
    }

    pub(super) fn is_resumed(&mut self) {
        self.pause = Pause::No;
    }

    pub(super) fn is_paused(&self) -> bool {
        self.pause != Pause::No
    }

    /// Hands over a delivery. A worker that just died cannot take it, and nobody can know whether it did.
    pub(super) async fn hand(&mut self, delivery: &Delivery) -> anyhow::Result<()> {
        let mut line = serde_json::to_vec(delivery)?;
        line.push(b'\n');
        self.in_hand.insert(delivery.id);
        self.stdin.write_all(&line).await.ok();
        Ok(())
    }
}
