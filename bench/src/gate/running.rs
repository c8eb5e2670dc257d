//! Programs that a measurement starts. Each has a directory of its own; none outlives this process.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use rustix::process::Signal;
use tempfile::TempDir;
use testbed::{Keeper, Process};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

/// A program that answers on a port.
#[derive(Debug)]
pub(crate) struct Running {
    name: &'static str,
    child: Child,
    keeper: Option<Keeper>,
    ready_after: Duration,
    dir: TempDir,
}

/// Where a program says that it is ready: it answers 200 there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ready {
    pub(crate) port: u16,
    pub(crate) path: &'static str,
}

/// How long a program may take to be ready, or to end.
const BOUND: Duration = Duration::from_secs(30);

/// How often it is looked at: a start is measured by it.
const PAUSE: Duration = Duration::from_millis(1);

/// How long one question may take.
const ANSWER_BOUND: Duration = Duration::from_secs(5);

/// The unit of `/proc/<pid>/stat`, on every Linux that runs here.
const TICKS_PER_SECOND: u64 = 100;

const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";

// === impl Running ===

impl Running {
    /// Starts a program in its directory, without our environment, and waits until it is ready. What it says goes to
    /// `/dev/null`, what it complains of to a file.
    pub(crate) async fn start(
        name: &'static str,
        dir: TempDir,
        command: &mut Command,
        ready: Ready,
    ) -> anyhow::Result<Self> {
        let complaints = File::create(complaints(dir.path())).context("cannot create a file")?;
        let began = Instant::now();
        let child = command
            .env("PATH", PATH)
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(complaints)
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        let mut running = Self {
            name,
            child,
            keeper: None,
            ready_after: Duration::ZERO,
            dir,
        };
        running.wait_until(ready, began).await?;
        running.ready_after = began.elapsed();
        let keeper = Keeper::watch(&running.child, Signal::TERM, running.dir.path())?;
        running.keeper = Some(keeper);
        Ok(running)
    }

    /// From the start of the process to its first answer that it is ready.
    pub(crate) fn ready_after(&self) -> Duration {
        self.ready_after
    }

    /// How much memory the process has for itself now, and has had at most.
    pub(crate) fn resident(&self) -> anyhow::Result<Resident> {
        let path = format!("/proc/{}/status", self.child.id());
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
        let path = format!("/proc/{}/stat", self.child.id());
        let stat = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        let ticks = ticks(&stat).with_context(|| format!("{path} is not as it was"))?;
        Ok(Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND))
    }

    async fn wait_until(&mut self, ready: Ready, began: Instant) -> anyhow::Result<()> {
        while !answers(ready).await {
            let ended = self.child.try_wait().context("cannot look at a child")?;
            if ended.is_some() || began.elapsed() > BOUND {
                bail!(
                    "{} is not ready ({}): {}",
                    self.name,
                    ended.map_or_else(|| format!("{BOUND:?} passed"), |status| status.to_string()),
                    fs::read_to_string(complaints(self.dir.path())).unwrap_or_default()
                );
            }
            sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Ends it in its own time, and removes nothing but the process: the directory goes with the value.
    #[allow(
        clippy::disallowed_methods,
        reason = "a destructor cannot await, and another process gives no signal to wait for"
    )]
    fn end(&mut self) -> anyhow::Result<()> {
        if self.child.try_wait()?.is_none() {
            Process::of(&self.child).stop_signal()?;
        }
        let began = std::time::Instant::now();
        while self.child.try_wait()?.is_none() && began.elapsed() < BOUND {
            std::thread::sleep(PAUSE);
        }
        self.child.kill()?;
        self.child.wait()?;
        self.keeper.take().map_or(Ok(()), Keeper::dismiss)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            eprintln!("{} did not end in order: {error:#}", self.name);
        }
    }
}

/// What a process holds in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resident {
    pub(crate) now: u64,
    pub(crate) most: u64,
}

fn complaints(dir: &Path) -> std::path::PathBuf {
    dir.join("complaints")
}

/// The number after a name of `/proc/<pid>/status`.
fn kib(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
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

async fn answers(ready: Ready) -> bool {
    ask(ready).await.is_ok_and(|(status, _)| status == 200)
}

/// Asks a program something; its status and body.
pub(crate) async fn ask(Ready { port, path }: Ready) -> anyhow::Result<(u16, String)> {
    let asking = async {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        let (head, body) = answer
            .split_once("\r\n\r\n")
            .context("an answer has a head")?;
        let status = head.split(' ').nth(1).context("an answer has a status")?;
        Ok((status.parse()?, body.to_owned()))
    };
    timeout(ANSWER_BOUND, asking).await.context("no answer")?
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
        let nowhere = Ready {
            port: testbed::free_port().unwrap(),
            path: "/",
        };
        let started = Running::start("sh", dir, &mut command, nowhere).await;
        let error = started.unwrap_err().to_string();
        assert!(error.contains("exit status: 3"), "{error}");
        assert!(error.contains("no such disk"), "{error}");
    }
}
