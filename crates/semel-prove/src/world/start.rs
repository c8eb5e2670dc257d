//! How a world comes to be: ports chosen, directories made, proxies opened, processes started.

use super::managed::ManagedProcess;
use super::{Context, SecondProcess, World};
use crate::error::Error;
use crate::options::Options;
use crate::scenario::check::Endpoint;
use crate::scenario::template::Variables;
use crate::scenario::{Process, Scenario};
use crate::world::address::address;
use crate::world::command::CommandRunner;
use crate::world::process::{ProcessSpec, free_port};
use crate::world::proxy::{Proxy, ProxyConfig};
use crate::world::reaper::Reaper;
use crate::world::recorder::Recorder;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Long enough to hear what a process says when nobody asks it anything.
const IDLE_HEARD: Duration = Duration::from_millis(200);

// === impl World ===

impl World {
    /// Ports are chosen and variables are known; nothing runs yet.
    pub(crate) fn plan(
        scenario: &Scenario,
        options: &Options,
        endpoints: Vec<Endpoint>,
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
        let urls: Vec<String> = endpoints
            .iter()
            .map(|endpoint| variables.expand(&endpoint.url))
            .collect();
        let mut environment = options.environment.clone();
        for (endpoint, url) in endpoints.iter().zip(&urls) {
            environment.insert(endpoint.env.clone(), url.clone());
        }
        let reaper = Reaper::start(home.path())?;
        Ok(Self {
            recorder: Arc::new(Recorder::new()),
            variables,
            urls,
            commands: CommandRunner::new(environment, here, reaper.handle.clone()),
            processes: Vec::new(),
            receiver,
            second: SecondProcess::Unasked,
            context: Context {
                endpoints,
                environment: options.environment.clone(),
            },
            reaper,
            home,
        })
    }

    /// Starts every process, in order, and listens to what they say by themselves.
    pub(crate) async fn start(&mut self, scenario: &Scenario) -> Result<(), Error> {
        for process in &scenario.processes {
            let port = self.variables.expand(&format!("{{port.{}}}", process.name));
            let port = port.parse().expect("plan() chose a port for every process");
            self.join(process, &process.name, port).await?;
        }
        self.recorder.listen();
        tokio::time::sleep(IDLE_HEARD).await;
        self.recorder.idle();
        Ok(())
    }

    /// A second process of the receiver, beside the first. None: it keeps things in a directory of its own, so
    /// two of them are not two of the same.
    pub(crate) async fn second(&mut self, scenario: &Scenario) -> Result<Option<usize>, Error> {
        match &self.second {
            SecondProcess::Unasked => {}
            SecondProcess::Runs(at) => return Ok(Some(*at)),
            SecondProcess::Fails(why) => return Err(Error::SecondProcess(why.clone())),
        }
        let Some(process) = scenario.processes.get(self.receiver) else {
            return Ok(None);
        };
        // What is started beside a target is a stand-in, not the handler.
        if scenario.deliver.target.is_some() {
            return Ok(None);
        }
        if process.uses_its_directory() || process.has_no_port() {
            return Ok(None);
        }
        let name = format!("{}-2", process.name);
        let port = free_port()?;
        self.recorder.idle();
        let at = self.processes.len();
        if let Err(why) = self.join(process, &name, port).await {
            self.processes.truncate(at);
            let why = why.to_string();
            self.second = SecondProcess::Fails(why.clone());
            return Err(Error::SecondProcess(why));
        }
        self.second = SecondProcess::Runs(at);
        Ok(Some(at))
    }

    async fn join(&mut self, process: &Process, name: &str, port: u16) -> Result<(), Error> {
        let at = self.processes.len();
        let dir = directory(self.home.path(), name)?;
        let variables = self
            .variables
            .clone()
            .with("port", port)
            .with("dir", dir.display());
        let mut environment = self.context.environment.clone();
        environment.insert("PORT".to_owned(), port.to_string());
        let mut proxies = Vec::new();
        for (dependency, endpoint) in self.context.endpoints.iter().enumerate() {
            let real = self.variables.expand(&endpoint.url);
            let seen = if endpoint.encrypted {
                real
            } else {
                let (url, proxy) = self.proxy(at, dependency, endpoint, &real).await?;
                proxies.push(proxy);
                url
            };
            environment.insert(endpoint.env.clone(), seen);
        }
        for (variable, value) in &process.env {
            environment.insert(variable.clone(), variables.expand(value));
        }
        let command = shlex::split(&process.spawn).unwrap_or_default();
        let spec = ProcessSpec {
            name: name.to_owned(),
            command: command.iter().map(|word| variables.expand(word)).collect(),
            environment,
            directory: self.commands.directory().to_owned(),
            port,
            ready: process.readiness(),
            log: self.home.path().join(format!("{name}.log")),
        };
        self.processes
            .push(ManagedProcess::new(spec, process.attack, proxies));
        self.launch(at).await
    }

    async fn proxy(
        &self,
        process: usize,
        dependency: usize,
        endpoint: &Endpoint,
        real: &str,
    ) -> Result<(String, Proxy), Error> {
        let (upstream, template) = address(real, endpoint)?;
        let config = ProxyConfig {
            process,
            dependency,
            lane: endpoint.env.clone(),
            protocol: endpoint.protocol,
            upstream,
        };
        let proxy = Proxy::open(config, Arc::clone(&self.recorder)).await?;
        Ok((template.at(proxy.port), proxy))
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

fn directory(home: &Path, name: &str) -> Result<PathBuf, Error> {
    let dir = home.join(name);
    std::fs::create_dir_all(&dir)
        .map_err(|why| Error::system("a process's directory cannot be made", why))?;
    Ok(dir)
}
