//! Where trials are made: new deliveries into a world that runs, and a verdict once it is quiet again.

mod resend;
mod finish;
mod late;

pub(crate) use finish::QUIET;

use crate::attacks::baseline::Baseline;
use crate::error::Error;
use crate::judge::Breach;
use crate::judge::verdict::{Attack, Event};
use crate::options::{Options, Profile, Progress};
use crate::scenario::Scenario;
use crate::scenario::check::check;
use crate::world::World;
use crate::world::exchange::{Exchange, Hold};
use crate::world::recorder::{Recorder, Release};
use crate::world::sender::{AttemptResult, Delivery, Sender};
use late::PassedTrial;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// Work after an answer begins within this time.
const AFTER: Duration = Duration::from_millis(40);
/// Fine enough to be there when an answer has just come.
const LOOK: Duration = Duration::from_micros(250);

/// More deliveries than any attack makes.
const DELIVERIES_MAX: u64 = 1_000;

/// A world and everything needed to try something in it.
#[derive(Debug)]
pub(crate) struct Session<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) profile: Profile,
    pub(crate) crash_points_max: usize,
    pub(crate) world: World<'a>,
    pub(crate) sender: Sender,
    pub(crate) rng: StdRng,
    /// One run that was left alone.
    pub(crate) baseline: Baseline,
    /// Whether two attempts of one delivery were seen to write different things.
    pub(crate) writes_vary: bool,
    progress: ProgressSink<'a>,
    attack: Option<Attack>,
    trials: u32,
    seed: u64,
    id_prefix: String,
    deliveries: u64,
    /// Trials that held when they were judged.
    passed: Vec<PassedTrial>,
    /// Whether an effect was already missed for as long as a sender waits.
    lost: bool,
}

/// Whoever wants to know how far we are.
struct ProgressSink<'a>(&'a dyn Fn(Progress));

/// A trial that has begun.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) delivery: Delivery,
    pub(crate) first: JoinHandle<AttemptResult>,
    /// Where it is held now; nowhere when its work was over before.
    pub(crate) held: Option<Exchange>,
}

/// What one trial showed.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) breach: Option<Breach>,
    pub(crate) events: Vec<Event>,
    /// How long an effect that was missing had to be waited for.
    pub(crate) waited: Duration,
}

// === impl Session ===

impl<'a> Session<'a> {
    /// Starts the world and sees it do its work once.
    pub(crate) async fn enter(
        scenario: &'a Scenario,
        options: &Options,
        progress: &'a dyn Fn(Progress),
    ) -> Result<Self, Error> {
        let endpoints = check(scenario, options)?;
        let mut world = World::plan(scenario, options, endpoints)?;
        for before in scenario.before.iter().filter(|before| !before.each) {
            let variables = world.variables.clone();
            world.prepare(before, &variables).await?;
        }
        world.start().await?;
        let sender = Sender::new(&scenario.deliver, &world).await?;
        let mut session = Self {
            scenario,
            profile: options.profile,
            crash_points_max: options.crash_points_max,
            world,
            sender,
            rng: StdRng::seed_from_u64(options.seed),
            baseline: Baseline::default(),
            writes_vary: false,
            progress: ProgressSink(progress),
            attack: None,
            trials: 0,
            seed: options.seed,
            id_prefix: options.id_prefix.clone(),
            deliveries: 0,
            passed: Vec::new(),
            lost: false,
        };
        session.world.recorder.set_id_prefix(&options.id_prefix);
        session.see_no_traces().await?;
        session.baseline = Baseline::watch(&mut session).await?;
        Ok(session)
    }

    /// From now on trials belong to this attack. Names and choices begin anew: how many trials another attack needed
    /// does not matter to this one.
    pub(crate) fn attack(&mut self, attack: Attack, number: u64) {
        self.attack = Some(attack);
        self.trials = 0;
        self.deliveries = number * DELIVERIES_MAX;
        self.rng = StdRng::seed_from_u64(self.seed.wrapping_add(number));
    }

    pub(crate) fn recorder(&self) -> Arc<Recorder> {
        Arc::clone(&self.world.recorder)
    }

    pub(crate) fn target(&self) -> SocketAddr {
        self.sender.target()
    }

