//! The end of a trial: all is quiet, effects are counted, and the trial is judged.

use super::Trial;
use crate::attacks::attack::Fault;
use crate::attacks::late::PassedTrial;
use crate::attacks::repeat_late::{EarlyDelivery, REPEATS_FULL};
use crate::attacks::session::{QUIET, Session};
use crate::error::Error;
use crate::judge::timeline::{Event, What};
use crate::judge::verdict::BreachKind;
use crate::judge::{Breach, Evidence, judge, too_many};
use crate::scenario::{Effect, Promise, Scenario};
use crate::world::probe::{Counts, UNNAMED};
use crate::world::sender::{AttemptResult, Delivery, HandlerAnswer};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;

/// How often a missing effect is looked for.
const SLICE: Duration = Duration::from_millis(100);
/// How long, once one was missed for as long as a sender waits: the handler is known to lose effects.
const SLICES_LATER: u32 = 10;
/// A handler that is busy with what earlier trials left to it is waited for, but not for ever.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// What one trial showed.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) breach: Option<Breach>,
    pub(crate) events: Vec<Event>,
    /// How long an effect that was missing had to be waited for.
    pub(crate) waited: Duration,
}

// === impl Trial ===

impl Trial<'_, '_> {
    /// The sender goes on as its attempts let it, and the trial ends. Whether the attack is over.
    pub(crate) async fn conclude(
        mut self,
        results: &[AttemptResult],
        hit: bool,
    ) -> Result<bool, Error> {
        self.until_settled(results).await?;
        self.end(hit).await
    }

    /// The trial is judged and added to the attack's. Whether the attack is over.
    pub(crate) async fn end(self, hit: bool) -> Result<bool, Error> {
        let (session, deliveries) = self.into_parts();
        let finding = session.finish(&deliveries).await?;
        Ok(session.round.tally.add(finding, hit))
    }

    /// The trial is judged.
    pub(crate) async fn finish(self) -> Result<Finding, Error> {
        let (session, deliveries) = self.into_parts();
        session.finish(&deliveries).await
    }
}

// === impl Session ===

