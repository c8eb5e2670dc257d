//! One world: taps opened, processes started, everything kept alive until the run ends.
//!
//! Deliveries never share an id, so trials do not disturb each other and one world serves them all; a process is
//! started again only after it was killed or ended by itself, as a supervisor would.

use crate::address::address;
use crate::cannot::CannotJudge;
use crate::check::Place;
use crate::keeper::Keeper;
use crate::options::Options;
use crate::process::{Recipe, Running, free_port};
use crate::scenario::{Process, Scenario};
use crate::tap::{Line, Tap};
use crate::verdict::What;
use crate::wire::{Pass, Wire};
use crate::words::Words;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// Long enough to hear what a process says when nobody asks it anything.
const IDLE_HEARD: Duration = Duration::from_millis(200);

/// Everything that runs on behalf of one scenario.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) wire: Arc<Wire>,
    pub(crate) words: Words,
    /// Where the dependencies really are.
    pub(crate) urls: Vec<String>,
    members: Vec<Member>,
    receiver: usize,
    first_of_second: Option<usize>,
    context: Context,
    keeper: Keeper,
    home: TempDir,
}

/// What every process is started from.
#[derive(Debug)]
struct Context {
    places: Vec<Place>,
    environment: BTreeMap<String, String>,
    directory: std::path::PathBuf,
}

/// A process of this world.
#[derive(Debug)]
struct Member {
    recipe: Recipe,
    attack: bool,
    running: Option<Running>,
    paused: bool,
    /// They listen as long as they are kept.
    #[expect(dead_code, reason = "a tap closes when it is dropped")]
    taps: Vec<Tap>,
}

// === impl World ===

impl World {
    /// Ports are chosen and words are known; nothing runs yet.
    pub(crate) fn plan(
        scenario: &Scenario,
        options: &Options,
        places: Vec<Place>,
    ) -> Result<Self, CannotJudge> {
        let home = tempfile::Builder::new()
            .prefix("semel-prove-")
            .tempdir()
            .map_err(|why| {
                CannotJudge::machine("no directory can be made for the processes", why)
            })?;
        let here = std::path::absolute(&options.directory)
            .map_err(|why| CannotJudge::machine("the scenario's directory cannot be named", why))?;
        let mut words = Words::default().with("here", here.display());
        for process in &scenario.processes {
            words = words.with(format!("port.{}", process.name), free_port()?);
        }
        let urls = places.iter().map(|place| words.fill(&place.url)).collect();
        let receiver = match &scenario.deliver.to {
            Some(to) => scenario
                .processes
                .iter()
                .position(|process| process.name == *to),
            None => None,
        };
        Ok(Self {
            wire: Arc::new(Wire::new()),
            words,
            urls,
            members: Vec::new(),
            receiver: receiver.unwrap_or(scenario.processes.len().saturating_sub(1)),
            first_of_second: None,
            context: Context {
                places,
                environment: options.environment.clone(),
                directory: here,
            },
            keeper: Keeper::start(home.path())?,
            home,
        })
    }

    /// Starts every process, in order, and listens to what they say by themselves.
    pub(crate) async fn start(&mut self, scenario: &Scenario) -> Result<(), CannotJudge> {
        for process in &scenario.processes {
            let port = self.words.fill(&format!("{{port.{}}}", process.name));
            let port = port.parse().expect("plan() chose a port for every process");
            self.join(process, &process.name, port).await?;
        }
        self.wire.listen();
        tokio::time::sleep(IDLE_HEARD).await;
        self.wire.idle();
        Ok(())
    }

    /// A second process of the receiver, beside the first. None: it keeps things in a directory of its own, so
    /// two of them are not two of the same.
    pub(crate) async fn second(
        &mut self,
        scenario: &Scenario,
    ) -> Result<Option<usize>, CannotJudge> {
        if self.first_of_second.is_some() {
            return Ok(self.first_of_second);
        }
        let Some(process) = scenario.processes.get(self.receiver) else {
            return Ok(None);
        };
        if process.uses_its_directory() || process.has_no_port() {
            return Ok(None);
        }
        let name = format!("{}-2", process.name);
        let port = free_port()?;
        self.wire.idle();
        self.join(process, &name, port).await?;
        self.first_of_second = Some(self.members.len() - 1);
        Ok(self.first_of_second)
    }

    async fn join(&mut self, process: &Process, name: &str, port: u16) -> Result<(), CannotJudge> {
        let at = self.members.len();
        let dir = self.home.path().join(name);
        std::fs::create_dir_all(&dir)
            .map_err(|why| CannotJudge::machine("a process's directory cannot be made", why))?;
        let words = self
            .words
            .clone()
            .with("port", port)
            .with("dir", dir.display());
        let mut environment = self.context.environment.clone();
        environment.insert("PORT".to_owned(), port.to_string());
        let mut taps = Vec::new();
        for (dependency, place) in self.context.places.iter().enumerate() {
            let real = self.words.fill(&place.url);
            let seen = if place.encrypted {
                real
            } else {
                let (url, tap) = self.tap(at, dependency, place, &real).await?;
                taps.push(tap);
                url
            };
            environment.insert(place.env.clone(), seen);
        }
        for (variable, value) in &process.env {
            environment.insert(variable.clone(), words.fill(value));
        }
        let command = shlex::split(&process.spawn).unwrap_or_default();
        let recipe = Recipe {
            name: name.to_owned(),
            command: command.iter().map(|word| words.fill(word)).collect(),
            environment,
            directory: self.context.directory.clone(),
            port,
            ready: process.readiness(),
            log: self.home.path().join(format!("{name}.log")),
        };
        self.members.push(Member {
            recipe,
            attack: process.attack,
            running: None,
            paused: false,
            taps,
        });
        self.launch(at).await
    }

