//! The processes of a run, as the driver holds them: copies of the test's own program, each with its log and ledger.

use super::fault_points::ArmedFault;
use super::injected::{FaultKind, InjectedFault, ProcessFault, Role};
use super::ledger::{Event, Ledger, in_flight};
use semel_rig::{Program, Signal};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;
use tokio::time::Instant;

/// What a process is started with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ProcessConfig<S> {
    /// The number of this process within its run; its ledger has it.
    pub(crate) number: u32,
    /// What it is for.
    pub(crate) role: Role,
    /// The fault that waits for it from the start, if one does.
    pub(crate) armed_fault: Option<ArmedFault>,
    /// What all processes of the run share.
    pub(crate) settings: S,
}

/// The processes of a run. Each that is started gets a new number.
#[derive(Debug)]
pub(crate) struct Processes {
    program: PathBuf,
    pub(crate) dir: PathBuf,
    pub(crate) running: Vec<RunningProcess>,
    started: u32,
}

/// One process.
#[derive(Debug)]
pub(crate) struct RunningProcess {
    pub(crate) role: Role,
    pub(crate) number: u32,
    pub(crate) armed_fault: Option<ArmedFault>,
    pub(crate) paused_until: Option<Instant>,
    /// It was told to stop.
    pub(crate) drains: bool,
    pub(crate) program: Program,
}

// === impl Processes ===

impl Processes {
    pub(crate) fn new(program: &Path, dir: &Path) -> Self {
        Self {
            program: program.to_owned(),
            dir: dir.to_owned(),
            running: Vec::new(),
            started: 0,
        }
    }

    /// How many processes were started.
    pub(crate) const fn started(&self) -> u32 {
        self.started
    }

    /// Starts a process, with pipes if it is to be talked to.
    pub(crate) fn start<S: Serialize>(
        &mut self,
        role: Role,
        armed_fault: Option<ArmedFault>,
        settings: S,
        piped: bool,
    ) -> anyhow::Result<&mut RunningProcess> {
        let config = ProcessConfig {
            number: self.started,
            role,
            armed_fault,
            settings,
        };
        let mut command = Command::new(&self.program);
        command.args(["worker", &serde_json::to_string(&config)?]);
        let log = self.dir.join(format!("{}.log", config.number));
        let builder = Program::builder(&mut command)
            .log(log)
            .last_signal(Signal::KILL);
        let program = if piped { builder.piped() } else { builder }.start()?;
        self.started += 1;
        Ok(self.running.push_mut(RunningProcess {
            role,
            number: config.number,
            armed_fault: config.armed_fault,
            paused_until: None,
            drains: false,
            program,
        }))
    }

    pub(crate) fn find(&mut self, number: u32) -> Option<&mut RunningProcess> {
        self.running.iter_mut().find(|it| it.number == number)
    }

    /// The numbers of the processes that are so.
    pub(crate) fn numbers(&self, which: impl Fn(&RunningProcess) -> bool) -> Vec<u32> {
        let chosen = self.running.iter().filter(|it| which(it));
        chosen.map(|it| it.number).collect()
    }

    pub(crate) fn kill(&mut self, number: u32) -> anyhow::Result<()> {
        if let Some(process) = self.find(number) {
            process.program.process().kill()?;
        }
        Ok(())
    }

    /// Pauses a process, and notes what it has in flight once it stands still. `None`: it died first.
    pub(crate) fn pause(
        &mut self,
        number: u32,
        until: Instant,
    ) -> anyhow::Result<Option<InjectedFault>> {
        let Some(process) = self.find(number) else {
            return Ok(None);
        };
        if process.program.process().pause().is_err() {
            return Ok(None);
        }
        process.paused_until = Some(until);
        let kind = FaultKind::Pause(process.role);
        self.injected(number, kind, None).map(Some)
    }

    /// The processes that have stopped themselves at an armed fault: they stay paused until then.
    pub(crate) fn stopped(&mut self, until: Instant) -> anyhow::Result<Vec<InjectedFault>> {
        let mut stopped = Vec::new();
        for process in &mut self.running {
            if process.paused_until.is_none() && process.program.process().is_paused() {
                process.paused_until = Some(until);
                stopped.push((process.number, FaultKind::Pause(process.role)));
            }
        }
        let met = stopped.into_iter().map(|(number, kind)| {
            self.injected(number, kind, self.point_hit(number, ProcessFault::Pause)?)
        });
        met.collect()
    }

    /// Lets go on whoever was paused long enough.
    pub(crate) fn resume(&mut self, now: Instant) -> anyhow::Result<()> {
        for process in &mut self.running {
            if process.paused_until.is_some_and(|until| until <= now) {
                process.program.process().resume()?;
                process.paused_until = None;
            }
        }
        Ok(())
    }

    /// Takes out one of these that has ended, with what it left in flight.
    pub(crate) fn reap(
        &mut self,
        which: impl Fn(&RunningProcess) -> bool,
    ) -> anyhow::Result<Option<(RunningProcess, InjectedFault)>> {
        for position in 0..self.running.len() {
            let Some(process) = self.running.get_mut(position).filter(|it| which(it)) else {
                continue;
            };
            let Some(status) = process.program.status()? else {
                continue;
            };
            let process = self.running.remove(position);
            let kind = process.cause(status)?;
            let point = self.point_hit(process.number, ProcessFault::Kill)?;
            let injected = self.injected(process.number, kind, point)?;
            return Ok(Some((process, injected)));
        }
        Ok(None)
    }

    /// Waits until all of them have ended by themselves.
    pub(crate) async fn finish(mut self, bound: Duration) -> anyhow::Result<()> {
        for process in &mut self.running {
            let status = process.program.wait_ended(bound).await?;
            anyhow::ensure!(status.success(), "{}", process.ended_with(status));
        }
        Ok(())
    }

    /// The deliveries or runs that a process has in flight.
    pub(crate) fn in_flight(&self, number: u32) -> anyhow::Result<BTreeSet<u64>> {
        Ok(in_flight(&Ledger::read(&self.dir, number)?))
    }

    fn injected(
        &self,
        number: u32,
        kind: FaultKind,
        point: Option<String>,
    ) -> anyhow::Result<InjectedFault> {
        Ok(InjectedFault {
            kind,
            process: Some(number),
            point,
            in_flight: self.in_flight(number)?,
        })
    }

    /// The last point where a process met this fault, if it did.
    fn point_hit(&self, number: u32, fault: ProcessFault) -> anyhow::Result<Option<String>> {
        let events: Vec<Event> = Ledger::read(&self.dir, number)?;
        Ok(events.into_iter().rev().find_map(|event| {
            if let Event::PointHit { point, fault: met } = event
                && met == fault
            {
                return Some(point);
            }
            None
        }))
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
        anyhow::ensure!(self.drains && in_order, "{}", self.ended_with(status));
        Ok(FaultKind::Drain)
    }

    fn ended_with(&self, status: ExitStatus) -> String {
        let (role, number, log) = (self.role.name(), self.number, self.program.log_tail());
        format!("{role} {number} ended by itself: {status}\n{log}")
    }
}