impl Session<'_> {
    /// Waits until all is quiet, looks at the effects of a trial's deliveries and judges.
    async fn finish(&mut self, deliveries: &[Delivery]) -> Result<Finding, Error> {
        self.world.restart_ended().await?;
        self.quiet().await;
        self.world.restart_ended().await?;
        let answers = self.sender.take_answers();
        let mut finding = self.judge(deliveries, &answers).await?;
        if finding.is_lost() {
            finding = self.wait_for_effects(deliveries, &answers).await?;
        }
        self.world.recorder.idle();
        self.tried();
        if finding.breach.is_none() {
            if self.early.len() < REPEATS_FULL {
                let early = EarlyDelivery::new(deliveries, &finding.events);
                self.early.extend(early);
            }
            let attack = self.round.attack;
            let passed = attack.map(|attack| PassedTrial::new(attack, deliveries, &finding));
            self.passed.extend(passed);
        }
        Ok(finding)
    }

    /// An effect is missing: it may only be late. It is looked for as long as a sender waits for an answer, counted from
    /// when the handler was done with what earlier trials left to it.
    async fn wait_for_effects(
        &mut self,
        deliveries: &[Delivery],
        answers: &[HandlerAnswer],
    ) -> Result<Finding, Error> {
        let began = Instant::now();
        let deadline = self.scenario.deliver.deadline();
        let patience = if self.loses_effects {
            deadline.min(SLICE * SLICES_LATER)
        } else {
            deadline
        };
        loop {
            tokio::time::sleep(SLICE).await;
            let finding = self.judge(deliveries, answers).await?;
            if !finding.is_lost() {
                let waited = QUIET + began.elapsed();
                // More may come now that it works again.
                self.quiet().await;
                let finding = self.judge(deliveries, answers).await?;
                return Ok(Finding { waited, ..finding });
            }
            let idle = self.world.recorder.left_behind();
            let idle = idle.map_or(began.elapsed(), |idle| idle.min(began.elapsed()));
            if idle >= patience || began.elapsed() >= BUSY_TIMEOUT {
                self.loses_effects = true;
                return Ok(finding);
            }
        }
    }

    async fn judge(
        &mut self,
        deliveries: &[Delivery],
        answers: &[HandlerAnswer],
    ) -> Result<Finding, Error> {
        let ids: BTreeSet<String> = deliveries.iter().map(|one| one.id.clone()).collect();
        let ids = Vec::from_iter(ids);
        let mut counts = self.world.count_effects(&ids).await?;
        let mut events = self.world.recorder.events();
        let breach = judge(&Evidence {
            scenario: self.scenario,
            ends_anyway: self.may_end(),
            deliveries,
            events: &events,
            answers,
            counts: &counts,
        });
        append_states(&mut events, self.scenario, deliveries, &mut counts);
        append_counts(&mut events, counts);
        Ok(Finding {
            breach,
            events,
            waited: Duration::ZERO,
        })
    }

    /// Whether a process may end while it handles a delivery: it always does, or it has lost a server.
    fn may_end(&self) -> bool {
        let fault = self.round.attack.map(|attack| attack.definition().fault);
        self.baseline.ends || matches!(fault, None | Some(Fault::DependencyFails))
    }

    /// The effects that name no delivery at all.
    pub(crate) async fn unnamed_effects(&mut self) -> Result<Counts, Error> {
        self.world.count_effects(&[UNNAMED.to_owned()]).await
    }

    /// What a delivery without a key does cannot be told from what others do, but it can be counted.
    pub(crate) async fn count_unnamed(
        &mut self,
        mut finding: Finding,
        before: &Counts,
    ) -> Result<Finding, Error> {
        if finding.breach.is_some() || self.scenario.promise == Promise::AtLeastOnce {
            return Ok(finding);
        }
        let mut more = self.unnamed_effects().await?;
        for (effect, count) in &mut more {
            *count = count.saturating_sub(before.get(effect).copied().unwrap_or_default());
        }
        more.retain(|_, count| *count > 0);
        finding.breach = too_many(self.scenario, &more, UNNAMED, 1).map(|(Effect { name, .. }, count)| {
            let seen = format!(
                "a delivery whose key is missing has `{name}` {count} times, none of them with an id"
            );
            Breach::new(BreachKind::EffectTwice, seen)
        });
        append_counts(&mut finding.events, more);
        Ok(finding)
    }
}

// === impl Finding ===

impl Finding {
    fn is_lost(&self) -> bool {
        let breach = self.breach.as_ref();
        breach.is_some_and(|breach| breach.kind == BreachKind::EffectLost)
    }
}

/// Which version stands is not a count.
fn append_states(
    events: &mut Vec<Event>,
    scenario: &Scenario,
    deliveries: &[Delivery],
    counts: &mut Counts,
) {
    let at = events
        .iter()
        .map(|event| event.at)
        .max()
        .unwrap_or_default();
    let entities: BTreeSet<&String> = deliveries.iter().map(|it| &it.entity).collect();
    for Effect { name, .. } in scenario.effects.iter().filter(|it| it.newest) {
        for entity in &entities {
            let version = counts.get(&(name.clone(), (*entity).clone()));
            let what = What::State {
                effect: name.clone(),
                entity: (*entity).clone(),
                version: version.copied().unwrap_or_default(),
            };
            let lane = "effects".to_owned();
            events.push(Event { at, lane, what });
        }
        counts.retain(|(effect, _), _| effect != name);
    }
}

/// What probes saw comes last.
fn append_counts(events: &mut Vec<Event>, counts: Counts) {
    let at = events.iter().map(|event| event.at).max();
    let seen = counts
        .into_iter()
        .map(|((effect, id), count)| Event::effects(at.unwrap_or_default(), effect, id, count));
    events.extend(seen);
}
