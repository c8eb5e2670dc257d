//! Runs the commands of a scenario: deliveries, probes, and what comes before. Nothing that they start outlives them.

use crate::printable::plain;
use crate::world::reaper::{Ear, Group};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

/// How long a server or a command may take to answer, unless a sender's deadline is at stake.
const ANSWER_BOUND: Duration = Duration::from_secs(10);

/// Where and in which environment commands run.
#[derive(Clone, Debug)]
pub(crate) struct Shell {
    environment: BTreeMap<String, String>,
    directory: PathBuf,
    ear: Ear,
}

/// How a command ended, and what it said.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) printed: Vec<u8>,
    complained: Vec<u8>,
}

/// Why a command has no result.
#[derive(Debug)]
pub(crate) enum NoResult {
    /// There is no such program.
    Missing(String),
    /// Anything else, in a sentence.
    Failed(String),
}

// === impl Shell ===

impl Shell {
    pub(crate) fn new(environment: BTreeMap<String, String>, directory: PathBuf, ear: Ear) -> Self {
        Self {
            environment,
            directory,
            ear,
        }
    }

    /// The scenario's directory.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns when the command has ended; when it is given up, it ends at once. Either way its children end with it.
    pub(crate) async fn run(&self, words: &[String]) -> Result<Ended, NoResult> {
        let (program, arguments) = words
            .split_first()
            .ok_or_else(|| NoResult::Failed("the command is empty".to_owned()))?;
        let mut child = Command::new(program)
            .args(arguments)
            .env_clear()
            .envs(&self.environment)
            .current_dir(&self.directory)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|why| unrun(program, &why))?;
        let group = Group::of(child.id(), &self.ear);
        let group = group.map_err(|why| NoResult::Failed(why.to_string()))?;
        let said = (child.stdout.take(), child.stderr.take());
        let ended = async {
            let status = child.wait().await;
            // What it left behind would keep its output open.
            drop(group);
            status
        };
        let (status, printed, complained) = tokio::join!(ended, all(said.0), all(said.1));
        Ok(Ended {
            status: status.map_err(|why| unrun(program, &why))?,
            printed,
            complained,
        })
    }

    /// What a command prints that succeeds, soon.
    pub(crate) async fn ask(&self, words: &[String]) -> Result<String, NoResult> {
        let ended = bounded(self.run(words)).await.map_err(NoResult::Failed)??;
        if !ended.status.success() {
            let program = words.first().map_or("", String::as_str);
            let said = plain(String::from_utf8_lossy(&ended.complained).trim());
            let status = ended.status;
            return Err(NoResult::Failed(format!(
                "`{program}` ended with {status}: {said}"
            )));
        }
        Ok(String::from_utf8_lossy(&ended.printed).into_owned())
    }
}

// === impl NoResult ===

impl std::fmt::Display for NoResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing(program) => write!(f, "`{program}` was not found"),
            Self::Failed(why) => f.write_str(why),
        }
    }
}

/// What an answer is waited for.
pub(crate) async fn bounded<T>(work: impl Future<Output = T>) -> Result<T, String> {
    tokio::time::timeout(ANSWER_BOUND, work)
        .await
        .map_err(|_| format!("no answer within {} s", ANSWER_BOUND.as_secs()))
}

async fn all(from: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let mut read = Vec::new();
    if let Some(mut from) = from {
        // What was said before it broke off is all there is.
        from.read_to_end(&mut read).await.ok();
    }
    read
}

fn unrun(program: &str, why: &std::io::Error) -> NoResult {
    if why.kind() == std::io::ErrorKind::NotFound {
        return NoResult::Missing(program.to_owned());
    }
    NoResult::Failed(format!("`{program}` cannot be run: {why}"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::world::reaper::Keeper;
    use testbed::Process;

    /// A shell in a directory of its own, and what must be held meanwhile.
    pub(crate) fn shell(path: &str) -> (Shell, Keeper, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let keeper = Keeper::start(&dir.path().join("kept")).unwrap();
        let environment = BTreeMap::from([("PATH".to_owned(), path.to_owned())]);
        let shell = Shell::new(environment, dir.path().to_owned(), keeper.ear.clone());
        (shell, keeper, dir)
    }

    fn words(script: &str) -> Vec<String> {
        ["/bin/sh", "-c", script].map(str::to_owned).to_vec()
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
        testbed::until(Duration::from_secs(5), || Ok(!process.is_alive())).unwrap()
    }

    #[tokio::test]
    async fn command_that_is_given_up_leaves_no_grandchild() {
        let (shell, _keeper, dir) = shell("/usr/bin:/bin");
        let line = words("sleep 600 & echo $! > id; wait");
        let running = shell.run(&line);
        let process = tokio::select! {
            ended = running => panic!("it ended: {ended:?}"),
            process = grandchild(dir.path()) => process,
        };
        assert!(ends(&process));
    }

    #[tokio::test]
    async fn command_that_ends_is_not_kept_waiting_by_its_grandchild() {
        let (shell, _keeper, dir) = shell("/usr/bin:/bin");
        let line = words("sleep 600 & echo $! > id; echo done");
        let printed = tokio::time::timeout(Duration::from_secs(5), shell.ask(&line)).await;
        assert_eq!(printed.unwrap().unwrap(), "done\n");
        assert!(ends(&grandchild(dir.path()).await));
    }

    #[tokio::test]
    async fn commands_end_when_the_keeper_does() {
        let (shell, keeper, dir) = shell("/usr/bin:/bin");
        let line = words("sleep 600 & echo $! > id; wait");
        let running = tokio::spawn(async move { shell.run(&line).await });
        let process = grandchild(dir.path()).await;
        drop(keeper);
        assert!(ends(&process));
        assert!(!running.await.unwrap().unwrap().status.success());
    }
}
