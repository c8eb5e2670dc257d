//! Signals to one process, by its id.

use std::process::Child;
use std::time::Duration;

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};

/// The kernel stops a process at once unless the disk holds it.
const PAUSE_BOUND: Duration = Duration::from_secs(5);

/// A running process of this machine, for tests that kill and pause workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    pid: Pid,
}

/// What the kernel says a process is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    Paused,
    Gone,
}

// === impl Process ===

impl Process {
    /// The process with this id.
    ///
    /// # Errors
    /// When no process can have this id.
    pub fn new(pid: u32) -> anyhow::Result<Self> {
        let pid = i32::try_from(pid)
            .ok()
            .and_then(Pid::from_raw)
            .with_context(|| format!("{pid} is not a process id"))?;
        Ok(Self { pid })
    }

    /// The process of a child. Its id stays its own until the child is waited for.
    #[must_use]
    pub fn of(child: &Child) -> Self {
        Self {
            pid: Pid::from_child(child),
        }
    }

    /// Asks it to stop in its own time (SIGTERM).
    ///
    /// # Errors
    /// When there is no such process, or it belongs to another user.
    pub fn stop_signal(&self) -> anyhow::Result<()> {
        self.send(Signal::TERM)
    }

    /// Pauses it (SIGSTOP) and returns once the kernel has it stopped. Its sockets keep accepting bytes.
    ///
    /// # Errors
    /// When there is no such process, it belongs to another user, or it does not stop within five seconds.
    pub fn pause(&self) -> anyhow::Result<()> {
        self.send(Signal::STOP)?;
        let paused = crate::wait::until(PAUSE_BOUND, || match self.state() {
            State::Running => Ok(false),
            State::Paused => Ok(true),
            State::Gone => bail!("process {} ended instead of pausing", self.pid),
        })?;
        if !paused {
            bail!("process {} got SIGSTOP but still runs", self.pid);
        }
        Ok(())
    }

    /// Lets it go on after a pause (SIGCONT).
    ///
    /// # Errors
    /// When there is no such process, or it belongs to another user.
    pub fn resume(&self) -> anyhow::Result<()> {
        self.send(Signal::CONT)
    }

    /// Ends it at once, with no chance to tidy up (SIGKILL). A child must still be waited for.
    ///
    /// # Errors
    /// When there is no such process, or it belongs to another user.
    pub fn kill(&self) -> anyhow::Result<()> {
        self.send(Signal::KILL)
    }

    /// Whether it still runs or is paused. A process that ended and was not waited for yet is not alive.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        match self.state() {
            State::Running | State::Paused => true,
            State::Gone => false,
        }
    }

    pub(crate) fn send(&self, signal: Signal) -> anyhow::Result<()> {
        kill_process(self.pid, signal)
            .with_context(|| format!("cannot send {signal:?} to process {}", self.pid))
    }

    fn state(&self) -> State {
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{}/stat", self.pid)) else {
            return State::Gone;
        };
        // The name before the state is in parentheses and may itself contain some.
        match stat
            .rsplit_once(") ")
            .and_then(|(_, rest)| rest.chars().next())
        {
            None | Some('Z' | 'X') => State::Gone,
            Some('T') => State::Paused,
            Some(_) => State::Running,
        }
    }
}
