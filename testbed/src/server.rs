//! What every server shares: a directory, a log, a process, and an end.

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use semel_rig::{Program, Signal};
use tempfile::TempDir;

use crate::clock::Clock;
use crate::command::User;

/// How many ports to try when another process takes the chosen one before the server does.
const PORTS_TRIED: u32 = 5;

/// One server program and the directory it lives in.
#[derive(Debug)]
pub(crate) struct Server {
    name: &'static str,
    at_once: Signal,
    running: Option<Program>,
    clock: Option<Clock>,
    dir: TempDir,
}

// === impl Server ===

impl Server {
    /// A directory for a server that `at_once` ends without tidying up, and without leaving children behind.
    pub(crate) fn new(
        name: &'static str,
        at_once: Signal,
        user: Option<User>,
    ) -> anyhow::Result<Self> {
        let dir = tempfile::Builder::new()
            .prefix(&format!("semel-{name}-"))
            .tempdir()
            .with_context(|| format!("cannot make a directory for {name}"))?;
        if let Some(user) = user {
            chown(dir.path(), Some(user.uid), Some(user.gid))
                .with_context(|| format!("cannot give {} away", dir.path().display()))?;
        }
        Ok(Self {
            name,
            at_once,
            running: None,
            clock: None,
            dir,
        })
    }

    /// From its next launch on, it lives by a clock that [`Server::jump`] sets, if it `jumps`.
    pub(crate) fn set_clock(&mut self, jumps: bool) -> anyhow::Result<()> {
        self.clock = jumps.then(|| Clock::new(self.dir())).transpose()?;
        Ok(())
    }

    /// Sets its clock so many seconds off the machine's.
    pub(crate) fn jump(&self, seconds: i64) -> anyhow::Result<()> {
        let clock = self.clock.as_ref();
        clock
            .context("this server was started without a clock that jumps")?
            .jump(seconds)
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        self.running.as_ref().map(Program::id)
    }

    /// Starts the program and waits until `ready`, given its process id, says that this very process answers.
    pub(crate) fn launch(
        &mut self,
        mut command: Command,
        mut ready: impl FnMut(u32) -> bool,
    ) -> anyhow::Result<()> {
        if self.running.is_some() {
            bail!("{} already runs: stop it first", self.name);
        }
        if let Some(clock) = &self.clock {
            clock.give(&mut command);
        }
        // What the last one wrote says nothing about this one.
        fs::remove_file(self.log()).ok();
        let mut program = Program::builder(command.current_dir(self.dir.path()))
            .log(self.log())
            .remove_dir(self.dir.path())
            .last_signal(self.at_once)
            .start()?;
        let answered = program.wait_until(|it| ready(it.id()));
        self.running = Some(program);
        let problem = match answered {
            // PgBouncer only warns then, and goes on without the port.
            Ok(()) if self.port_was_taken() => "another process has its port".to_owned(),
            Ok(()) => return Ok(()),
            Err(error) => error.to_string(),
        };
        self.end_at_once()?;
        bail!("{} did not start: {problem}", self.name)
    }

    /// Launches on a fresh port; on another one if the first was taken meanwhile.
    pub(crate) fn launch_on_free_port(
        &mut self,
        mut launch: impl FnMut(&mut Self, u16) -> anyhow::Result<()>,
    ) -> anyhow::Result<u16> {
        let mut tries_left = PORTS_TRIED;
        loop {
            tries_left -= 1;
            let port = crate::free_port()?;
            match launch(self, port) {
                Ok(()) => return Ok(port),
                Err(_) if tries_left > 0 && self.port_was_taken() => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends `signal` and waits for the end; nothing to do when it does not run.
    pub(crate) fn end(&mut self, signal: Signal) -> anyhow::Result<()> {
        let Some(mut running) = self.running.take() else {
            return Ok(());
        };
        let ended = running.end_with(signal);
        ended.with_context(|| format!("{} did not end in order", self.name))?;
        Ok(())
    }

    /// Ends it the crash-like way.
    pub(crate) fn end_at_once(&mut self) -> anyhow::Result<()> {
        self.end(self.at_once)
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.dir.path().join("server.log")
    }

    fn port_was_taken(&self) -> bool {
        let log = fs::read(self.log()).unwrap_or_default();
        let log = String::from_utf8_lossy(&log).to_lowercase();
        log.contains("already in use")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A destructor has nobody to tell; the process is killed even where `end` reports an error.
        self.end_at_once().ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::tool;

    fn shell(script: &str) -> Command {
        let mut command = tool("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn server_that_does_not_start_shows_its_log() {
        let mut server = Server::new("sh", Signal::KILL, None).unwrap();
        let failing = shell("echo no such disk >&2; exit 3");
        let error = server.launch(failing, |_| false).unwrap_err().to_string();
        assert!(error.contains("exit status: 3"), "{error}");
        assert!(error.contains("no such disk"), "{error}");
        assert_eq!(server.pid(), None);
    }

    #[test]
    fn taken_port_is_left_for_another() {
        let mut server = Server::new("sh", Signal::KILL, None).unwrap();
        let mut ports = Vec::new();
        let port = server
            .launch_on_free_port(|server, port| {
                ports.push(port);
                let taken = ports.len() < 3;
                let command = shell(if taken {
                    "echo Address already in use; exit 1"
                } else {
                    "exec sleep 600"
                });
                server.launch(command, |_| !taken)
            })
            .unwrap();
        assert_eq!(ports.len(), 3);
        assert_eq!(ports.last(), Some(&port));
    }
}
