//! How a program is started.

use super::{Error, Program};
use crate::reaper::{Group, ReaperHandle};
use rustix::process::Signal;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// How a program is to be started.
#[derive(Debug)]
pub struct ProgramBuilder<'a> {
    command: &'a mut Command,
    reaper: Option<ReaperHandle>,
    signal: Signal,
    log: Option<PathBuf>,
    stdio: Stdios,
    dir: Option<&'a Path>,
}

/// Where a program reads and writes. What it writes to stderr always goes to its log.
#[derive(Debug, Clone, Copy)]
enum Stdios {
    /// Nothing to read; stdout goes to the log, too.
    Logged,
    /// Nothing to read; stdout is discarded.
    Discarded,
    /// Both are ours, through pipes.
    Piped,
}

// === impl ProgramBuilder ===

impl<'a> ProgramBuilder<'a> {
    /// What it prints, on stdout and stderr, is its log.
    pub(super) fn new(command: &'a mut Command) -> Self {
        Self {
            command,
            reaper: None,
            signal: Signal::TERM,
            log: None,
            stdio: Stdios::Logged,
            dir: None,
        }
    }

    /// The last wish of this process, if it dies: the program gets this signal. SIGTERM by default, because a server
    /// with workers of its own must end them.
    #[must_use]
    pub fn last_signal(self, signal: Signal) -> Self {
        Self { signal, ..self }
    }

    /// Appends to this log, instead of one in a temporary directory.
    #[must_use]
    pub fn log(mut self, path: PathBuf) -> Self {
        self.log = Some(path);
        self
    }

    /// Removes this directory if this process dies.
    #[must_use]
    pub fn remove_dir(mut self, dir: &'a Path) -> Self {
        self.dir = Some(dir);
        self
    }

    /// Discards what it writes to stdout.
    #[must_use]
    pub fn discard_stdout(mut self) -> Self {
        self.stdio = Stdios::Discarded;
        self
    }

    /// Keeps stdin and stdout for [`Program::take_pipes`].
    #[must_use]
    pub fn piped(mut self) -> Self {
        self.stdio = Stdios::Piped;
        self
    }

    /// Lets this reaper watch over it, instead of the one of this process.
    #[must_use]
    pub fn reaper(mut self, reaper: &ReaperHandle) -> Self {
        self.reaper = Some(reaper.clone());
        self
    }

    /// Starts it.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(self) -> Result<Program, Error> {
        let program = self.command.get_program().to_string_lossy().into_owned();
        let failed = |source| Error::Start { program, source };
        self.spawn().map_err(failed)
    }

    fn spawn(self) -> io::Result<Program> {
        let (own_dir, log) = match self.log {
            Some(log) => (None, log),
            None => {
                let dir = tempfile::Builder::new()
                    .prefix("semel-program-")
                    .tempdir()?;
                let log = dir.path().join("log");
                (Some(dir), log)
            }
        };
        let file = File::options().create(true).append(true).open(&log)?;
        let (stdin, stdout) = match self.stdio {
            Stdios::Logged => (Stdio::null(), file.try_clone()?.into()),
            Stdios::Discarded => (Stdio::null(), Stdio::null()),
            Stdios::Piped => (Stdio::piped(), Stdio::piped()),
        };
        let reaper = self.reaper.map_or_else(ReaperHandle::shared, Ok)?;
        let command = Group::lead(self.command)?;
        let mut child = command.stdin(stdin).stdout(stdout).stderr(file).spawn()?;
        let dir = self.dir.or_else(|| own_dir.as_ref().map(TempDir::path));
        match reaper.watch(child.id(), self.signal, dir) {
            Ok(group) => Ok(Program {
                child,
                group,
                log,
                _dir: own_dir,
            }),
            Err(error) => {
                child.kill()?;
                child.wait()?;
                Err(error)
            }
        }
    }
}
