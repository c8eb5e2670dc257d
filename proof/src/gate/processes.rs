//! The processes: the processes of a deployment, as the driver holds them. Whoever dies is started again.

use super::armed_fault::ArmedFault;
use super::deployment::{Deployment, ProcessConfig, Role};
use super::injected::{FaultKind, Injection};
use crate::crash::{self, Ledger, Line, ProcessFault};
use semel_rig::{Program, Signal};
use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use tokio::time::Instant;

/// The processes of a deployment.
#[derive(Debug)]
pub(super) struct Processes {
    program: PathBuf,
    deployment: Deployment,
    pub(super) running: Vec<RunningProcess>,
    started: u32,
    /// The numbers of all that played the handler.
    pub(super) handlers: Vec<u32>,
}

/// One process.
#[derive(Debug)]
pub(super) struct RunningProcess {
    pub(super) role: Role,
    pub(super) number: u32,
    pub(super) armed_fault: Option<ArmedFault>,
    pub(super) state: ProcessState,
    /// It was told to stop.
    drains: bool,
    program: Program,
}

/// What a process is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProcessState {
    Runs,
    /// Stopped, until then.
    Paused(Instant),
}

// === impl Processes ===

impl Processes {
    pub(super) fn new(program: PathBuf, deployment: Deployment) -> Self {
        Self {
            program,
            deployment,
            running: Vec::new(),
            started: 0,
            handlers: Vec::new(),
        }
    }

    /// How many processes were started.
    pub(super) const fn started(&self) -> u32 {
        self.started
    }

    pub(super) fn start(
        &mut self,
        role: Role,
        armed_fault: Option<ArmedFault>,
    ) -> anyhow::Result<()> {
        let number = self.started;
        self.started += 1;
        if role == Role::Handler {
            self.handlers.push(number);
        }
        let config = ProcessConfig {
            role,
            number,
            armed_fault: armed_fault.clone(),
            deployment: self.deployment.clone(),
        };
        let mut command = Command::new(&self.program);
        command.args(["play", &serde_json::to_string(&config)?]);
        let program = Program::builder(&mut command)
            .log(self.deployment.case.dir.join(format!("{number}.log")))
            .last_signal(Signal::KILL)
            .start()?;
        self.running.push(RunningProcess {
            role,
            number,
            armed_fault,
            state: ProcessState::Runs,
            drains: false,
            program,
        });
        Ok(())
    }

    /// The processes that a random fault can be done to.
    pub(super) fn running(&self, which: impl Fn(Role) -> bool) -> Vec<u32> {
        let runs = |process: &&RunningProcess| {
            process.state == ProcessState::Runs && !process.drains && which(process.role)
        };
        let running = self.running.iter().filter(runs);
        running.map(|process| process.number).collect()
    }

    /// Takes out who has ended, with what it left in hand.
    pub(super) fn reap(&mut self) -> anyhow::Result<Option<(RunningProcess, Injection)>> {
        for place in 0..self.running.len() {
            let Some(process) = self.running.get_mut(place) else {
                break;
            };
            let Some(status) = process.program.status()? else {
                continue;
            };
            let process = self.running.remove(place);
            let kind = process.cause(status)?;
            let injection = Injection {
                kind,
                point: self.fault_hit(&process, ProcessFault::Kill)?,
                open: self.open(process.number)?,
            };
            return Ok(Some((process, injection)));
        }
        Ok(None)
    }

    /// Pauses a process; `None`: it died first.
    pub(super) fn pause(
        &mut self,
        number: u32,
        until: Instant,
    ) -> anyhow::Result<Option<Injection>> {
        let Some(process) = self.find(number) else {
            return Ok(None);
        };
        if process.program.process().pause().is_err() {
            return Ok(None);
        }
        process.state = ProcessState::Paused(until);
        let role = process.role;
        let open = self.open(number)?;
        Ok(Some(Injection {
            kind: FaultKind::Pause(role),
            point: None,
            open,
        }))
    }

    /// Injected faults who plays a role at a point that it does not know itself. A death is found later.
    pub(super) fn hit_at(
        &mut self,
        role: Role,
        point: &str,
        fault: ProcessFault,
        until: Instant,
    ) -> anyhow::Result<Option<Injection>> {
        let running = self.running(|its| its == role);
        let Some(number) = running.first().copied() else {
            return Ok(None);
        };
        let ledger = Ledger::open(&self.deployment.case.ledger(number))?;
        ledger.write(&Line::PointHit {
            point: point.to_owned(),
            fault,
        });
        match fault {
            ProcessFault::Kill => {
                self.kill(number)?;
                Ok(None)
            }
            ProcessFault::Pause => {
                let struck = self.pause(number, until)?;
                Ok(struck.map(|struck| Injection {
                    point: Some((role, point.to_owned())),
                    ..struck
                }))
            }
        }
    }

