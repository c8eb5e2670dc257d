//! What a handler does when it is left alone: where it can be disturbed, and whether it works at all.

use crate::attacks::session::{Finding, Session};
use crate::error::Error;
use crate::judge::verdict::{Event, What};
use crate::world::exchange::Exchange;
use crate::world::protocol::MessageKind;
use std::time::Duration;

/// What a single delivery does when nothing disturbs it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Baseline {
    pub(crate) exchanges: Vec<Exchange>,
    /// Until the sender had its answer.
    pub(crate) answered: Duration,
    /// Until nothing happened any more.
    pub(crate) ended: Duration,
    /// How long effects that were not there with the answer had to be waited for.
    pub(crate) waited: Duration,
    /// Whether a process ended by itself, as one does that is started for each delivery.
    pub(crate) ends: bool,
}

// === impl Baseline ===

impl Baseline {
    /// Watches two deliveries. The first one connects and prepares; what only the second one says is chatter.
    pub(crate) async fn watch(session: &mut Session<'_>) -> Result<Self, Error> {
        let first = Self::watch_one(session).await?;
        let mut second = Self::watch_one(session).await?;
        let twice = |exchange: &Exchange| {
            first
                .exchanges
                .iter()
                .any(|one| one.boundary == exchange.boundary)
        };
        second.exchanges.retain(twice);
        for (number, exchange) in (1..).zip(&mut second.exchanges) {
            exchange.number = number;
        }
        second.waited = second.follows().max(first.follows());
        second.ends |= first.ends;
        Ok(second)
    }

    async fn watch_one(session: &mut Session<'_>) -> Result<Self, Error> {
        let delivery = session.begin().await?;
        session.until_accepted(&delivery).await?;
        let finding = session.finish(&[&delivery]).await?;
        if let Some((_, seen)) = &finding.breach {
            let heard = last_heard(&finding.events);
            let log = session.world.log();
            return Err(Error::Baseline(format!("{seen}; {heard}{log}")));
        }
        expect_effects(session, &finding)?;
        let exchanges = session.world.recorder.exchanges();
        let answers = finding
            .events
            .iter()
            .filter(|event| matches!(event.what, What::Answered { .. }));
        let answered = answers.map(|event| event.at).max().unwrap_or_default();
        let ended = exchanges
            .last()
            .map(|exchange| exchange.at)
            .unwrap_or_default()
            .max(answered);
        Ok(Self {
            exchanges,
            answered,
            ended,
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
    pub(crate) fn says(&self) -> Vec<String> {
        let outward = self
            .exchanges
            .iter()
            .filter(|exchange| exchange.boundary.signature.outward);
        outward
            .map(|exchange| exchange.message.text.clone())
            .collect()
    }

    pub(crate) fn writes_after_answer(&self) -> bool {
        let after = self
            .exchanges
            .iter()
            .filter(|exchange| exchange.at > self.answered && exchange.boundary.signature.outward);
        after
            .filter(|exchange| exchange.message.kind >= MessageKind::Write)
            .count()
            > 0
    }
}

/// Also where the promise would allow none.
fn expect_effects(session: &Session<'_>, finding: &Finding) -> Result<(), Error> {
    for event in &finding.events {
        let What::Effects { effect, count, .. } = &event.what else {
            continue;
        };
        let expected = session
            .scenario
            .effects
            .iter()
            .find(|one| one.name == *effect);
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
    let told = |event: &Event| match &event.what {
        What::Answered { status, .. } => Some(format!("the last answer was {status}")),
        What::Unanswered { why, .. } => Some(format!("at the last attempt {why}")),
        What::Sent { .. }
        | What::Wire { .. }
        | What::Killed
        | What::Ended
        | What::Started
        | What::Paused
        | What::Resumed
        | What::Effects { .. } => None,
    };
    events
        .iter()
        .rev()
        .find_map(told)
        .unwrap_or_else(|| "nothing was heard".to_owned())
}

/// Whether the same statement was sent twice with other values of the same length, as made-up ids have.
pub(crate) fn vary(exchanges: &[Exchange]) -> bool {
    let inserts: Vec<&Exchange> = exchanges
        .iter()
        .filter(|exchange| {
            exchange.boundary.signature.outward
                && exchange.message.text.to_uppercase().starts_with("INSERT")
        })
        .collect();
    inserts.iter().enumerate().any(|(at, one)| {
        inserts
            .iter()
            .skip(at + 1)
            .any(|other| one.differs_in_values(other))
    })
}
