//! One world: proxies opened, processes started, everything kept alive until the run ends.
//!
//! Deliveries never share an id, so trials do not disturb each other and one world serves them all; a process is
//! started again only after it was killed or ended by itself, as a supervisor would.

mod start;
mod managed;
pub(crate) mod process;
pub(crate) mod reaper;
pub(crate) mod command;
pub(crate) mod address;
pub(crate) mod proxy;
pub(crate) mod protocol;
pub(crate) mod recorder;
pub(crate) mod exchange;
pub(crate) mod sender;
pub(crate) mod probe;
pub(crate) mod connections;
mod sqlite;
mod http_client;

use crate::error::Error;
use crate::judge::verdict::What;
use crate::scenario::check::Endpoint;
use crate::scenario::template::Variables;
use crate::world::address::address;
use crate::world::command::CommandRunner;
use crate::world::process::READY_BOUND;
use crate::world::reaper::Reaper;
use crate::world::recorder::{Recorder, Release};
use managed::ManagedProcess;
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

const REACHED_BOUND: Duration = Duration::from_secs(2);

/// Everything that runs on behalf of one scenario.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) recorder: Arc<Recorder>,
    /// What everybody may say; a process has a `{port}` and a `{dir}` of its own besides.
    variables: Variables,
    /// Where the dependencies really are.
    pub(crate) urls: Vec<String>,
    /// Runs commands for which every dependency has its real address.
    pub(crate) commands: CommandRunner,
    processes: Vec<ManagedProcess>,
    receiver: usize,
    second: SecondProcess,
    context: Context,
    reaper: Reaper,
    home: TempDir,
}

/// What every process is started from.
#[derive(Debug)]
struct Context {
    endpoints: Vec<Endpoint>,
    environment: BTreeMap<String, String>,
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

impl World {
    /// Ends a process as a crash does; bytes that are held never arrive.
    pub(crate) async fn kill(&mut self, at: usize) -> Result<(), Error> {
        let Some(process) = self.processes.get_mut(at) else {
            return Ok(());
        };
        if let Some(mut running) = process.running.take() {
            self.recorder.note(&process.spec.name, What::Killed);
            running.kill().await;
        }
        self.recorder.release(Release::Drop);
        Ok(())
    }

    /// Starts whatever does not run, as a supervisor does.
    pub(crate) async fn restart_ended(&mut self) -> Result<(), Error> {
        for at in 0..self.processes.len() {
            let Some(process) = self.processes.get_mut(at) else {
                continue;
            };
            if let Some(running) = &mut process.running {
                if !running.has_ended() {
                    continue;
                }
                // The rest of its group goes with it.
                running.kill().await;
                self.recorder.note(&process.spec.name, What::Ended);
            }
            process.running = None;
            self.restart(at).await?;
            self.recorder.note(&self.name(at), What::Started);
        }
        Ok(())
    }

    async fn launch(&mut self, at: usize) -> Result<(), Error> {
        match self.processes.get_mut(at) {
            Some(process) => process.launch(&self.reaper.handle).await,
            None => Ok(()),
        }
    }

    /// Starts a process that has run before.
    async fn restart(&mut self, at: usize) -> Result<(), Error> {
        let began = Instant::now();
        let mut starts = 1;
        loop {
            let Err(why) = self.launch(at).await else {
                return Ok(());
            };
            if starts == STARTS_MAX || began.elapsed() > READY_BOUND {
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
        for (endpoint, url) in self.context.endpoints.iter().zip(&self.urls) {
            let Ok((to, _)) = address(url, endpoint) else {
                continue;
            };
            let reached = tokio::time::timeout(REACHED_BOUND, TcpStream::connect(&to)).await;
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
            self.recorder.note(&self.name(at), What::Paused);
        }
    }

    pub(crate) fn resume(&mut self, at: usize) {
        if self
            .processes
            .get_mut(at)
            .is_some_and(ManagedProcess::resume)
        {
            self.recorder.note(&self.name(at), What::Resumed);
        }
    }

    /// The end of what the receiver printed.
    pub(crate) fn log(&self) -> String {
        self.processes
            .get(self.receiver)
            .map(|process| process.spec.log_tail())
            .unwrap_or_default()
    }

    pub(crate) fn receiver(&self) -> usize {
        self.receiver
    }

    pub(crate) fn name(&self, at: usize) -> String {
        self.processes
            .get(at)
            .map(|process| process.spec.name.clone())
            .unwrap_or_default()
    }

    pub(crate) fn address(&self, at: usize) -> Option<SocketAddr> {
        self.processes.get(at).map(ManagedProcess::address)
    }

    /// Those that may be killed and paused; not the second one.
    pub(crate) fn attackable(&self) -> Vec<usize> {
        let is_second = |at| matches!(self.second, SecondProcess::Runs(second) if second == at);
        let at = 0..self.processes.len();
        at.filter(|at| !is_second(*at) && self.may_attack(*at))
            .collect()
    }

    pub(crate) fn may_attack(&self, at: usize) -> bool {
        self.processes.get(at).is_some_and(|process| process.attack)
    }

    pub(crate) fn endpoints(&self) -> &[Endpoint] {
        &self.context.endpoints
    }

    /// The variables of deliveries, probes and `before`.
    pub(crate) fn variables(&self) -> Variables {
        self.variables.clone()
    }
}

#[cfg(test)]
mod tests;
