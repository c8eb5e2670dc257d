//! The verdict on one trial, from what was sent, answered and seen. Pure.

pub(crate) mod verdict;
pub(crate) mod timeline;
pub(crate) mod shrink;
pub(crate) mod pattern;
#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod tests;

use crate::scenario::{Effect, Promise, Scenario, SenderKind};
use crate::world::probe::Counts;
use crate::world::sender::{Delivery, HandlerAnswer, Payload};
use std::collections::BTreeSet;
use std::time::Duration;
use timeline::{Event, What};
use verdict::BreachKind;

/// Everything known after a trial.
#[derive(Debug)]
pub(crate) struct Evidence<'a> {
    pub(crate) scenario: &'a Scenario,
    /// Whether a process ends after its work also when nothing disturbs it.
    pub(crate) ends_anyway: bool,
    pub(crate) deliveries: &'a [Delivery],
    pub(crate) events: &'a [Event],
    pub(crate) answers: &'a [HandlerAnswer],
    pub(crate) counts: &'a Counts,
}

/// How a trial broke the promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Breach {
    pub(crate) kind: BreachKind,
    /// One sentence: what was seen.
    pub(crate) seen: String,
}

/// None: the promise held.
pub(crate) fn judge(evidence: &Evidence<'_>) -> Option<Breach> {
    let breach = evidence.deliveries.iter().find_map(|delivery| {
        evidence
            .twice(&delivery.id)
            .or_else(|| evidence.lost(delivery))
            .or_else(|| evidence.outdated(delivery))
            .or_else(|| evidence.died(&delivery.id))
            .or_else(|| evidence.endless(delivery))
    });
    breach.or_else(|| evidence.answers_differ())
}

// === impl Evidence ===

