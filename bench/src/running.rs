//! Programs that a measurement starts. Each has a directory of its own; none outlives this process.

use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};
use semel_rig::http::Request;
use semel_rig::{BOUND, Program};
use tempfile::TempDir;
use tokio::time::Instant;

use crate::machine::kib;

/// A program that answers on a port.
#[derive(Debug)]
pub(crate) struct Running {
    /// Where it is asked for what it does.
    pub(crate) port: u16,
    /// From the start of the process to its first answer that it is ready.
    pub(crate) ready_after: Duration,
    name: &'static str,
    program: Program,
    _dir: TempDir,
}

/// Where a program says that it is ready: it answers 200 there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ready {
    pub(crate) port: u16,
    pub(crate) path: &'static str,
}

/// How long one question may take.
const ANSWER_BOUND: Duration = Duration::from_secs(5);

/// The unit of `/proc/<pid>/stat`, on every Linux that runs here.
const TICKS_PER_SECOND: u64 = 100;

const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";

// === impl Running ===

impl Running {
    /// Starts a program for this port in its directory, without our environment, and waits until it is ready. Only its
    /// stderr is kept, for errors.
    pub(crate) async fn start(
        name: &'static str,
        dir: TempDir,
        command: &mut Command,
        port: u16,
        ready: Ready,
    ) -> anyhow::Result<Self> {
        let command = command.env("PATH", PATH).current_dir(dir.path());
        let began = Instant::now();
        let mut program = Program::builder(command)
            .log(dir.path().join("stderr"))
            .discard_stdout()
            .remove_dir(dir.path())
            .start()?;
        let answers = async || ask(ready).await.is_ok();
        let waited = program.wait_ready(BOUND, answers).await;
        waited.with_context(|| format!("{name} is not ready"))?;
        Ok(Self {
            port,
            ready_after: began.elapsed(),
            name,
            program,
            _dir: dir,
        })
    }

    /// How much memory the process has for itself now, and has had at most.
    pub(crate) fn resident(&self) -> anyhow::Result<Resident> {
        let path = format!("/proc/{}/status", self.program.id());
        let status = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        let bytes = |name: &str| {
            kib(&status, name)
                .map(|kib| kib * 1024)
                .with_context(|| format!("{path} has no {name}"))
        };
        Ok(Resident {
            now: bytes("VmRSS:")?,
            most: bytes("VmHWM:")?,
        })
    }

    /// How much of the processors' time the process has taken so far.
    pub(crate) fn processor_time(&self) -> anyhow::Result<Duration> {
        let path = format!("/proc/{}/stat", self.program.id());
        let stat = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        let ticks = ticks(&stat).with_context(|| format!("{path} is not as it was"))?;
        Ok(Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Err(error) = self.program.stop() {
            eprintln!("{} did not end in order: {error}", self.name);
        }
    }
}

/// What a process holds in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resident {
    pub(crate) now: u64,
    pub(crate) most: u64,
}

/// Its own time and the kernel's for it: the 14th and 15th of `/proc/<pid>/stat`, counted after the name, which may
/// hold anything.
fn ticks(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace().skip(11);
    let own: u64 = fields.next()?.parse().ok()?;
    let kernel: u64 = fields.next()?.parse().ok()?;
    Some(own + kernel)
}

/// Asks a program something; the body of its answer.
pub(crate) async fn ask(Ready { port, path }: Ready) -> anyhow::Result<String> {
    let answer = Request::get(path).within(ANSWER_BOUND).send(port).await?;
    if answer.status != 200 {
        bail!("{path} answered {}", answer.status);
    }
    Ok(answer.body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_by_its_name() {
        let status = "Name:\tsemel\nVmHWM:\t   20480 kB\nVmRSS:\t   10240 kB\n";
        assert_eq!(kib(status, "VmRSS:"), Some(10_240));
        assert_eq!(kib(status, "VmSwap:"), None);
    }

    #[test]
    fn time_is_counted_after_the_name() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194560 9 0 0 0 31 11 0 0 20 0 3 0 100 1 2";
        assert_eq!(ticks(stat), Some(42));
    }

    #[tokio::test]
    async fn program_that_ends_at_once_is_quoted() {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo no such disk >&2; exit 3"]);
        let port = testbed::free_port().unwrap();
        let nowhere = Ready { port, path: "/" };
        let started = Running::start("sh", dir, &mut command, port, nowhere).await;
        let error = format!("{:#}", started.unwrap_err());
        assert!(error.contains("exit status: 3"), "{error}");
        assert!(error.contains("no such disk"), "{error}");
    }
}
