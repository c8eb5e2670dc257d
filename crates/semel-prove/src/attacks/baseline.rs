//! What a handler does when it is left alone: where it can be disturbed, and whether it works at all.

use super::session::Session;
use super::trial::{Finding, Trial};
use crate::error::Error;
use crate::judge::timeline::{Event, What};
use crate::options::Profile;
use crate::world::exchange::Exchange;
use std::time::Duration;

/// Places to keep a run waiting.
const HOLD_POINTS_QUICK: usize = 2;
const HOLD_POINTS_FULL: usize = 12;

/// What a single delivery does when nothing disturbs it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Baseline {
    pub(crate) exchanges: Vec<Exchange>,
    /// Until the sender had its answer.
    pub(crate) answered: Duration,
    /// Until nothing happened any more.
    pub(crate) ended: Duration,
    /// How long effects that were not there with the answer had to be waited for.
    waited: Duration,
    /// Whether a process ended by itself, as one does that is started for each delivery.
    pub(crate) ends: bool,
}

// === impl Baseline ===

impl Baseline {
    /// Watches two deliveries. The first one connects and prepares; what only the second one says is background.
    pub(super) async fn watch(session: &mut Session<'_>) -> Result<Self, Error> {
        let first = Self::watch_one(session).await?;
        let mut second = Self::watch_one(session).await?;

        let seen = |it: &Exchange| {
            first
                .exchanges
                .iter()
                .any(|one| one.boundary == it.boundary)
        };
        second.exchanges.retain(seen);
        for (number, exchange) in (1..).zip(&mut second.exchanges) {
            exchange.number = number;
        }
        second.waited = second.follows().max(first.follows());
        second.ends |= first.ends;
        Ok(second)
    }

    async fn watch_one(session: &mut Session<'_>) -> Result<Self, Error> {
        let mut trial = Trial::begin(session).await?;
        trial.until_accepted().await?;
        let finding = trial.finish().await?;
        if let Some(constant) = constant_probe(session, &finding) {
            return Err(constant);
        }
        if let Some(breach) = &finding.breach {
            let (seen, heard) = (&breach.seen, last_heard(&finding.events));
            let log = session.world.log();
            return Err(Error::Baseline(format!("{seen}; {heard}{log}")));
        }
        expect_effects(session, &finding)?;
        let exchanges = session.world.recorder.exchanges();
        let answers = finding.events.iter();
        let answers = answers.filter(|event| matches!(event.what, What::Answered { .. }));
        let answered = answers.map(|event| event.at).max().unwrap_or_default();
        let last = exchanges.last().map(|exchange| exchange.at);
        Ok(Self {
            exchanges,
            answered,
            ended: last.unwrap_or_default().max(answered),
            waited: finding.waited,
            ends: finding.events.iter().any(|it| it.what == What::Ended),
        })
    }

    /// How long effects follow the answer.
    pub(crate) fn follows(&self) -> Duration {
        let seen = self.ended.saturating_sub(self.answered);
        seen.max(self.waited)
    }

    /// What it says to its dependencies.
    pub(crate) fn requests(&self) -> impl Iterator<Item = &Exchange> {
        self.exchanges.iter().filter(|it| it.is_request())
    }

    /// Where to keep a run waiting for an answer: before it writes first, before it settles last, and, if there is
    /// time, everywhere.
    pub(super) fn hold_points(&self, profile: Profile) -> Vec<Exchange> {
        let exchanges = &self.exchanges;
        let responses = || exchanges.iter().filter(|it| !it.is_request());
        let before = |at: usize| {
            let mut earlier = exchanges.iter().take(at).rev();
            earlier.find(|it| !it.is_request())
        };
        let writes = |it: &Exchange| it.is_request() && it.writes();
        let chosen = [
            exchanges.iter().position(writes).and_then(before),
            exchanges.iter().rposition(writes).and_then(before),
            responses().next(),
            responses().next_back(),
        ];
        let room = profile.pick(HOLD_POINTS_QUICK, HOLD_POINTS_FULL);
        let mut points: Vec<Exchange> = Vec::new();
        for exchange in chosen.into_iter().flatten().chain(responses()) {
            let known = points.iter().any(|it| it.boundary == exchange.boundary);
            if points.len() < room && !known {
                points.push(exchange.clone());
            }
        }
        points
    }
}

/// A probe that says the same before and after a delivery that was accepted and wrote something sees nothing at all.
fn constant_probe(session: &Session<'_>, finding: &Finding) -> Option<Error> {
    if !finding.events.iter().any(Event::is_known_success) {
        return None;
    }
    let exchanges = session.world.recorder.exchanges();
    let write = exchanges.iter().find(|it| it.is_request() && it.writes())?;
    let blind = finding.events.iter().find_map(|event| {
        let What::Effects {
            effect,
            id,
            count: 0,
        } = &event.what
        else {
            return None;
        };
        session.world.is_constant(effect).then_some((effect, id))
    });
    let (effect, id) = blind?;
    Some(Error::Probe {
        effect: effect.clone(),
        why: format!(
            "the probe says the same before and after delivery {id}, which was accepted and wrote `{}`: look at the probe \
             first, it must list ids and counts",
            write.message.text
        ),
    })
}

/// Also where the promise would allow none.
fn expect_effects(session: &Session<'_>, finding: &Finding) -> Result<(), Error> {
    for event in &finding.events {
        if let What::State {
            effect, version, ..
        } = &event.what
            && *version != 1
        {
            return Err(Error::Baseline(format!(
                "`{effect}` shows version {version} instead of 1"
            )));
        }
        let What::Effects { effect, count, .. } = &event.what else {
            continue;
        };
        let mut effects = session.scenario.effects.iter();
        let expected = effects.find(|one| one.name == *effect);
        let expected = expected.map_or(1, |one| one.expected);
        if *count != expected {
            return Err(Error::Baseline(format!(
                "it has `{effect}` {count} times instead of {expected}"
            )));
        }
    }
    Ok(())
}

/// What the sender was told last.
fn last_heard(events: &[Event]) -> String {
    for event in events.iter().rev() {
        if let What::Answered { status, .. } = &event.what {
            return format!("the last answer was {status}");
        }
        if let What::Unanswered { why, .. } = &event.what {
            return format!("at the last attempt {why}");
        }
    }
    "nothing was heard".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::exchange::tests::check_then_insert;

    #[test]
    fn run_is_kept_waiting_before_it_writes() {
        let baseline = Baseline {
            exchanges: check_then_insert(),
            ..Baseline::default()
        };
        let points = baseline.hold_points(Profile::Quick);
        let shapes = points.iter().map(|it| it.boundary.signature.shape.as_str());
        assert_eq!(shapes.collect::<Vec<_>>(), ["SELECT 0", "INSERT 0 1"]);
    }
}
