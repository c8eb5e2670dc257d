//! One run of the prover over one scenario: what lasts from the first delivery to the report.

use super::attack::Attack;
use super::baseline::Baseline;
use super::late::PassedTrial;
use super::repeat_late::EarlyDelivery;
use super::tally::Tally;
use crate::error::Error;
use crate::options::{Options, Progress};
use crate::scenario::Scenario;
use crate::scenario::check::check;
use crate::world::World;
use crate::world::sender::{Delivery, Sender};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::slice::from_ref;
use std::time::Duration;
use tokio::time::Instant;

/// Nothing on the wire for this long: whatever a delivery set going is done. Longer than any attack keeps an attempt
/// waiting.
pub(crate) const QUIET: Duration = Duration::from_millis(170);
/// Handlers that are slow to act are waited for, but not for ever.
const FOLLOWS_MAX: Duration = Duration::from_secs(2);
/// A handler that is never quiet is judged all the same.
const QUIET_TIMEOUT: Duration = Duration::from_secs(15);

/// More deliveries than any attack makes.
const DELIVERIES_MAX: u64 = 1_000;

/// A world, and everything needed to try something in it.
pub(crate) struct Session<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) options: &'a Options,
    pub(crate) sender: Sender,
    pub(crate) world: World<'a>,
    /// Deliveries that were left alone.
    pub(crate) baseline: Baseline,
    pub(super) round: Round,
    /// Trials that held when they were judged.
    pub(super) passed: Vec<PassedTrial>,
    /// The first deliveries of the run that had their effect.
    pub(super) early: Vec<EarlyDelivery>,
    /// Whether an effect was already missed for as long as a sender waits.
    pub(super) loses_effects: bool,
    /// Whoever wants to know how far we are.
    progress: &'a dyn Fn(Progress),
}

/// The trials of one attack. Names and random choices begin anew with each: how many trials another attack needed does
/// not matter to this one.
#[derive(Debug)]
pub(super) struct Round {
    /// None: the baseline.
    pub(super) attack: Option<Attack>,
    pub(super) tally: Tally,
    rng: StdRng,
    deliveries: u64,
}

// === impl Session ===

impl<'a> Session<'a> {
    /// Starts the world and sees it do its work undisturbed.
    pub(crate) async fn start(
        scenario: &'a Scenario,
        options: &'a Options,
        progress: &'a dyn Fn(Progress),
    ) -> Result<Self, Error> {
        let mut session = Self::open(scenario, options, progress).await?;
        session.expect_no_traces().await?;
        session.baseline = Baseline::watch(&mut session).await?;
        Ok(session)
    }

    /// Starts the world.
    pub(crate) async fn open(
        scenario: &'a Scenario,
        options: &'a Options,
        progress: &'a dyn Fn(Progress),
    ) -> Result<Self, Error> {
        let endpoints = check(scenario, options)?;
        let mut world = World::plan(scenario, options, endpoints)?;
        let variables = world.variables.clone();
        for before in scenario.before.iter().filter(|before| !before.each) {
            world.prepare(before, &variables).await?;
        }
        world.start().await?;
        world.recorder.set_id_prefix(&options.id_prefix);
        Ok(Self {
            scenario,
            options,
            sender: Sender::new(&scenario.deliver, &world).await?,
            world,
            baseline: Baseline::default(),
            round: Round::new(None, options.seed),
            passed: Vec::new(),
            early: Vec::new(),
            loses_effects: false,
            progress,
        })
    }

    /// From now on trials belong to this attack.
    pub(crate) fn start_attack(&mut self, attack: Attack) {
        self.round = Round::new(Some(attack), self.options.seed);
    }

    /// A new delivery, about this entity or about one of its own.
    pub(super) async fn new_delivery(&mut self, entity: Option<&str>) -> Result<Delivery, Error> {
        self.round.deliveries += 1;
        let n = self.round.deliveries;
        let id = format!("{}{n:05}", self.options.id_prefix);
        let delivery = Delivery::new(id, n).about(entity);
        let variables = delivery.variables(&self.world.variables);
        for before in self.scenario.before.iter().filter(|before| before.each) {
            self.world.prepare(before, &variables).await?;
        }
        self.world.recorder.owns(&delivery.id);
        Ok(delivery)
    }

    /// Nothing is said any more, and nothing has been done for any delivery for as long as an effect took to follow its
    /// answer when nothing disturbed it.
    pub(crate) async fn quiet(&self) {
        let follows = self.baseline.follows().min(FOLLOWS_MAX);
        let began = Instant::now();
        while began.elapsed() < QUIET_TIMEOUT {
            let rest = follows.saturating_sub(self.world.recorder.undisturbed());
            match self.world.recorder.quiet() {
                Some(quiet) if quiet >= QUIET && rest.is_zero() => return,
                Some(quiet) => tokio::time::sleep(QUIET.saturating_sub(quiet).max(rest)).await,
                None => tokio::time::sleep(QUIET / 8).await,
            }
        }
    }

    /// A random moment before this one.
    pub(super) fn random(&mut self, below: Duration) -> Duration {
        below.mul_f64(self.round.rng.random_range(0.0..1.0))
    }

    /// A random number below this one.
    pub(super) fn random_index(&mut self, below: usize) -> usize {
        self.round.rng.random_range(0..below)
    }

    /// One more trial was made.
    pub(super) fn tried(&self) {
        if let Some(attack) = self.round.attack {
            let trial = self.round.tally.trials + 1;
            (self.progress)(Progress::Tried { attack, trial });
        }
    }

    /// Why the attack cannot be made, or never hit.
    pub(super) fn explain(&mut self, why: &str) {
        self.round.tally.why = Some(why.to_owned());
    }

    /// What a verdict does not say.
    pub(super) fn remark(&mut self, remark: String) {
        self.round.tally.remarks.push(remark);
    }

    /// If no fault hit, this is why.
    pub(super) fn unless_hit(&mut self, why: &str) {
        if self.round.tally.hits == 0 {
            self.explain(why);
        }
    }

    /// Another run with this prefix would be taken for this one.
    async fn expect_no_traces(&mut self) -> Result<(), Error> {
        self.world.recorder.begin();
        let id_prefix = &self.options.id_prefix;
        let counts = self.world.count_effects(from_ref(id_prefix)).await?;
        match counts.iter().find(|(_, count)| **count > 0) {
            None => Ok(()),
            Some(((effect, _), _)) => Err(Error::Scenario(format!(
                "`{effect}` shows something for {id_prefix} before anything was delivered: its ids must be told apart from \
                 what is there already"
            ))),
        }
    }
}

// === impl Round ===

impl Round {
    fn new(attack: Option<Attack>, seed: u64) -> Self {
        let number = attack.map_or(0, Attack::number);
        Self {
            attack,
            tally: Tally::default(),
            rng: StdRng::seed_from_u64(seed.wrapping_add(number)),
            deliveries: number * DELIVERIES_MAX,
        }
    }
}
