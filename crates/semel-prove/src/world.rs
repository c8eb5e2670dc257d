//! One world: proxies opened, processes started, everything kept alive until the run ends.
//!
//! Deliveries never share an id, so trials do not disturb each other and one world serves them all; a process is
//! started again only after it was killed or ended by itself, as a supervisor would.

pub(crate) mod start;
pub(crate) mod process;
pub(crate) mod command;
pub(crate) mod proxy;
pub(crate) mod protocol;
pub(crate) mod recorder;
pub(crate) mod exchange;
pub(crate) mod sender;
pub(crate) mod probe;
mod before;
pub(crate) mod clock;
mod connections;
mod log;
mod sqlite;

use crate::error::Error;
use crate::judge::timeline::What;
use crate::scenario::Scenario;
use crate::scenario::endpoint::Endpoint;
use crate::scenario::template::Variables;
use clock::Clock;
use command::CommandRunner;
use connections::Connections;
use exchange::Exchange;
use log::LogKeeper;
use probe::Probed;
use process::{ManagedProcess, READY_TIMEOUT};
use protocol::Protocol;
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
    /// What each probe said last, and whether it has ever said anything else.
    probed: BTreeMap<String, Probed>,
    /// The caller's, which every process inherits.
    environment: BTreeMap<String, String>,
    processes: Vec<ManagedProcess>,
    pub(crate) receiver: usize,
    /// By which the processes live that may be attacked, where somebody wants to put it forward.
    clock: Option<Clock>,
    /// A second process of the receiver, or why it does not start; none before somebody has asked for it.
    second: Option<Result<usize, String>>,
    reaper: Reaper,
    _logs: LogKeeper,
    home: TempDir,
}

// === impl World ===

impl World<'_> {
    /// Ends a process as a crash does; bytes that are held never arrive.
    pub(crate) fn kill(&mut self, at: usize) {
        if self.process(at).is_running() {
            self.note(at, What::Killed);
            self.process(at).kill();
        }
        self.recorder.release(Release::Drop);
    }

    /// Starts whatever does not run, as a supervisor does.
    pub(crate) async fn restart_ended(&mut self) -> Result<(), Error> {
        for at in 0..self.processes.len() {
            if self.process(at).reap() {
                self.note(at, What::Ended);
            }
            if !self.process(at).is_running() {
                self.restart(at).await?;
                self.note(at, What::Started);
            }
        }
        Ok(())
    }

    /// Starts a process that has run before.
    async fn restart(&mut self, at: usize) -> Result<(), Error> {
        let began = Instant::now();
        let reaper = self.reaper.handle();
        let mut starts = 1;
        while let Err(why) = self.process(at).start(&reaper).await {
            if starts == STARTS_MAX || began.elapsed() > READY_TIMEOUT {
                self.reach_dependencies().await?;
                // What is spared belongs to the world around the handler.
                return Err(if self.may_attack(at) {
                    Error::ProcessRestart(why)
                } else {
                    Error::ProcessStart(why)
                });
            }
            starts += 1;
            tokio::time::sleep(STARTS_PAUSE).await;
        }
        Ok(())
    }

    /// A process whose server is away is not to blame for anything.
    async fn reach_dependencies(&self) -> Result<(), Error> {
        for endpoint in &self.endpoints {
            let Ok(to) = endpoint.address() else {
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
        if self.process(at).pause() {
            self.note(at, What::Paused);
        }
    }

    pub(crate) fn resume(&mut self, at: usize) {
        if self.process(at).paused {
            // What it says when it goes on comes after this.
            self.note(at, What::Resumed);
            self.process(at).resume();
        }
    }

    /// Whether the clock of the processes was put forward.
    pub(crate) fn put_clock_forward(&self, ahead: Duration) -> bool {
        let clock = self.clock.as_ref();
        clock.is_some_and(|clock| clock.put_forward(ahead).is_ok())
    }

    /// The end of what the receiver printed.
    pub(crate) fn log(&self) -> String {
        let receiver = self.processes.get(self.receiver);
        receiver.map(ManagedProcess::log_tail).unwrap_or_default()
    }

    pub(crate) fn address(&self, at: usize) -> Option<SocketAddr> {
        self.processes.get(at).map(ManagedProcess::address)
    }

    /// The processes that may be killed and paused; never the second one of the receiver.
    pub(crate) fn attackable(&self) -> Vec<usize> {
        let is_second = |at| self.second == Some(Ok(at));
        let at = 0..self.processes.len();
        at.filter(|at| !is_second(*at) && self.may_attack(*at))
            .collect()
    }

    pub(crate) fn may_attack(&self, at: usize) -> bool {
        self.processes.get(at).is_some_and(|process| process.attack)
    }

    /// Whether it belongs to a call of another service, which cannot be looked up or undone as a statement can.
    pub(crate) fn is_call(&self, exchange: &Exchange) -> bool {
        let endpoint = self.endpoints.get(exchange.boundary.signature.dependency);
        endpoint.is_some_and(|endpoint| endpoint.protocol == Protocol::Http)
    }

    fn note(&mut self, at: usize, what: What) {
        let name = self.process(at).name.clone();
        self.recorder.note(&name, what);
    }

    fn process(&mut self, at: usize) -> &mut ManagedProcess {
        let process = self.processes.get_mut(at);
        process.expect("a place among the processes comes from this world")
    }
}

#[cfg(test)]
mod tests;
