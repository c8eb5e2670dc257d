//! Programs under test, as processes of their own.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::keeper::Keeper;
use crate::process::Process;
use crate::wait::{BOUND, until};

/// A process that writes to a log of its own and does not outlive us. Dropping it kills it.
#[derive(Debug)]
pub struct Program {
    child: Child,
    keeper: Option<Keeper>,
    dir: TempDir,
}

// === impl Program ===

impl Program {
    /// Starts it. What it prints, on stdout and stderr, is its log.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(command: &mut Command) -> anyhow::Result<Self> {
        let dir = tempfile::Builder::new()
            .prefix("semel-program-")
            .tempdir()
            .context("cannot make a directory for a program")?;
        let log = File::create(dir.path().join("log")).context("cannot create its log")?;
        let child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone().context("cannot share its log")?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {:?}", command.get_program()))?;
        // SIGTERM, not SIGKILL: a server with workers of its own must end them.
        let keeper = Some(Keeper::watch(&child, Signal::TERM, dir.path())?);
        Ok(Self { child, keeper, dir })
    }

    /// Its process, for signals.
    #[must_use]
    pub fn process(&self) -> Process {
        Process::of(&self.child)
    }

    /// All it has printed so far.
    #[must_use]
    pub fn log(&self) -> String {
        let log = fs::read(self.dir.path().join("log")).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// A directory that lives as long as this handle.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Waits until `ready` says so.
    ///
    /// # Errors
    /// When it ends before that, or 30 seconds pass; the message has its log.
    pub fn wait_until(&mut self, mut ready: impl FnMut(&Self) -> bool) -> anyhow::Result<()> {
        let came = until(BOUND, || {
            if ready(self) {
                return Ok(true);
            }
            if let Some(status) = self.child.try_wait().context("cannot look at it")? {
                bail!("it ended with {status}; its log:\n{}", self.log());
            }
            Ok(false)
        })?;
        if !came {
            bail!("not within {BOUND:?}; its log:\n{}", self.log());
        }
        Ok(())
    }

    /// Ends it at once, with no chance to tidy up (SIGKILL).
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub fn kill(&mut self) -> anyhow::Result<()> {
        self.child.kill().context("cannot kill it")?;
        self.child.wait().context("cannot wait for it")?;
        Ok(())
    }

    /// Asks it to stop in its own time (SIGTERM), and waits for its end.
    ///
    /// # Errors
    /// When it has not ended after 30 seconds.
    pub fn stop(&mut self) -> anyhow::Result<ExitStatus> {
        self.process().stop_signal()?;
        self.ended()
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// When it has not ended after 30 seconds.
    pub fn ended(&mut self) -> anyhow::Result<ExitStatus> {
        self.ended_within(BOUND)
    }

    /// Waits for the end of a program that takes its time.
    ///
    /// # Errors
    /// When it has not ended after `bound`.
    pub fn ended_within(&mut self, bound: Duration) -> anyhow::Result<ExitStatus> {
        let mut status = None;
        until(bound, || {
            status = self.child.try_wait().context("cannot look at it")?;
            Ok(status.is_some())
        })?;
        status.with_context(|| format!("still there after {bound:?}; its log:\n{}", self.log()))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // A destructor has nobody to tell.
        self.kill().ok();
        if let Some(keeper) = self.keeper.take() {
            keeper.dismiss().ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_is_heard_and_stopped() {
        let script = "trap 'echo bye; exit 3' TERM; echo here; while :; do sleep 0.01; done";
        let mut program = Program::start(Command::new("sh").args(["-c", script])).unwrap();
        program.wait_until(|it| it.log().contains("here")).unwrap();
        assert_eq!(program.stop().unwrap().code(), Some(3));
        assert!(program.log().ends_with("bye\n"));
    }

    #[test]
    fn program_that_ends_too_early_shows_its_log() {
        let mut program = Program::start(Command::new("sh").args(["-c", "echo no disk"])).unwrap();
        let error = program.wait_until(|_| false).unwrap_err().to_string();
        assert!(error.contains("no disk"), "{error}");
    }
}
