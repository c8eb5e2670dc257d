//! Reconciliation: once a minute all letters are looked at, those whose work has succeeded are closed, and the
//! others counted for the quotas.

use crate::gate::Gate;
use crate::letters::quota::Count;
use crate::letters::status::{self, Observed};
use semel::Error;
use semel::letter::Standing;
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
                Observed::Status(stands) if stands.standing == Standing::Succeeded => {}
                Observed::Status(_) | Observed::Damaged => {
                    let count = counts.entry(head.route).or_default();
                    *count = count.plus(Count::of(head.reason, head.bytes));
                }
            }
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
