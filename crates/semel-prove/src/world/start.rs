//! How a world comes to be: ports chosen, directories made, proxies opened, processes started.

use super::World;
use super::clock::Clock;
use super::command::CommandRunner;
use super::connections::Connections;
use super::log::LogKeeper;
use super::process::ManagedProcess;
use super::proxy::{Proxy, ProxyConfig};
use super::recorder::Recorder;
use crate::error::Error;
use crate::options::Options;
use crate::scenario::endpoint::Endpoint;
use crate::scenario::template::Variables;
use crate::scenario::{Process, Scenario};
use semel_rig::{Mark, Reaper, adopt_orphans};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Long enough to hear what a process says when nobody asks it anything.
const IDLE_HEARD: Duration = Duration::from_millis(200);

/// What takes longer is not waited for if a clock can be put forward instead.
pub(crate) const WAITED_MAX: Duration = Duration::from_secs(20);

// === impl World ===

impl<'a> World<'a> {
    /// Ports are chosen and variables are known; nothing runs yet.
    pub(crate) fn plan(
        scenario: &'a Scenario,
        options: &Options,
        mut endpoints: Vec<Endpoint>,
    ) -> Result<Self, Error> {
        let home = tempfile::Builder::new()
            .prefix("semel-prove-")
            .tempdir()
            .map_err(|why| Error::system("no directory can be made for the processes", why))?;
        let here = std::path::absolute(&options.directory)
            .map_err(|why| Error::system("the scenario's directory cannot be named", why))?;
        let to = scenario.deliver.to.as_ref();
        let named = |to: &String| scenario.processes.iter().position(|it| it.name == *to);
        let receiver = to.and_then(named);
        let receiver = receiver.unwrap_or(scenario.processes.len().saturating_sub(1));
        let variables = variables(scenario, receiver, &here, home.path())?;
        for (path, text) in &scenario.files {
            std::fs::write(variables.expand(path), text)
                .map_err(|why| Error::system("a file of the scenario cannot be written", why))?;
        }
        let mut environment = options.environment.clone();
        for endpoint in &mut endpoints {
            endpoint.url = variables.expand(&endpoint.url);
            environment.insert(endpoint.env.clone(), endpoint.url.clone());
        }
        let moves = scenario.deliver.redeliver_after() > Some(WAITED_MAX);
        let clock = moves.then(|| Clock::new(home.path())).flatten();
        adopt_orphans().map_err(|why| Error::system("orphans cannot be adopted", why))?;
        let mark = Mark::new(format!("{}.", home.path().display()));
        let reaper = Reaper::start_with(home.path(), Some(&mark))
            .map_err(|why| Error::system("/bin/sh cannot be started", why))?;
        let (variable, value) = mark.variable();
        environment.insert(variable.to_owned(), value.to_owned());
        Ok(Self {
            scenario,
            recorder: Arc::<Recorder>::default(),
            variables,
            endpoints,
            commands: CommandRunner::new(environment, here, reaper.handle()),
            connections: Connections::default(),
            probed: BTreeMap::new(),
            environment: options.environment.clone(),
            processes: Vec::new(),
            receiver,
            clock,
            second: None,
            reaper,
            _logs: LogKeeper::start(home.path()),
            home,
        })
    }

    /// Starts every process, in order, and listens to what they say by themselves.
    pub(crate) async fn start(&mut self) -> Result<(), Error> {
        for process in &self.scenario.processes {
            let port = self.variables.expand(&format!("{{port.{}}}", process.name));
            let port = port.parse().expect("plan() chose a port for every process");
            self.join(process, &process.name, port).await?;
        }
        self.recorder.listen();
        tokio::time::sleep(IDLE_HEARD).await;
        self.recorder.idle();
        Ok(())
    }

