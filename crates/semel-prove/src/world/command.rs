//! Runs the commands of a scenario: deliveries, probes, and what comes before. Nothing that they start outlives them.

use crate::printable::plain;
use semel_rig::{Group, ReaperHandle, Signal};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};

/// How long a server or a command may take to answer, unless a sender's deadline is at stake.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Nobody reads more than this of what a command prints.
const OUTPUT_BYTES_MAX: u64 = 16 << 20;

/// Where and in which environment commands run.
#[derive(Clone, Debug)]
pub(crate) struct CommandRunner {
    environment: BTreeMap<String, String>,
    directory: PathBuf,
    reaper: ReaperHandle,
}

/// How a command ended, and what it said.
#[derive(Debug)]
pub(crate) struct Completed {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    stderr: Vec<u8>,
}

// === impl CommandRunner ===

impl CommandRunner {
    pub(crate) fn new(
        environment: BTreeMap<String, String>,
        directory: PathBuf,
        reaper: ReaperHandle,
    ) -> Self {
        Self {
            environment,
            directory,
            reaper,
        }
    }

    /// The scenario's directory.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns when the command has ended; when it is given up, it ends at once. Either way its children end with it.
    pub(crate) async fn run(&self, command: &[impl AsRef<str>]) -> io::Result<Completed> {
        let empty = || io::Error::other("the command is empty");
        let (program, arguments) = command.split_first().ok_or_else(empty)?;
        let failed = |why| cannot_run(program.as_ref(), &why);
        let arguments = arguments.iter().map(AsRef::as_ref);
        let (mut child, group) = self.spawn(program.as_ref(), arguments).map_err(failed)?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let ended = async {
            let status = child.wait().await;
            // What it left behind would keep its output open.
            drop(group);
            status
        };
        let (status, stdout, stderr) = tokio::join!(ended, read_all(stdout), read_all(stderr));
        Ok(Completed {
            status: status.map_err(failed)?,
            stdout,
            stderr,
        })
    }

    fn spawn<'a>(
        &self,
        program: &str,
        arguments: impl Iterator<Item = &'a str>,
    ) -> io::Result<(Child, Group)> {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(&self.environment)
            .current_dir(&self.directory)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        Group::lead(command.as_std_mut())?;
        let child = command.spawn()?;
        let group = self
            .reaper
            .watch(child.id().unwrap_or_default(), Signal::KILL, None)?;
        Ok((child, group))
    }

    /// What a command prints that succeeds, soon.
    pub(crate) async fn output(&self, command: &[impl AsRef<str>]) -> io::Result<String> {
        let ended = with_timeout(self.run(command)).await;
        let ended = ended.map_err(io::Error::other)??;
        if !ended.status.success() {
            let program = command.first().map_or("", AsRef::as_ref);
            let said = plain(String::from_utf8_lossy(&ended.stderr).trim());
            let status = ended.status;
            let why = format!("`{program}` ended with {status}: {said}");
            return Err(io::Error::other(why));
        }
        Ok(String::from_utf8_lossy(&ended.stdout).into_owned())
    }
}

/// Waits for an answer, but not for ever.
pub(crate) async fn with_timeout<T>(work: impl Future<Output = T>) -> Result<T, String> {
    tokio::time::timeout(ANSWER_TIMEOUT, work)
        .await
        .map_err(|_| format!("no answer within {} s", ANSWER_TIMEOUT.as_secs()))
}

/// What it prints, up to a limit: more is read, so that it is not kept waiting, and forgotten.
async fn read_all(from: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let mut read = Vec::new();
    if let Some(from) = from {
        let mut first = from.take(OUTPUT_BYTES_MAX);
        // What was said before it broke off is all there is.
        first.read_to_end(&mut read).await.ok();
        let mut rest = first.into_inner();
        tokio::io::copy(&mut rest, &mut tokio::io::sink())
            .await
            .ok();
    }
    read
}

/// A program that is not there is told from one that fails.
fn cannot_run(program: &str, why: &io::Error) -> io::Error {
    let said = if why.kind() == io::ErrorKind::NotFound {
        format!("`{program}` was not found")
    } else {
        format!("`{program}` cannot be run: {why}")
    };
    io::Error::new(why.kind(), said)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use semel_rig::{Process, Reaper};

    /// A command runner in a directory of its own, and what must be held meanwhile.
    pub(crate) fn commands(path: &str) -> (CommandRunner, Reaper, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let reaper = Reaper::start().unwrap();
        let environment = BTreeMap::from([("PATH".to_owned(), path.to_owned())]);
        let commands = CommandRunner::new(environment, dir.path().to_owned(), reaper.handle());
        (commands, reaper, dir)
    }

    fn shell(script: &str) -> [&str; 3] {
        ["/bin/sh", "-c", script]
    }

    /// The grandchild that wrote its id down.
    async fn grandchild(dir: &Path) -> Process {
        loop {
            let written = std::fs::read_to_string(dir.join("id")).unwrap_or_default();
            if let Some(id) = written.strip_suffix('\n') {
                return Process::new(id.parse().unwrap()).unwrap();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn ends(process: &Process) -> bool {
        semel_rig::until(Duration::from_secs(5), || Ok(!process.is_alive())).unwrap()
    }

    #[tokio::test]
    async fn command_that_prints_without_end_is_read_up_to_a_limit() {
        let (commands, _reaper, _dir) = commands("/usr/bin:/bin");
        let bytes = OUTPUT_BYTES_MAX * 2;
        let line = format!("head -c {bytes} /dev/zero; echo done >&2");
        let ended = commands.run(&shell(&line)).await.unwrap();
        assert_eq!(ended.stdout.len() as u64, OUTPUT_BYTES_MAX);
        assert_eq!(ended.stderr, b"done\n");
    }

    #[tokio::test]
    async fn command_that_is_given_up_leaves_no_grandchild() {
        let (commands, _reaper, dir) = commands("/usr/bin:/bin");
        let line = shell("sleep 600 & echo $! > id; wait");
        let running = commands.run(&line);
        let process = tokio::select! {
            ended = running => panic!("it ended: {ended:?}"),
            process = grandchild(dir.path()) => process,
        };
        assert!(ends(&process));
    }

    #[tokio::test]
    async fn command_that_ends_is_not_kept_waiting_by_its_grandchild() {
        let (commands, _reaper, dir) = commands("/usr/bin:/bin");
        let line = shell("sleep 600 & echo $! > id; echo done");
        let stdout = tokio::time::timeout(Duration::from_secs(5), commands.output(&line)).await;
        assert_eq!(stdout.unwrap().unwrap(), "done\n");
        assert!(ends(&grandchild(dir.path()).await));
    }

    #[tokio::test]
    async fn commands_end_when_the_reaper_does() {
        let (commands, reaper, dir) = commands("/usr/bin:/bin");
        let line = shell("sleep 600 & echo $! > id; wait");
        let running = tokio::spawn(async move { commands.run(&line).await });
        let process = grandchild(dir.path()).await;
        drop(reaper);
        assert!(ends(&process));
        assert!(!running.await.unwrap().unwrap().status.success());
    }
}
