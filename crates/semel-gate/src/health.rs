//! What the gate does for its store on the side: asks whether it takes writes, and sweeps it.

use crate::gate::Gate;
use semel::store::StoreExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// How long the store may take to answer a health check.
pub(crate) const STORE_WITHIN: Duration = Duration::from_secs(2);

/// How often the store is asked although nobody asks the gate: what an operator changes on a server, as the eviction
/// policy of Redis, is noticed within this.
const WATCH_EVERY: Duration = Duration::from_secs(10);

/// A window of a sweep that removed so many records is followed by the next one at once.
const SWEEP_BUSY: u64 = 256;

/// The pause after a window that removed fewer: a store that is looked through page by page is not kept busy by it.
const SWEEP_PAUSE: Duration = Duration::from_secs(1);

/// The pause after a whole round: short while there is something to remove.
const SWEEP_REST: Duration = Duration::from_secs(60);

/// Whether the store took a write when it was last asked.
#[derive(Debug, Default)]
pub(crate) struct StoreHealth {
    refuses: AtomicBool,
}

/// Asks the store: why it would not take a claim now and record its end; `None` when it would.
pub(crate) async fn store_trouble(gate: &Gate) -> Option<String> {
    let trouble = match timeout(STORE_WITHIN, gate.semel.store().ready()).await {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some(format!("no answer within {STORE_WITHIN:?}")),
    };
    let trouble = match trouble {
        None => landing_trouble(gate).await,
        Some(why) => Some(why),
    };
    let refuses = &gate.store.refuses;
    refuses.store(trouble.is_some(), Ordering::Relaxed);
    trouble
}

/// Why rows of a route would not land now.
async fn landing_trouble(gate: &Gate) -> Option<String> {
    for route_state in &gate.routes {
        if let Some(landing) = &route_state.landing
            && let Err(error) = landing.ready(STORE_WITHIN).await
        {
            return Some(format!("landing of {}: {error}", route_state.settings.name));
        }
    }
    None
}

// === impl StoreHealth ===

impl StoreHealth {
    pub(crate) fn refuses(&self) -> bool {
        self.refuses.load(Ordering::Relaxed)
    }
}

/// Asks the store again and again, and tells when that changes.
pub(crate) async fn watch(gate: Arc<Gate>) {
    let mut before = None;
    loop {
        let now = store_trouble(&gate).await;
        match (&before, &now) {
            (None, Some(why)) => {
                tracing::error!(
                    why,
                    "the store does not take writes: not ready until it does"
                );
            }
            (Some(_), None) => tracing::warn!("the store takes writes again"),
            (None, None) | (Some(_), Some(_)) => {}
        }
        before = now;
        sleep(WATCH_EVERY).await;
    }
}

/// Removes what expired, a window at a time, at the pace at which it expires.
pub(crate) async fn sweep(gate: Arc<Gate>) {
    let (mut after, mut removed) = (None, 0);
    loop {
        let pause = match gate.semel.store().sweep(after.as_ref()).await {
            Ok(swept) => {
                removed += swept.removed;
                after = swept.next;
                match &after {
                    Some(_) if swept.removed >= SWEEP_BUSY => Duration::ZERO,
                    Some(_) => SWEEP_PAUSE,
                    None if removed > 0 => SWEEP_PAUSE,
                    None => SWEEP_REST,
                }
            }
            Err(error) => {
                tracing::warn!(%error, "a sweep failed; trying again later");
                after = None;
                SWEEP_REST
            }
        };
        if after.is_none() {
            removed = 0;
        }
        // Whoever is ready to run goes first.
        tokio::task::yield_now().await;
        sleep(pause).await;
    }
}
