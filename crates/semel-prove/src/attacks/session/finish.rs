//! The end of a trial: all is quiet, effects are counted, and the trial is judged.

use super::late::PassedTrial;
use super::{Finding, Session};
use crate::attacks::baseline::vary;
use crate::error::Error;
use crate::judge::verdict::{BreachKind, Event, What};
use crate::judge::{Evidence, Expectation, Requirement, judge};
use crate::options::Progress;
use crate::scenario::Promise;
use crate::world::probe::{Counts, UNNAMED};
use crate::world::sender::{Answer, Delivery, Payload};
use std::time::Duration;
use tokio::time::Instant;

/// Nothing on the wire for this long: whatever a delivery set going is done. Longer than any attack keeps an attempt
/// waiting.
pub(crate) const QUIET: Duration = Duration::from_millis(170);
/// Handlers that are slow to act are waited for, but not for ever.
const FOLLOWS_MAX: Duration = Duration::from_secs(2);
/// A handler that is never quiet is judged all the same.
const QUIET_BOUND: Duration = Duration::from_secs(15);
/// How often a missing effect is looked for.
const SLICE: Duration = Duration::from_millis(100);
/// How long, once one was missed for as long as a sender waits: the handler is known to lose effects.
const SLICES_LATER: u32 = 10;
/// A handler that is busy with what earlier trials left to it is waited for, but not for ever.
const BUSY_BOUND: Duration = Duration::from_secs(30);

impl Session<'_> {
    /// Waits until all is quiet, looks at the effects of these deliveries and judges.
    pub(crate) async fn finish(&mut self, deliveries: &[&Delivery]) -> Result<Finding, Error> {
        self.world.restart_ended().await?;
        self.quiet().await;
        self.world.restart_ended().await?;
        let answers = self.sender.take_answers();
        let mut finding = self.judge(deliveries, &answers).await?;
        if is_lost(&finding) {
            finding = self.wait_for(deliveries, &answers).await?;
        }
        // Two deliveries differ anyway.
        self.writes_vary |= deliveries.len() == 1 && vary(&self.world.recorder.exchanges());
        self.world.recorder.idle();
        self.trials += 1;
        if let Some(attack) = self.attack {
            self.progress.0(Progress::Tried {
                attack,
                trial: self.trials,
            });
            if finding.breach.is_none() {
                self.passed
                    .push(PassedTrial::new(attack, deliveries, &finding));
            }
        }
        Ok(finding)
    }

    /// An effect is missing: it may only be late. It is looked for as long as a sender waits for an answer, counted from
    /// when the handler was done with what earlier trials left to it.
    async fn wait_for(
        &mut self,
        deliveries: &[&Delivery],
        answers: &[Answer],
    ) -> Result<Finding, Error> {
        let began = Instant::now();
        let deadline = self.scenario.deliver.deadline();
        let patience = if self.lost {
            deadline.min(SLICE * SLICES_LATER)
        } else {
            deadline
        };
        loop {
            tokio::time::sleep(SLICE).await;
            let finding = self.judge(deliveries, answers).await?;
            if !is_lost(&finding) {
                let waited = QUIET + began.elapsed();
                // More may come now that it works again.
                self.quiet().await;
                let finding = self.judge(deliveries, answers).await?;
                return Ok(Finding { waited, ..finding });
            }
            let idle = self.world.recorder.left_behind();
            let idle = idle.map_or(began.elapsed(), |idle| idle.min(began.elapsed()));
            if idle >= patience || began.elapsed() >= BUSY_BOUND {
                self.lost = true;
                return Ok(finding);
            }
        }
    }

    async fn judge(
        &mut self,
        deliveries: &[&Delivery],
        answers: &[Answer],
    ) -> Result<Finding, Error> {
        let ids: Vec<String> = deliveries.iter().map(|one| one.id.clone()).collect();
        let counts = self.look(&ids).await?;
        let mut events = self.world.recorder.events();
        let expectation: Vec<Expectation> = deliveries.iter().map(|one| expectation(one)).collect();
        let effects = self.scenario.effects.iter();
        let expected: Vec<(String, u64)> = effects
            .map(|effect| (effect.name.clone(), effect.expected))
            .collect();
        let breach = judge(&Evidence {
            promise: self.scenario.promise,
            sender: self.scenario.deliver.sender,
            dead_letters: self.scenario.deliver.dead_letters,
            ends_anyway: self.attack.is_none() || self.baseline.ends,
            expected: &expected,
            expectation: &expectation,
            events: &events,
            answers,
            counts: &counts,
        });
        events.extend(seen(counts, &events));
        Ok(Finding {
            breach,
            events,
            waited: Duration::ZERO,
        })
    }

    pub(super) async fn look(&mut self, ids: &[String]) -> Result<Counts, Error> {
        self.world.count_effects(ids).await
    }

    /// The effects that name no delivery at all.
    pub(crate) async fn unnamed(&mut self) -> Result<Counts, Error> {
        self.look(&[UNNAMED.to_owned()]).await
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
        let mut more = self.unnamed().await?;
        for (effect, count) in &mut more {
            *count = count.saturating_sub(before.get(effect).copied().unwrap_or_default());
        }
        more.retain(|_, count| *count > 0);
        let mut effects = self.scenario.effects.iter();
        let twice = effects.find_map(|effect| {
            let count = *more.get(&(effect.name.clone(), UNNAMED.to_owned()))?;
            (count > effect.expected).then(|| (effect.name.clone(), count))
        });
        finding.breach = twice.map(|(effect, count)| {
            let seen = format!(
                "a delivery whose key is missing has `{effect}` {count} times, none of them with an id"
            );
            (BreachKind::EffectTwice, seen)
        });
        finding.events.extend(seen(more, &finding.events));
        Ok(finding)
    }

    /// Nothing is said any more, and nothing has been done for any delivery for as long as an effect took to follow its
    /// answer when nothing disturbed it.
    pub(super) async fn quiet(&self) {
        let follows = self.baseline.follows().min(FOLLOWS_MAX);
        let began = Instant::now();
        while began.elapsed() < QUIET_BOUND {
            let rest = follows.saturating_sub(self.world.recorder.undisturbed());
            match self.world.recorder.quiet() {
                Some(quiet) if quiet >= QUIET && rest.is_zero() => return,
                Some(quiet) => tokio::time::sleep(QUIET.saturating_sub(quiet).max(rest)).await,
                None => tokio::time::sleep(QUIET / 8).await,
            }
        }
    }
}

fn is_lost(finding: &Finding) -> bool {
    matches!(finding.breach, Some((BreachKind::EffectLost, _)))
}

fn expectation(delivery: &Delivery) -> Expectation {
    Expectation {
        id: delivery.id.clone(),
        requirement: match delivery.payload {
            Payload::Default => Requirement::Effect,
            Payload::Other => Requirement::EffectOnly,
            Payload::Bad | Payload::Keyless => Requirement::Termination,
        },
    }
}

fn seen(counts: Counts, events: &[Event]) -> Vec<Event> {
    let at = events
        .iter()
        .map(|event| event.at)
        .max()
        .unwrap_or_default();
    let one = |((effect, id), count)| Event {
        at,
        lane: "effects".to_owned(),
        what: What::Effects { effect, id, count },
    };
    counts.into_iter().map(one).collect()
}
