//! Looks back: a trial that held when it was judged may have one effect too many later.

use super::attack::Attack;
use super::session::Session;
use super::trial::Finding;
use crate::error::Error;
use crate::judge::timeline::Event;
use crate::judge::verdict::BreachKind;
use crate::judge::{Breach, tenants, too_many};
use crate::scenario::{Effect, Promise, Scenario};
use crate::world::probe::Counts;
use crate::world::sender::Delivery;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// What the last trials have set going gets this long.
const LATE: Duration = Duration::from_millis(600);

/// A trial that held when it was judged.
#[derive(Clone, Debug)]
pub(super) struct PassedTrial {
    attack: Attack,
    /// For how many tenants each id was delivered.
    ids: BTreeMap<String, u64>,
    events: Vec<Event>,
    judged: Instant,
}

// === impl PassedTrial ===

impl PassedTrial {
    pub(super) fn new(attack: Attack, deliveries: &[Delivery], finding: &Finding) -> Self {
        Self {
            attack,
            ids: deliveries
                .iter()
                .map(|one| (one.id.clone(), tenants(deliveries, &one.id)))
                .collect(),
            events: finding.events.clone(),
            judged: Instant::now(),
        }
    }

    /// The trial with what was added to it, if that breaks the promise.
    fn broken_by(&self, scenario: &Scenario, counts: &Counts) -> Option<Finding> {
        let mut ids = self.ids.iter();
        let broken =
            ids.find_map(|(id, tenants)| Some((id, too_many(scenario, counts, id, *tenants)?)));
        let (id, (Effect { name, expected, .. }, count)) = broken?;
        let ended = self.events.iter().map(|event| event.at).max();
        let at = ended.unwrap_or_default() + self.judged.elapsed();
        let mut events = self.events.clone();
        events.push(Event::effects(at, name.clone(), id.clone(), count));
        let seen = format!(
            "delivery {id} has `{name}` {count} times instead of {expected}: the handler was still at work when all seemed quiet"
        );
        Some(Finding {
            breach: Some(Breach::new(BreachKind::EffectTwice, seen)),
            events,
            waited: Duration::ZERO,
        })
    }
}

// === impl Session ===

impl Session<'_> {
    /// The first trial of an attack that has one effect too many by now.
    pub(crate) async fn look_back(&mut self, attack: Attack) -> Result<Option<Finding>, Error> {
        let passed = self.passed.iter().filter(|it| it.attack == attack);
        let ids: Vec<String> = passed.flat_map(|it| it.ids.keys().cloned()).collect();
        if ids.is_empty() || self.scenario.promise == Promise::AtLeastOnce {
            return Ok(None);
        }
        let counts = self.world.count_effects(&ids).await?;
        let mut passed = self.passed.iter().filter(|it| it.attack == attack);
        Ok(passed.find_map(|it| it.broken_by(self.scenario, &counts)))
    }

    /// This delivery comes once more in a trial of its own: what it does then is not to be blamed on an earlier one.
    pub(super) fn settle(&mut self, delivery: &str) {
        self.passed.retain(|it| !it.ids.contains_key(delivery));
    }

    /// Lets the last trials come to their end before they are looked at once more.
    pub(crate) async fn linger(&self) {
        tokio::time::sleep(LATE.max(self.baseline.follows())).await;
    }
}
