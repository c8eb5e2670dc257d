//! Reconciliation: once a minute all letters are looked at, those whose work has succeeded are closed, and the
//! others counted for the quotas. Work that nobody delivers any more is parked.

use crate::gate::Gate;
use crate::letters::quota::Count;
use crate::letters::status::{self, LetterStatus, Observed};
use semel::Error;
use semel::letter::{LetterHead, Standing};
use semel::protocol::{Acted, State, act_by};
use semel::store::Letters;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::time::sleep;

/// How many letters are listed at once.
const PAGE_ITEMS: u32 = 1000;

/// Keeps on looking until the gate ends.
pub(crate) async fn run(gate: Arc<Gate>) {
    loop {
        if let Err(error) = round(&gate).await {
            tracing::warn!(%error, "the letters could not be looked at; trying again later");
        }
        sleep(gate.settings.reconcile_every).await;
    }
}

/// Looks at all letters once, one after the other: the store has other things to do.
async fn round(gate: &Gate) -> Result<(), Error> {
    let before: Vec<_> = gate
        .routes
        .iter()
        .map(|route_state| route_state.letters.since())
        .collect();
    let mut counts: HashMap<String, Count> = HashMap::new();
    let (letters, mut after) = (gate.letters.as_ref(), None);
    loop {
        let page = Letters::list(letters, after.as_ref(), PAGE_ITEMS).await?;
        for head in page.items {
            match status::see(letters, &head).await? {
                Observed::Status(stands) if stands.standing == Standing::Succeeded => continue,
                Observed::Status(stands) => park_abandoned(gate, &head, stands).await?,
                Observed::Damaged => {}
            }
            let count = counts.entry(head.route).or_default();
            *count = count.plus(Count::of(head.reason, head.bytes));
        }
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    for (route_state, before) in gate.routes.iter().zip(before) {
        let count = counts
            .remove(&route_state.settings.name)
            .unwrap_or_default();
        route_state.letters.counted(count, before);
        gate.metrics
            .letters_counted(&route_state.settings.name, count);
    }
    Ok(())
}

/// Parks work that nobody has claimed for as long as its sender may deliver again: from now on only a person will.
async fn park_abandoned(gate: &Gate, head: &LetterHead, stands: LetterStatus) -> Result<(), Error> {
    let (Standing::Unfinished(State::Waiting | State::Running), Some(fence)) =
        (stands.standing, stands.fence)
    else {
        return Ok(());
    };
    let Some(route_state) = gate.route_state(&head.route) else {
        return Ok(());
    };
    let idle = route_state.settings.delivers_for();
    let by = act_by("park", "the keeper", "nobody has delivered it for too long");
    match gate.semel.park(&stands.key, fence, idle, by).await? {
        Acted::Applied => {}
        // It is running, was tried not long ago, or has come to its end since.
        Acted::Refused | Acted::Gone(_) => return Ok(()),
    }
    gate.metrics.long_runs.abandoned(&head.route);
    tracing::error!(
        route = head.route, key = %stands.key, letter = %head.id, idle_s = idle.as_secs(),
        "work is abandoned: nobody has delivered it for as long as its sender may, and it has not succeeded; its record \
         is parked, redrive its letter (`semel letters redrive`) or resolve it (`semel records resolve`)"
    );
    Ok(())
}