    async fn tap(
        &self,
        process: usize,
        dependency: usize,
        place: &Place,
        real: &str,
    ) -> Result<(String, Tap), CannotJudge> {
        let (upstream, around) = address(real, place)?;
        let line = Line {
            process,
            dependency,
            lane: place.env.clone(),
            language: place.language,
            upstream,
        };
        let tap = Tap::open(line, Arc::clone(&self.wire)).await?;
        Ok((around.at(tap.port), tap))
    }

    async fn launch(&mut self, at: usize) -> Result<(), CannotJudge> {
        let Some(member) = self.members.get_mut(at) else {
            return Ok(());
        };
        let mut running = member.recipe.start()?;
        self.keeper.keep(running.id())?;
        member.recipe.ready(&mut running).await?;
        member.running = Some(running);
        member.paused = false;
        Ok(())
    }

    /// Ends a process as a crash does; bytes that are held never arrive.
    pub(crate) async fn kill(&mut self, at: usize) -> Result<(), CannotJudge> {
        let Some(member) = self.members.get_mut(at) else {
            return Ok(());
        };
        if let Some(mut running) = member.running.take() {
            self.wire.note(&member.recipe.name, What::Killed);
            running.kill().await;
            self.keeper.forget(running.id())?;
        }
        self.wire.go_on(Pass::Drop);
        Ok(())
    }

    /// Starts whatever does not run, as a supervisor does.
    pub(crate) async fn mend(&mut self) -> Result<(), CannotJudge> {
        for at in 0..self.members.len() {
            let Some(member) = self.members.get_mut(at) else {
                continue;
            };
            if let Some(running) = &mut member.running {
                if !running.has_ended() {
                    continue;
                }
                // The rest of its group goes with it.
                running.kill().await;
                self.keeper.forget(running.id())?;
                self.wire.note(&member.recipe.name, What::Killed);
            }
            member.running = None;
            self.launch(at).await?;
            self.wire.note(&self.name(at), What::Started);
        }
        Ok(())
    }

    pub(crate) fn pause(&mut self, at: usize) {
        if let Some(member) = self.members.get_mut(at)
            && let Some(running) = &member.running
        {
            running.pause();
            member.paused = true;
            self.wire.note(&member.recipe.name, What::Paused);
        }
    }

    pub(crate) fn resume(&mut self, at: usize) {
        if let Some(member) = self.members.get_mut(at)
            && let Some(running) = &member.running
            && member.paused
        {
            running.resume();
            member.paused = false;
            self.wire.note(&member.recipe.name, What::Resumed);
        }
    }

    /// The end of what the receiver printed.
    pub(crate) fn log(&self) -> String {
        self.members
            .get(self.receiver)
            .map(|member| member.recipe.log_tail())
            .unwrap_or_default()
    }

    pub(crate) fn receiver(&self) -> usize {
        self.receiver
    }

    pub(crate) fn name(&self, at: usize) -> String {
        self.members
            .get(at)
            .map(|member| member.recipe.name.clone())
            .unwrap_or_default()
    }

    pub(crate) fn address(&self, at: usize) -> Option<SocketAddr> {
        let member = self.members.get(at)?;
        Some(SocketAddr::from((Ipv4Addr::LOCALHOST, member.recipe.port)))
    }

    /// Those that may be killed and paused; not the second one.
    pub(crate) fn attackable(&self) -> Vec<usize> {
        let at = 0..self.members.len();
        at.filter(|at| Some(*at) != self.first_of_second && self.may_attack(*at))
            .collect()
    }

    pub(crate) fn may_attack(&self, at: usize) -> bool {
        self.members.get(at).is_some_and(|member| member.attack)
    }

    /// A caller's environment in which every dependency has its real address.
    pub(crate) fn environment(&self) -> BTreeMap<String, String> {
        let mut environment = self.context.environment.clone();
        for (place, url) in self.context.places.iter().zip(&self.urls) {
            environment.insert(place.env.clone(), url.clone());
        }
        environment
    }

    pub(crate) fn places(&self) -> &[Place] {
        &self.context.places
    }

    pub(crate) fn directory(&self) -> &std::path::Path {
        &self.context.directory
    }

    /// The words that a probe may use: a process's directory is `{dir.NAME}` there, and `{dir}` the receiver's.
    pub(crate) fn words_of_probes(&self) -> Words {
        let mut words = self.words.clone();
        for member in &self.members {
            let dir = self.home.path().join(&member.recipe.name);
            words = words.with(format!("dir.{}", member.recipe.name), dir.display());
        }
        words.with(
            "dir",
            self.home.path().join(self.name(self.receiver)).display(),
        )
    }
}
