//! The keeper: once a minute it looks at all letters, closes those whose work has succeeded, and counts the
//! others for the quotas.

use crate::gate::Gate;
use crate::quota::Count;
use crate::standing::{self, Seen};
use semel::Error;
use semel::letter::Standing;
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
        sleep(gate.settings.keeper_every).await;
    }
}

/// Looks at all letters once, one after the other: the store has other things to do.
async fn round(gate: &Gate) -> Result<(), Error> {
    let before: Vec<_> = gate.lanes.iter().map(|lane| lane.letters.since()).collect();
    let mut counts: HashMap<String, Count> = HashMap::new();
    let (store, mut after) = (gate.semel.store(), None);
    loop {
        let page = store.letter_list(after.as_ref(), PAGE_ITEMS).await?;
        for head in page.items {
            match standing::see(store, &head).await? {
                Seen::Stands(stands) if stands.standing == Standing::Succeeded => {}
                Seen::Stands(_) | Seen::Damaged => {
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
    for (lane, before) in gate.lanes.iter().zip(before) {
        let count = counts.remove(&lane.route.name).unwrap_or_default();
        lane.letters.counted(count, before);
        gate.metrics.letters_counted(&lane.route.name, count);
    }
    Ok(())
}