impl Evidence<'_> {
    fn twice(&self, id: &str) -> Option<Breach> {
        if self.scenario.promise == Promise::AtLeastOnce {
            return None;
        }
        let tenants = tenants(self.deliveries, id);
        let (Effect { name, expected, .. }, count) =
            too_many(self.scenario, self.counts, id, tenants)?;
        let (sent, owed) = (self.sent(id), expected * tenants);
        let seen = format!(
            "delivery {id} was sent {sent} and has `{name}` {count} times instead of {owed}"
        );
        Some(Breach::new(BreachKind::EffectTwice, seen))
    }

    fn lost(&self, delivery: &Delivery) -> Option<Breach> {
        let id = &delivery.id;
        let owed = self.scenario.promise != Promise::AtMostOnce
            && delivery.payload.can_succeed()
            && !self.is_superseded(delivery);
        let tenants = tenants(self.deliveries, id);
        let accepted = self.accepted(id) && (tenants == 1 || self.accepted_at_last(id));
        if !owed || !accepted {
            return None;
        }
        let mut counts = counted(self.scenario, self.counts, id);
        let (effect, count) = counts.find(|(effect, count)| *count < effect.expected * tenants)?;
        let (name, owed) = (&effect.name, effect.expected * tenants);
        let each = if tenants > 1 {
            ", once for each tenant"
        } else {
            ""
        };
        let seen = format!(
            "delivery {id} was acknowledged but has `{name}` {count} times instead of {owed}{each}"
        );
        Some(Breach::new(BreachKind::EffectLost, seen))
    }

    /// Nobody is owed an older version of an entity when a newer one was acknowledged. Where the handler is told of
    /// versions, both are one thing to count, and what stands in the end is seen by its state.
    fn is_superseded(
        &self,
        Delivery {
            entity, version, ..
        }: &Delivery,
    ) -> bool {
        let mut versions = self.deliveries.iter().filter(|it| it.entity == *entity);
        let other = versions.any(|it| it.version != *version);
        let told = self.scenario.deliver.names("{version}");
        other && (told || self.newest(entity) > *version)
    }

    /// The newest version of an entity that was acknowledged; 0: none.
    fn newest(&self, entity: &str) -> u64 {
        let deliveries = self.deliveries.iter();
        let acknowledged = deliveries
            .filter(|it| it.entity == entity && it.payload.can_succeed() && self.accepted(&it.id));
        acknowledged.map(|it| it.version).max().unwrap_or_default()
    }

    /// An older version stands than was acknowledged.
    fn outdated(&self, Delivery { entity, .. }: &Delivery) -> Option<Breach> {
        let newest = self.newest(entity);
        if self.scenario.promise == Promise::AtMostOnce {
            return None;
        }
        let mut states = self.scenario.effects.iter().filter(|it| it.newest);
        states.find_map(|Effect { name, .. }| {
            let stands = self.counts.get(&(name.clone(), entity.clone()));
            let stands = stands.copied().unwrap_or_default();
            let (kind, seen) = match stands {
                stands if stands >= newest => return None,
                0 => (
                    BreachKind::EffectLost,
                    format!("version {newest} of {entity} was acknowledged but `{name}` shows none"),
                ),
                older => (
                    BreachKind::OldWins,
                    format!(
                        "version {newest} of {entity} was acknowledged but `{name}` shows version {older}"
                    ),
                ),
            };
            Some(Breach::new(kind, seen))
        })
    }

    /// A process ended that nobody had touched.
    fn died(&self, id: &str) -> Option<Breach> {
        let touched = |event: &Event| matches!(event.what, What::Killed | What::Paused);
        if self.ends_anyway || self.events.iter().any(touched) {
            return None;
        }
        let mut events = self.events.iter();
        let process = &events.find(|event| event.what == What::Ended)?.lane;
        let seen = format!("`{process}` ended by itself while delivery {id} was handled");
        Some(Breach::new(BreachKind::Died, seen))
    }

    /// Refused until the sender has used up all its attempts.
    fn endless(&self, Delivery { id, payload, .. }: &Delivery) -> Option<Breach> {
        let sent = format!(
            "{} within {:.1} s",
            self.sent(id),
            self.span(id).as_secs_f64()
        );
        let accepted = self.accepted(id);
        if !payload.can_succeed() {
            let ended = accepted || self.scenario.deliver.dead_letters || self.is_client();
            let seen =
                format!("delivery {id} can never succeed, was sent {sent} and refused each time");
            return (!ended).then(|| Breach::new(BreachKind::Poison, seen));
        }
        // A client is told that its request was put aside; a broker would ask for ever.
        let aside = self.scenario.promise == Promise::AtMostOnce && self.is_client();
        let seen = if !accepted && !aside {
            format!(
                "delivery {id} was sent {sent} and never accepted, although nothing was wrong any more; set lease_ms if claims live longer"
            )
        } else if accepted && *payload == Payload::Default && !self.accepted_at_last(id) {
            format!(
                "delivery {id} was accepted, and its duplicate was not: it was sent {sent}, the last of them in vain"
            )
        } else {
            return None;
        };
        Some(Breach::new(BreachKind::Stuck, seen))
    }

    /// Only an API client reads more of an answer than its status.
    fn answers_differ(&self) -> Option<Breach> {
        if !self.is_client() {
            return None;
        }
        let answers = self.answers.iter();
        let answers = answers.filter(|it| it.accepted && it.payload == Payload::Default);
        answers.clone().find_map(|other| {
            let same =
                |first: &&HandlerAnswer| (&first.id, first.tenant) == (&other.id, other.tenant);
            let first = answers.clone().find(same)?;
            let same = first.status == other.status && first.body == other.body;
            (!same).then(|| Breach::new(BreachKind::AnswersDiffer, difference(first, other)))
        })
    }

    fn is_client(&self) -> bool {
        self.scenario.deliver.sender == SenderKind::Http
    }

    fn accepted(&self, delivery: &str) -> bool {
        let mut events = self.events.iter();
        events.any(|event| event.is_known_success() && event.delivery() == Some(delivery))
    }

    /// Whether its last attempt ended well for its sender: a queue needs a success, a client an answer.
    fn accepted_at_last(&self, delivery: &str) -> bool {
        let ends = |event: &Event| {
            let (id, attempt, accepted) = event.attempt_end()?;
            let told = self.is_client() && matches!(event.what, What::Answered { .. });
            (id == delivery).then_some((attempt, accepted || told))
        };
        let last = self.events.iter().filter_map(ends).max();
        last.is_none_or(|(_, well)| well)
    }

    /// From its first attempt to the end of its last.
    fn span(&self, delivery: &str) -> Duration {
        let of_it = self
            .events
            .iter()
            .filter(|it| it.delivery() == Some(delivery));
        let times: Vec<Duration> = of_it.map(|it| it.at).collect();
        let (first, last) = (times.iter().min(), times.iter().max());
        last.zip(first)
            .map_or(Duration::ZERO, |(last, first)| *last - *first)
    }

    fn sent(&self, delivery: &str) -> String {
        let sent = |event: &&Event| matches!(&event.what, What::Sent { id, .. } if id == delivery);
        match self.events.iter().filter(sent).count() {
            1 => "once".to_owned(),
            2 => "twice".to_owned(),
            more => format!("{more} times"),
        }
    }
}

// === impl Breach ===

impl Breach {
    pub(crate) fn new(kind: BreachKind, seen: String) -> Self {
        Self { kind, seen }
    }
}

/// An effect that a delivery has more often than it should, and how often. Each tenant of its id is owed one.
pub(crate) fn too_many<'a>(
    scenario: &'a Scenario,
    counts: &Counts,
    id: &str,
    tenants: u64,
) -> Option<(&'a Effect, u64)> {
    counted(scenario, counts, id).find(|(effect, count)| *count > effect.expected * tenants)
}

/// For how many tenants an id was delivered.
pub(crate) fn tenants(deliveries: &[Delivery], id: &str) -> u64 {
    let same = deliveries.iter().filter(|delivery| delivery.id == id);
    let tenants: BTreeSet<&str> = same.map(|delivery| delivery.tenant).collect();
    tenants.len().max(1) as u64
}

/// Each effect, and how often a delivery has it. What shows a state is not counted.
fn counted<'a>(
    scenario: &'a Scenario,
    counts: &Counts,
    id: &str,
) -> impl Iterator<Item = (&'a Effect, u64)> {
    let counting = scenario.effects.iter().filter(|effect| !effect.newest);
    counting.map(move |effect| {
        let seen = counts.get(&(effect.name.clone(), id.to_owned()));
        (effect, seen.copied().unwrap_or_default())
    })
}

fn difference(first: &HandlerAnswer, other: &HandlerAnswer) -> String {
    let (id, status) = (&first.id, first.status);
    if status != other.status {
        let later = other.status;
        return format!("request {id} was answered {status} first and {later} later");
    }
    format!("request {id} was answered twice with {status} but with different bodies")
}
