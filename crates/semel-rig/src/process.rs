//! Signals to one process, by its id.

use crate::wait::until;
use rustix::process::{Pid, Signal, kill_process};
use std::io;
use std::process::Child;
use std::time::Duration;

/// The kernel stops a process at once unless the disk holds it.
const PAUSE_BOUND: Duration = Duration::from_secs(5);

/// A process of this machine.
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
    pub fn new(pid: u32) -> io::Result<Self> {
        let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let pid = raw.ok_or_else(|| io::Error::other(format!("{pid} is not a process id")))?;
        Ok(Self { pid })
    }

    /// The process of a child. Its id stays its own until the child is waited for.
    #[must_use]
    pub fn of(child: &Child) -> Self {
        Self {
            pid: Pid::from_child(child),
        }
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// When there is no such process, or it belongs to another user.
    pub fn send(&self, signal: Signal) -> io::Result<()> {
        kill_process(self.pid, signal).map_err(|error| {
            let told = format!("cannot send {signal:?} to process {}: {error}", self.pid);
            io::Error::new(io::Error::from(error).kind(), told)
        })
    }

    /// Asks it to stop in its own time (SIGTERM).
    ///
    /// # Errors
    /// As [`Process::send`].
    pub fn terminate(&self) -> io::Result<()> {
        self.send(Signal::TERM)
    }

    /// Ends it at once, with no chance to tidy up (SIGKILL). A child must still be waited for.
    ///
    /// # Errors
    /// As [`Process::send`].
    pub fn kill(&self) -> io::Result<()> {
        self.send(Signal::KILL)
    }

    /// Pauses it (SIGSTOP) and returns once the kernel has it stopped. Its sockets keep accepting bytes.
    ///
    /// # Errors
    /// As [`Process::send`], and when it ends or does not stop within five seconds.
    pub fn pause(&self) -> io::Result<()> {
        self.send(Signal::STOP)?;
        let paused = until(PAUSE_BOUND, || match self.state() {
            State::Running => Ok(false),
            State::Paused => Ok(true),
            State::Gone => Err(self.failed("ended instead of pausing")),
        })?;
        if !paused {
            return Err(self.failed("got SIGSTOP but still runs"));
        }
        Ok(())
    }

    /// Lets it go on after a pause (SIGCONT).
    ///
    /// # Errors
    /// As [`Process::send`].
    pub fn resume(&self) -> io::Result<()> {
        self.send(Signal::CONT)
    }

    /// Whether it still runs or is paused. A process that ended and was not waited for yet is not alive.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        match self.state() {
            State::Running | State::Paused => true,
            State::Gone => false,
        }
    }

    /// Whether it is paused, by us or by itself.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.state() == State::Paused
    }

    fn failed(&self, why: &str) -> io::Error {
        io::Error::other(format!("process {} {why}", self.pid))
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