    /// Where a second process of the receiver listens, beside the first. None: it keeps things in a directory of its
    /// own, so two of them are not two of the same.
    pub(crate) async fn second(&mut self) -> Result<Option<SocketAddr>, Error> {
        if let Some(second) = &self.second {
            let second = second.as_ref().map(|at| self.address(*at));
            return second.map_err(|why| Error::SecondProcess(why.clone()));
        }
        // What is started beside a target is a stand-in, not the handler.
        let here = self.scenario.deliver.target.is_none();
        let process = self.scenario.processes.get(self.receiver);
        let Some(process) = process.filter(|it| here && it.can_run_twice()) else {
            return Ok(None);
        };
        let name = format!("{}-2", process.name);
        let port = free_port()?;
        self.recorder.idle();
        let at = self.processes.len();
        if let Err(why) = self.join(process, &name, port).await {
            self.processes.truncate(at);
            let why = why.to_string();
            self.second = Some(Err(why.clone()));
            return Err(Error::SecondProcess(why));
        }
        self.second = Some(Ok(at));
        Ok(self.address(at))
    }

    async fn join(&mut self, process: &Process, name: &str, port: u16) -> Result<(), Error> {
        let at = self.processes.len();
        let dir = directory(self.home.path(), name)?;
        let variables = self.variables.clone();
        let variables = variables.with("port", port).with("dir", dir.display());
        let mut environment = self.environment.clone();
        environment.insert("PORT".to_owned(), port.to_string());
        let mut proxies = Vec::new();
        for (dependency, endpoint) in self.endpoints.iter().enumerate() {
            let url = if endpoint.encrypted {
                endpoint.url.clone()
            } else {
                let (url, proxy) = self.proxy((at, name), dependency, endpoint).await?;
                proxies.push(proxy);
                url
            };
            environment.insert(endpoint.env.clone(), url);
        }
        let clock = self.clock.iter().filter(|_| process.attack);
        environment.extend(clock.flat_map(Clock::variables));
        for (variable, value) in &process.env {
            environment.insert(variable.clone(), variables.expand(value));
        }
        let process = ManagedProcess {
            name: name.to_owned(),
            command: variables.expand_command(&process.spawn).unwrap_or_default(),
            environment,
            directory: self.commands.directory().to_owned(),
            port,
            ready: process.readiness(),
            log: self.home.path().join(format!("{name}.log")),
            attack: process.attack,
            proxies,
            mark: Mark::new(format!("{}.{name}.", self.home.path().display())),
            ip: Ipv4Addr::LOCALHOST.into(),
            program: None,
            paused: false,
        };
        self.processes.push(process);
        let reaper = self.reaper.handle();
        let started = self.process(at).start(&reaper).await;
        started.map_err(Error::ProcessStart)?;
        let address = self.process(at).address();
        self.recorder.set_name(address, name);
        Ok(())
    }

    async fn proxy(
        &self,
        (process, speaker): (usize, &str),
        dependency: usize,
        endpoint: &Endpoint,
    ) -> Result<(String, Proxy), Error> {
        let config = ProxyConfig {
            process,
            speaker: speaker.to_owned(),
            dependency,
            lane: endpoint.env.clone(),
            protocol: endpoint.protocol,
            upstream: endpoint.address()?,
        };
        let proxy = Proxy::open(config, Arc::clone(&self.recorder)).await?;
        Ok((endpoint.at(proxy.port), proxy))
    }
}

/// `{dir}` is the receiver's, for whoever has none of its own.
fn variables(
    scenario: &Scenario,
    receiver: usize,
    here: &Path,
    home: &Path,
) -> Result<Variables, Error> {
    let mut variables = Variables::default().with("here", here.display());
    for (at, process) in scenario.processes.iter().enumerate() {
        let name = &process.name;
        let dir = directory(home, name)?;
        variables = variables
            .with(format!("port.{name}"), free_port()?)
            .with(format!("dir.{name}"), dir.display());
        if at == receiver {
            variables = variables.with("dir", dir.display());
        }
    }
    Ok(variables)
}

fn free_port() -> Result<u16, Error> {
    semel_rig::free_port().map_err(|why| Error::system("no port of 127.0.0.1 is free", why))
}

fn directory(home: &Path, name: &str) -> Result<PathBuf, Error> {
    let dir = home.join(name);
    std::fs::create_dir_all(&dir)
        .map_err(|why| Error::system("a process's directory cannot be made", why))?;
    Ok(dir)
}
