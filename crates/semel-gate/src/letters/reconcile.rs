//! Reconciliation: once a minute the keeper looks at all letters. It closes those whose work has succeeded, counts the others for
//! the quotas, keeps their records from expiring, and alerts an operator once per letter whose next delivery is overdue.
//! Silence parks nothing: a fresh delivery still runs the work.

use crate::gate::{Gate, RouteState};
use crate::letters::quota::Count;
use crate::letters::status::{self, LetterStatus, Observed};
use jiff::Timestamp;
use semel::Error;
use semel::clock::Time;
use semel::letter::{LetterHead, LetterId, Mark, Marked, Reason, Standing};
use semel::protocol::State;
use semel::store::{Letters, StoreExt};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Number of letters in one page of a list.
const PAGE_ITEMS: u32 = 1000;

/// Shortest retention of a record that an open letter refers to: the keeper may be away for some hours.
const RETENTION_MIN: Duration = Duration::from_secs(24 * 3600);

/// Number of times that a record is retained within its retention.
const RETAINS_PER_RETENTION: u32 = 4;

/// The keeper's memory: when it last retained the record of a letter.
type Retained = HashMap<LetterId, Instant>;

/// Looks at all letters until the gate ends.
pub(crate) async fn run(gate: Arc<Gate>) {
    let mut retained = Retained::new();
    loop {
        if let Err(error) = round(&gate, &mut retained).await {
            tracing::warn!(%error, "letters not reconciled; trying again later");
        }
        sleep(gate.settings.reconcile_every).await;
    }
}

/// Looks at all letters once, one after the other: the store has other things to do.
async fn round(gate: &Gate, retained: &mut Retained) -> Result<(), Error> {
    let before: Vec<_> = gate
        .routes
        .iter()
        .map(|route_state| (route_state.letters.since(), route_state.open_letters.all()))
        .collect();
    let mut counts: HashMap<String, Count> = HashMap::new();
    let (mut open, mut kept) = (HashSet::new(), Retained::new());
    let (letters, mut after) = (gate.letters.as_ref(), None);
    loop {
        let page = Letters::list(letters, after.as_ref(), PAGE_ITEMS).await?;
        for mut head in page.items {
            match status::see(letters, &head).await? {
                Observed::Status(stands) if stands.standing == Standing::Succeeded => continue,
                Observed::Status(stands) => {
                    if let Some(route) = gate.route_state(&head.route) {
                        head.alarmed |= alarm_if_overdue(gate, route, &head, stands).await?;
                        if let Some(at) = retain(gate, route, &head, stands, retained).await? {
                            kept.insert(head.id, at);
                        }
                    }
                }
                Observed::Damaged => {}
            }
            // Other work under its key may have ended: after that, its duplicates are no longer refused.
            if head.reason != Reason::Mismatched {
                open.insert(head.id);
            }
            let count = counts.entry(head.route.clone()).or_default();
            *count = count.plus(Count::of_head(&head));
        }
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    *retained = kept;
    for (route_state, (before, known)) in gate.routes.iter().zip(before) {
        let name = &route_state.settings.name;
        for closed in known.iter().filter(|id| !open.contains(*id)) {
            route_state.open_letters.drop(closed);
        }
        let count = counts.remove(name).unwrap_or_default();
        route_state.letters.counted(count, before);
        gate.metrics.letters.counted(name, count);
    }
    Ok(())
}

/// Retention of a record that an open letter of this route refers to.
pub(crate) fn retention(route: &RouteState) -> Duration {
    route.settings.retention().max(RETENTION_MIN)
}

/// Keeps the record of unfinished work from expiring while a letter refers to it: a redrive must know what has run. Returns the
/// time at which it was last done.
async fn retain(
    gate: &Gate,
    route: &RouteState,
    head: &LetterHead,
    stands: LetterStatus,
    retained: &Retained,
) -> Result<Option<Instant>, Error> {
    match stands.standing {
        Standing::Unfinished(State::Running | State::Waiting | State::Failed) => {}
        Standing::Unfinished(State::Parked | State::Succeeded)
        | Standing::Succeeded
        | Standing::NotRun
        | Standing::Unknown => return Ok(None),
    }
    let retention = retention(route);
    match retained.get(&head.id) {
        Some(at) if at.elapsed() < retention / RETAINS_PER_RETENTION => return Ok(Some(*at)),
        Some(_) | None => {}
    }
    let now = Instant::now();
    // A record that has ended or gone meanwhile is seen in the next round.
    let _acted = gate.letters.retain(&stands.key, retention).await?;
    Ok(Some(now))
}

/// Alerts an operator when the next delivery of unfinished work is overdue, once per letter; returns whether it did.
async fn alarm_if_overdue(
    gate: &Gate,
    route: &RouteState,
    head: &LetterHead,
    stands: LetterStatus,
) -> Result<bool, Error> {
    if head.reason != Reason::Unfinished || head.alarmed {
        return Ok(false);
    }
    let last = stands
        .due_at
        .map_or(head.created_at, |at| at.max(head.created_at));
    if last.plus(route.settings.gap()) > now() {
        return Ok(false);
    }
    match gate.letters.mark(&head.id, Mark::Alarmed).await? {
        Marked::Applied => route.alarmed(&gate.metrics, &head.id, Some(stands.key)),
        Marked::Gone => return Ok(false),
    }
    Ok(true)
}

/// The gate's own clock, compared with the store's times: a gap is minutes and hours long.
#[allow(
    clippy::disallowed_methods,
    reason = "an alarm is for people; nothing that is stored depends on it"
)]
fn now() -> Time {
    Time(u64::try_from(Timestamp::now().as_microsecond()).unwrap_or_default())
}