    /// Which gate listens on this port.
    pub(super) fn gate_at(&self, port: u16) -> Option<usize> {
        self.deployment
            .gates
            .iter()
            .position(|address| address.port == port)
    }

    /// The processes that have stopped themselves in an armed fault.
    pub(super) fn stopped(&mut self, until: Instant) -> anyhow::Result<Vec<Injection>> {
        let mut stopped = Vec::new();
        let all: Vec<u32> = self.running.iter().map(|process| process.number).collect();
        for number in all {
            let Some(process) = self.find(number) else {
                continue;
            };
            if process.state == ProcessState::Runs && process.program.process().is_paused() {
                process.state = ProcessState::Paused(until);
                let role = process.role;
                let process = self.running.iter().find(|it| it.number == number);
                let point = process
                    .map(|it| self.fault_hit(it, ProcessFault::Pause))
                    .transpose()?;
                stopped.push(Injection {
                    kind: FaultKind::Pause(role),
                    point: point.flatten(),
                    open: self.open(number)?,
                });
            }
        }
        Ok(stopped)
    }

    /// Who is paused.
    pub(super) fn paused(&self) -> Vec<u32> {
        let paused = |process: &&RunningProcess| matches!(process.state, ProcessState::Paused(_));
        let paused = self.running.iter().filter(paused);
        paused.map(|process| process.number).collect()
    }

    /// Lets one go on at the next [`resume`](Self::resume).
    pub(super) fn resume_at(&mut self, number: u32, now: Instant) {
        if let Some(process) = self.find(number) {
            process.state = ProcessState::Paused(now);
        }
    }

    /// Lets go on whoever was paused long enough.
    pub(super) fn resume(&mut self, now: Instant) -> anyhow::Result<()> {
        for process in &mut self.running {
            if matches!(process.state, ProcessState::Paused(until) if until <= now) {
                process.program.process().resume()?;
                process.state = ProcessState::Runs;
            }
        }
        Ok(())
    }

    pub(super) fn kill(&mut self, number: u32) -> anyhow::Result<()> {
        if let Some(process) = self.find(number) {
            process.program.process().kill()?;
        }
        Ok(())
    }

    pub(super) fn drain(&mut self, number: u32) -> anyhow::Result<()> {
        if let Some(process) = self.find(number) {
            process.drains = true;
            process.program.process().terminate()?;
        }
        Ok(())
    }

    /// The runs that the gates have in hand.
    pub(super) fn in_hand(&self) -> anyhow::Result<BTreeSet<u64>> {
        let mut open = BTreeSet::new();
        for process in &self.running {
            if matches!(process.role, Role::Gate(_)) {
                open.extend(self.open(process.number)?);
            }
        }
        Ok(open)
    }

    pub(super) fn open_of(&self, gate: usize) -> anyhow::Result<BTreeSet<u64>> {
        let process = self.running.iter().find(|it| it.role == Role::Gate(gate));
        process.map_or_else(|| Ok(BTreeSet::new()), |it| self.open(it.number))
    }

    /// The runs that a process has in hand.
    pub(super) fn open(&self, number: u32) -> anyhow::Result<BTreeSet<u64>> {
        let lines = crash::read(&self.deployment.case.ledger(number))?;
        Ok(crash::open(&lines))
    }

    /// The point where a process ran into its armed fault, if it did.
    fn fault_hit(
        &self,
        process: &RunningProcess,
        fault: ProcessFault,
    ) -> anyhow::Result<Option<(Role, String)>> {
        let lines = crash::read(&self.deployment.case.ledger(process.number))?;
        let point = lines.into_iter().rev().find_map(|line| match line {
            Line::PointHit { point, fault: its } if its == fault => Some(point),
            Line::PointHit { .. }
            | Line::Received { .. }
            | Line::Answered { .. }
            | Line::Begun(_)
            | Line::Effect { .. }
            | Line::FaultHit(_)
            | Line::Cut { .. }
            | Line::Doubted { .. }
            | Line::Stalled { .. } => None,
        });
        Ok(point.map(|point| (process.role, point)))
    }

    fn find(&mut self, number: u32) -> Option<&mut RunningProcess> {
        self.running.iter_mut().find(|it| it.number == number)
    }
}

// === impl RunningProcess ===

impl RunningProcess {
    /// Why it ended. A process that is told to stop before it listens for that ends at once.
    fn cause(&self, status: ExitStatus) -> anyhow::Result<FaultKind> {
        if status.signal() == Some(Signal::KILL.as_raw()) {
            return Ok(FaultKind::Kill(self.role));
        }
        let in_order = status.success() || status.signal() == Some(Signal::TERM.as_raw());
        anyhow::ensure!(
            self.drains && in_order,
            "a {} ended by itself: {status}\n{}",
            self.role.name(),
            self.program.log_tail()
        );
        Ok(FaultKind::Drain)
    }
}
