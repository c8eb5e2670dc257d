//! Programs under test, as processes of their own.

mod builder;

pub use builder::ProgramBuilder;

use crate::process::Process;
use crate::reaper::Group;
use crate::wait::{BOUND, until};
use rustix::process::Signal;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus};
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

/// How many lines of a log an error shows.
const LOG_LINES_SHOWN: usize = 20;

/// How long to leave the processor to the program between two looks whether it is ready.
const READY_PAUSE: Duration = Duration::from_millis(1);

/// A process that writes to a log of its own. It leads a process group that does not outlive us; dropping this kills
/// the group.
#[derive(Debug)]
pub struct Program {
    child: Child,
    group: Group,
    log: PathBuf,
    /// Where the log is, unless it was told where to write.
    _dir: Option<TempDir>,
}

/// Why a program is not as it should be.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It could not be started.
    #[error("cannot start {program}: {source}")]
    Start {
        /// What was to be run.
        program: String,
        /// What the machine said.
        source: io::Error,
    },
    /// It ended too early.
    #[error("it ended with {status}; the end of its log:\n{log}")]
    Ended {
        /// How it ended.
        status: ExitStatus,
        /// The last lines of its log.
        log: String,
    },
    /// It did not do something in time.
    #[error("not within {bound:?}; the end of its log:\n{log}")]
    Late {
        /// How long it was waited for.
        bound: Duration,
        /// The last lines of its log.
        log: String,
    },
    /// It could not be signalled or waited for.
    #[error(transparent)]
    Machine(#[from] io::Error),
}

// === impl Program ===