    /// A new trial with one new delivery.
    pub(crate) async fn begin(&mut self) -> Result<Delivery, Error> {
        self.world.recorder.idle();
        self.world.restart_ended().await?;
        let delivery = self.next().await?;
        self.sender.take_answers();
        self.world.recorder.begin();
        self.world.recorder.owns(&delivery.id);
        Ok(delivery)
    }

    /// One more delivery.
    pub(crate) async fn next(&mut self) -> Result<Delivery, Error> {
        self.next_about(None).await
    }

    /// Another new delivery about the same entity, or about one of its own.
    pub(crate) async fn next_about(&mut self, entity: Option<&str>) -> Result<Delivery, Error> {
        self.deliveries += 1;
        let n = self.deliveries;
        let delivery = Delivery::new(format!("{}{n:05}", self.id_prefix), n).about(entity);
        let variables = delivery.variables(&self.world.variables);
        for before in self.scenario.before.iter().filter(|before| before.each) {
            self.world.prepare(before, &variables).await?;
        }
        self.world.recorder.owns(&delivery.id);
        Ok(delivery)
    }

    /// A new trial whose delivery is to be held at a boundary of the baseline run.
    pub(crate) async fn begin_held(&mut self, at: &Exchange) -> Result<Begun, Error> {
        let exactly = self.begin_hold(Hold::At(at.boundary.clone())).await?;
        if exactly.held.is_some() {
            return Ok(exactly);
        }
        self.quiet().await;
        self.begin_hold(Hold::Number(at.number)).await
    }

    async fn begin_hold(&mut self, hold: Hold) -> Result<Begun, Error> {
        let delivery = self.begin().await?;
        let recorder = self.recorder();
        recorder.hold(hold);
        let mut known = AttemptResult::Unanswered;
        let pause = Duration::from_millis(self.scenario.deliver.pause_ms);
        // As in the undisturbed run: a handler may refuse what it does later.
        while known != AttemptResult::Accepted
            && delivery.attempts() < self.scenario.deliver.attempts
        {
            let first = self.sender.spawn(&delivery, self.target());
            let held = tokio::select! {
                exchange = recorder.held() => Some(exchange),
                () = self.over(&first) => None,
            };
            if held.is_some() {
                return Ok(Begun {
                    delivery,
                    first,
                    held,
                });
            }
            known = first.await.unwrap_or(known);
            if known != AttemptResult::Accepted {
                tokio::time::sleep(pause).await;
                self.world.restart_ended().await?;
            }
        }
        // Later attempts are not to be held: nobody would let them go.
        recorder.release(Release::Forward);
        Ok(Begun {
            delivery,
            first: tokio::spawn(std::future::ready(known)),
            held: None,
        })
    }

    /// Returns when an attempt has ended, and what it may have left to be done after its answer.
    async fn over(&self, attempt: &JoinHandle<AttemptResult>) {
        ended(attempt).await;
        let after = self.baseline.ended.saturating_sub(self.baseline.answered);
        tokio::time::sleep(after * 2 + AFTER).await;
    }

    pub(crate) fn random(&mut self, below: Duration) -> Duration {
        below.mul_f64(self.rng.random_range(0.0..1.0))
    }

    /// Another run with this mark would be taken for this one.
    async fn see_no_traces(&mut self) -> Result<(), Error> {
        self.world.recorder.begin();
        let id_prefix = [self.id_prefix.clone()];
        let counts = self.world.count_effects(&id_prefix).await?;
        match counts.iter().find(|(_, count)| **count > 0) {
            None => Ok(()),
            Some(((effect, _), _)) => Err(Error::Scenario(format!(
                "`{effect}` shows something for {} before anything was delivered: its ids must be told apart from \
                 what is there already",
                self.id_prefix
            ))),
        }
    }
}

// === impl ProgressSink ===

impl std::fmt::Debug for ProgressSink<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ProgressSink")
    }
}

/// Returns when an attempt has ended, without taking what it ended with.
pub(crate) async fn ended<T>(attempt: &JoinHandle<T>) {
    while !attempt.is_finished() {
        tokio::time::sleep(LOOK).await;
    }
}
