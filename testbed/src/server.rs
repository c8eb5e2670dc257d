//! What every server shares: a directory, a log, a process, and an end.

use std::fs::{self, File};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, bail};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::command::User;
use crate::keeper::Keeper;
use crate::process::Process;
use crate::wait;

/// How many lines of a server's log an error shows.
const LOG_LINES_SHOWN: usize = 20;

/// How many ports to try when another process takes the chosen one before the server does.
const PORTS_TRIED: u32 = 5;

/// One server program and the directory it lives in.
#[derive(Debug)]
pub(crate) struct Server {
    name: &'static str,
    at_once: Signal,
    running: Option<Running>,
    dir: TempDir,
}

#[derive(Debug)]
struct Running {
    child: Child,
    keeper: Keeper,
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
            dir,
        })
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        self.running.as_ref().map(|running| running.child.id())
    }

    /// Starts the program and waits until `ready`, given its process id, says that this very process answers.
    pub(crate) fn launch(
        &mut self,
        mut command: Command,
        mut ready: impl FnMut(u32) -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        if self.running.is_some() {
            bail!("{} already runs: stop it first", self.name);
        }
        let mut running = self.spawn(&mut command)?;
        let pid = running.child.id();
        let answered = wait::until(wait::BOUND, || {
            if let Some(status) = running.child.try_wait()? {
                bail!("it ended with {status}");
            }
            ready(pid)
        });
        self.running = Some(running);
        let problem = match answered {
            // PgBouncer only warns then, and goes on without the port.
            Ok(true) if self.port_was_taken() => "another process has its port".to_owned(),
            Ok(true) => return Ok(()),
            Ok(false) => format!("it did not answer within {:?}", wait::BOUND),
            Err(error) => format!("{error:#}"),
        };
        let log = self.log_tail();
        self.end_at_once()?;
        bail!(
            "{} did not start: {problem}; the end of its log:\n{log}",
            self.name
        )
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
        let result = running.end(signal);
        running.keeper.dismiss()?;
        result.with_context(|| format!("{} did not end in order", self.name))
    }

    /// Ends it the crash-like way.
    pub(crate) fn end_at_once(&mut self) -> anyhow::Result<()> {
        self.end(self.at_once)
    }

    /// In a process group of its own: Ctrl-C is for us, and we end the server in our own way.
    fn spawn(&self, command: &mut Command) -> anyhow::Result<Running> {
        let log = File::create(self.log_path()).context("cannot create the server's log")?;
        let mut child = command
            .current_dir(self.dir.path())
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(log.try_clone().context("cannot share the server's log")?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {}", self.name))?;
        match Keeper::watch(&child, self.at_once, self.dir.path()) {
            Ok(keeper) => Ok(Running { child, keeper }),
            Err(error) => {
                child.kill().context("cannot end the unkept server")?;
                child.wait().context("cannot wait for the unkept server")?;
                Err(error)
            }
        }
    }

    fn log_path(&self) -> PathBuf {
        self.dir.path().join("server.log")
    }

    fn log_tail(&self) -> String {
        let log = fs::read(self.log_path()).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        let skipped = lines.len().saturating_sub(LOG_LINES_SHOWN);
        lines
            .into_iter()
            .skip(skipped)
            .collect::<Vec<_>>()
            .join("\n")
    }

    fn port_was_taken(&self) -> bool {
        self.log_tail().to_lowercase().contains("already in use")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A destructor has nobody to tell; `end` has killed the process even where it reports an error.
        self.end_at_once().ok();
    }
}

// === impl Running ===

impl Running {
    fn end(&mut self, signal: Signal) -> anyhow::Result<()> {
        if self.child.try_wait()?.is_some() {
            return Ok(());
        }
        let process = Process::of(&self.child);
        process.send(signal)?;
        // A test may have paused it.
        process.resume()?;
        if wait::until(wait::BOUND, || Ok(self.child.try_wait()?.is_some()))? {
            return Ok(());
        }
        self.child.kill().context("cannot kill it")?;
        self.child.wait().context("cannot wait for it")?;
        bail!(
            "{signal:?} had no effect for {:?}, so it was killed",
            wait::BOUND
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::tool;

    #[test]
    fn server_that_does_not_start_shows_its_log() {
        let mut server = Server::new("sh", Signal::KILL, None).unwrap();
        let mut command = tool("/bin/sh");
        command.args(["-c", "echo no such disk >&2; exit 3"]);
        let error = server
            .launch(command, |_| Ok(false))
            .unwrap_err()
            .to_string();
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
                let mut command = tool("/bin/sh");
                command.args([
                    "-c",
                    if taken {
                        "echo Address already in use; exit 1"
                    } else {
                        "exec sleep 600"
                    },
                ]);
                server.launch(command, |_| Ok(!taken))
            })
            .unwrap();
        assert_eq!(ports.len(), 3);
        assert_eq!(ports.last(), Some(&port));
    }
}