impl Program {
    /// Starts a command. What it prints, on stdout and stderr, is its log.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(command: &mut Command) -> Result<Self, Error> {
        Self::builder(command).start()
    }

    /// For a program that is started in another way.
    #[must_use]
    pub fn builder(command: &mut Command) -> ProgramBuilder<'_> {
        ProgramBuilder::new(command)
    }

    /// Its process, without its children.
    #[must_use]
    pub fn process(&self) -> Process {
        Process::of(&self.child)
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its process and all its children, for signals.
    #[must_use]
    pub const fn group(&self) -> &Group {
        &self.group
    }

    /// Its stdin and stdout, once, if they were kept.
    #[must_use]
    pub fn take_pipes(&mut self) -> Option<(ChildStdin, ChildStdout)> {
        Some((self.child.stdin.take()?, self.child.stdout.take()?))
    }

    /// All it has printed so far.
    #[must_use]
    pub fn log(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// The last lines of its log.
    #[must_use]
    pub fn log_tail(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        let skipped = lines.len().saturating_sub(LOG_LINES_SHOWN);
        lines.get(skipped..).unwrap_or_default().join("\n")
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn status(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Waits until `ready` says so.
    ///
    /// # Errors
    /// When it ends before that, or 30 seconds pass; the message has the end of its log.
    pub fn wait_until(&mut self, mut ready: impl FnMut(&Self) -> bool) -> Result<(), Error> {
        let mut ended = None;
        let came = until(BOUND, || {
            if ready(self) {
                return Ok(true);
            }
            ended = self.status()?;
            Ok(ended.is_some())
        })?;
        match ended {
            Some(status) => Err(self.ended_early(status)),
            None if came => Ok(()),
            None => Err(self.late(BOUND)),
        }
    }

    /// The same, for those who must not block a thread, with a bound of their own.
    ///
    /// # Errors
    /// When it ends before that, or `bound` passes.
    pub async fn wait_ready(
        &mut self,
        bound: Duration,
        mut ready: impl AsyncFnMut() -> bool,
    ) -> Result<(), Error> {
        let began = Instant::now();
        while !ready().await {
            if let Some(status) = self.status()? {
                return Err(self.ended_early(status));
            }
            if began.elapsed() > bound {
                return Err(self.late(bound));
            }
            sleep(READY_PAUSE).await;
        }
        Ok(())
    }

    /// Ends it and all its children at once, with no chance to tidy up (SIGKILL), and waits for its end.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub fn kill(&mut self) -> io::Result<ExitStatus> {
        self.group.signal(Signal::KILL);
        self.child.wait()
    }

    /// Asks it to stop in its own time (SIGTERM), and waits for its end.
    ///
    /// # Errors
    /// When it has not ended after 30 seconds; it was killed then.
    pub fn stop(&mut self) -> Result<ExitStatus, Error> {
        self.end_with(Signal::TERM)
    }

    /// Sends it a signal that ends it, and waits for its end; lets it go on first if it is paused.
    ///
    /// # Errors
    /// When it has not ended after 30 seconds; it was killed then.
    pub fn end_with(&mut self, signal: Signal) -> Result<ExitStatus, Error> {
        if let Some(status) = self.status()? {
            return Ok(status);
        }
        self.process().send(signal)?;
        self.group.signal(Signal::CONT);
        let ended = self.ended();
        if ended.is_err() {
            self.kill()?;
        }
        ended
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// When it has not ended after 30 seconds.
    pub fn ended(&mut self) -> Result<ExitStatus, Error> {
        self.ended_within(BOUND)
    }

    /// Waits for the end of a program that takes its time.
    ///
    /// # Errors
    /// When it has not ended after `bound`.
    pub fn ended_within(&mut self, bound: Duration) -> Result<ExitStatus, Error> {
        let mut status = None;
        until(bound, || {
            status = self.status()?;
            Ok(status.is_some())
        })?;
        status.ok_or_else(|| self.late(bound))
    }

    /// The same, for those who must not block a thread.
    ///
    /// # Errors
    /// When it has not ended after `bound`.
    pub async fn wait_ended(&mut self, bound: Duration) -> Result<ExitStatus, Error> {
        match self.wait_ready(bound, async || false).await {
            Err(Error::Ended { status, .. }) => Ok(status),
            Err(error @ (Error::Late { .. } | Error::Start { .. } | Error::Machine(_))) => {
                Err(error)
            }
            Ok(()) => Err(self.late(bound)),
        }
    }

    fn ended_early(&self, status: ExitStatus) -> Error {
        Error::Ended {
            status,
            log: self.log_tail(),
        }
    }

    fn late(&self, bound: Duration) -> Error {
        Error::Late {
            bound,
            log: self.log_tail(),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // A destructor has nobody to tell.
        self.kill().ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Program {
        Program::start(Command::new("sh").args(["-c", script])).unwrap()
    }

    #[test]
    fn program_is_heard_and_stopped() {
        let mut program =
            shell("trap 'echo bye; exit 3' TERM; echo here; while :; do sleep 0.01; done");
        program.wait_until(|it| it.log().contains("here")).unwrap();
        assert_eq!(program.stop().unwrap().code(), Some(3));
        assert!(program.log().ends_with("bye\n"));
    }

    #[test]
    fn program_that_ends_too_early_shows_its_log() {
        let error = shell("echo no disk").wait_until(|_| false).unwrap_err();
        assert!(error.to_string().contains("no disk"), "{error}");
    }

    #[tokio::test]
    async fn program_that_ends_before_it_is_ready_shows_its_status() {
        let mut program = shell("exit 3");
        let waited = program.wait_ready(BOUND, async || false).await;
        let error = waited.unwrap_err().to_string();
        assert!(error.contains("exit status: 3"), "{error}");
    }

    #[test]
    fn killed_program_takes_its_children_along() {
        let mut program = shell("sleep 600 & echo $!; wait");
        program.wait_until(|it| it.log().ends_with('\n')).unwrap();
        let child = Process::new(program.log().trim().parse().unwrap()).unwrap();
        program.kill().unwrap();
        assert!(until(BOUND, || Ok(!child.is_alive())).unwrap());
    }
}
