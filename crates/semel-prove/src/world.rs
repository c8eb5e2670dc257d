//! One world: proxies opened, processes started, everything kept alive until the run ends.
//!
//! Deliveries never share an id, so trials do not disturb each other and one world serves them all; a process is
//! started again only after it was killed or ended by itself, as a supervisor would.

mod start;
pub(crate) mod process;
pub(crate) mod command;
pub(crate) mod proxy;
pub(crate) mod protocol;
pub(crate) mod recorder;
pub(crate) mod exchange;
pub(crate) mod sender;
pub(crate) mod probe;
mod before;
mod connections;
mod sqlite;

use crate::error::Error;
use crate::judge::timeline::What;
use crate::scenario::Scenario;
use crate::scenario::endpoint::Endpoint;
use crate::scenario::template::Variables;
use command::CommandRunner;
use connections::Connections;
use process::{ManagedProcess, READY_TIMEOUT};
use recorder::{Recorder, Release};
use semel_rig::Reaper;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::time::Instant;

/// A supervisor does not give up at once: a port or a lock may need a moment to be free.
const STARTS_MAX: usize = 3;
const STARTS_PAUSE: Duration = Duration::from_millis(500);

const REACHED_TIMEOUT: Duration = Duration::from_secs(2);

/// Everything that runs on behalf of one scenario.
#[derive(Debug)]
pub(crate) struct World<'a> {
    scenario: &'a Scenario,
    pub(crate) recorder: Arc<Recorder>,
    /// For everybody; a process has a `{port}` and a `{dir}` of its own besides.
    pub(crate) variables: Variables,
    /// Where the dependencies really are.
    pub(crate) endpoints: Vec<Endpoint>,
    /// Runs commands for which every dependency has its real address.
    pub(crate) commands: CommandRunner,
    connections: Connections,
    /// The caller's, which every process inherits.
    environment: BTreeMap<String, String>,
    processes: Vec<ManagedProcess>,
    pub(crate) receiver: usize,
    second: SecondProcess,
    reaper: Reaper,
    home: TempDir,
}

/// A second process of the receiver.
#[derive(Clone, Debug)]
enum SecondProcess {
    /// Nobody has asked for it yet.
    Unasked,
    Runs(usize),
    /// It does not start, and why not.
    Fails(String),
}

// === impl World ===

impl World<'_> {
    /// Ends a process as a crash does; bytes that are held never arrive.
    pub(crate) fn kill(&mut self, at: usize) {
        if let Some(process) = self.processes.get_mut(at) {
            if process.is_running() {
                self.recorder.note(&process.spec.name, What::Killed);
                process.kill();
            }
            self.recorder.release(Release::Drop);
        }
    }

    /// Starts whatever does not run, as a supervisor does.
    pub(crate) async fn restart_ended(&mut self) -> Result<(), Error> {
        for at in 0..self.processes.len() {
            let Some(process) = self.processes.get_mut(at) else {
                continue;
            };
            if process.reap() {
                self.recorder.note(&process.spec.name, What::Ended);
            }
            if !process.is_running() {
                self.restart(at).await?;
                self.note(at, What::Started);
            }
        }
        Ok(())
    }

    async fn start_process(&mut self, at: usize) -> Result<(), Error> {
        match self.processes.get_mut(at) {
            Some(process) => process.start(&self.reaper.handle()).await,
            None => Ok(()),
        }
    }

    /// Starts a process that has run before.
    async fn restart(&mut self, at: usize) -> Result<(), Error> {
        let began = Instant::now();
        let mut starts = 1;
        loop {
            let Err(why) = self.start_process(at).await else {
                return Ok(());
            };
            if starts == STARTS_MAX || began.elapsed() > READY_TIMEOUT {
                self.reach_dependencies().await?;
                // What is spared belongs to the world around the handler.
                return Err(if self.may_attack(at) {
                    why.on_restart()
                } else {
                    why
                });
            }
            starts += 1;
            tokio::time::sleep(STARTS_PAUSE).await;
        }
    }

    /// A process whose server is away is not to blame for anything.
    async fn reach_dependencies(&self) -> Result<(), Error> {
        for endpoint in &self.endpoints {
            let Ok((to, _)) = endpoint.address() else {
                continue;
            };
            let reached = tokio::time::timeout(REACHED_TIMEOUT, TcpStream::connect(&to)).await;
            if !matches!(reached, Ok(Ok(_))) {
                let what = format!("dependency `{}` cannot be reached", endpoint.env);
                return Err(Error::system(what, format!("nobody answers at {to}")));
            }
        }
        Ok(())
    }

    pub(crate) fn pause(&mut self, at: usize) {
        if self
            .processes
            .get_mut(at)
            .is_some_and(ManagedProcess::pause)
        {
            self.note(at, What::Paused);
        }
    }

    pub(crate) fn resume(&mut self, at: usize) {
        if self
            .processes
            .get_mut(at)
            .is_some_and(ManagedProcess::resume)
        {
            self.note(at, What::Resumed);
        }
    }

    /// The end of what the receiver printed.
    pub(crate) fn log(&self) -> String {
        let receiver = self.processes.get(self.receiver);
        receiver.map(|it| it.spec.log_tail()).unwrap_or_default()
    }

    pub(crate) fn address(&self, at: usize) -> Option<SocketAddr> {
        self.processes.get(at).map(ManagedProcess::address)
    }

    /// The processes that may be killed and paused; never the second one of the receiver.
    pub(crate) fn attackable(&self) -> Vec<usize> {
        let is_second = |at| matches!(self.second, SecondProcess::Runs(second) if second == at);
        let at = 0..self.processes.len();
        at.filter(|at| !is_second(*at) && self.may_attack(*at))
            .collect()
    }

    pub(crate) fn may_attack(&self, at: usize) -> bool {
        self.processes.get(at).is_some_and(|process| process.attack)
    }

    fn note(&self, at: usize, what: What) {
        if let Some(process) = self.processes.get(at) {
            self.recorder.note(&process.spec.name, what);
        }
    }
}

#[cfg(test)]
mod tests;
