//! Deliveries of the first trials come again at the end of the run: what was remembered for seconds only is forgotten.

use super::{Error, Session, Trial};
use crate::judge::timeline::Event;
use crate::world::clock::SEEN_WITHIN;
use crate::world::sender::{Delivery, Payload};
use crate::world::start::WAITED_MAX;
use std::time::Duration;
use tokio::time::Instant;

/// How many come again.
const REPEATS_QUICK: usize = 3;
pub(super) const REPEATS_FULL: usize = 12;

/// A delivery that was accepted, had its effect and may come again later.
#[derive(Clone, Debug)]
pub(super) struct EarlyDelivery {
    delivery: Delivery,
    /// What its sender did and heard.
    events: Vec<Event>,
    began: Instant,
}

pub(super) async fn run(session: &mut Session<'_>) -> Result<(), Error> {
    let repeats = session.options.profile.pick(REPEATS_QUICK, REPEATS_FULL);
    let early: Vec<EarlyDelivery> = session.early.iter().take(repeats).cloned().collect();
    let Some(began) = early.first().map(|first| first.began) else {
        session.explain("no delivery of the run was accepted and had its effect");
        return Ok(());
    };
    let ahead = wait(session, began).await;
    let covered = seconds(began.elapsed() + ahead.unwrap_or_default());
    let clock = if ahead.is_some() {
        ", by the clock of its processes: those of servers, and of programs that libfaketime does not reach, were not put forward"
    } else {
        ""
    };
    session.remark(format!(
        "after {covered}{clock}; a memory that lives longer was not tried: deliver.redeliver_after_ms"
    ));
    for one in early {
        if again(session, one, ahead.unwrap_or_default()).await? {
            break;
        }
    }
    session.world.put_clock_forward(Duration::ZERO);
    Ok(())
}

/// Until the first delivery is as old as the scenario wants, or is thought to be so: how far the clock was put forward.
async fn wait(session: &Session<'_>, began: Instant) -> Option<Duration> {
    let after = session.scenario.deliver.redeliver_after()?;
    let rest = after.saturating_sub(began.elapsed());
    if after > WAITED_MAX && session.world.put_clock_forward(rest) {
        tokio::time::sleep(SEEN_WITHIN).await;
        return Some(rest);
    }
    let patience = session.options.profile.pick(WAITED_MAX, after);
    tokio::time::sleep(rest.min(patience)).await;
    None
}

fn seconds(span: Duration) -> String {
    format!("{:.1} s", span.as_secs_f64())
}

async fn again(
    session: &mut Session<'_>,
    early: EarlyDelivery,
    ahead: Duration,
) -> Result<bool, Error> {
    let later = early.began.elapsed() + ahead;
    session.settle(&early.delivery.id);
    let mut trial = Trial::begin_again(session, early.delivery).await?;
    trial.again(trial.target()).await?;
    let mut finding = trial.finish().await?;
    for event in &mut finding.events {
        event.at += later;
    }
    finding.events.splice(..0, early.events);
    if let Some(breach) = &mut finding.breach {
        breach.seen = format!("once more after {}: {}", seconds(later), breach.seen);
    }
    Ok(session.round.tally.add(finding, true))
}

// === impl EarlyDelivery ===

impl EarlyDelivery {
    /// None: it is not one delivery that was accepted as it was meant.
    pub(super) fn new(deliveries: &[Delivery], events: &[Event]) -> Option<Self> {
        let [delivery] = deliveries else { return None };
        let accepted = events.iter().any(Event::is_known_success);
        let plain = delivery.payload == Payload::Default && delivery.variant().is_none();
        let lasted = events.iter().map(|event| event.at).max()?;
        (accepted && plain).then(|| Self {
            delivery: delivery.clone(),
            events: events
                .iter()
                .filter(|it| it.is_senders())
                .cloned()
                .collect(),
            began: Instant::now() - lasted,
        })
    }
}
