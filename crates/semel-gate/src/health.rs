//! Health of the store and the landings, checked beside the deliveries; and the store's sweep.

use crate::gate::Gate;
use semel::store::StoreExt;
use std::fmt;
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

/// Reasons why deliveries cannot take effect now.
#[derive(Debug, Default)]
pub(crate) struct Trouble {
    pub(crate) store: Option<String>,
    /// Routes whose rows would not land, with the reasons.
    landings: Vec<(String, String)>,
    /// No route can work.
    pub(crate) is_total: bool,
}

/// Asks the store for a write, and every landing for a row.
pub(crate) async fn trouble(gate: &Gate) -> Trouble {
    let store = match timeout(STORE_WITHIN, gate.semel.store().ready()).await {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some(format!("no answer within {STORE_WITHIN:?}")),
    };
    gate.store.refuses.store(store.is_some(), Ordering::Relaxed);
    let (mut landings, mut working) = (Vec::new(), 0);
    for route in &gate.routes {
        let landing = match &route.landing {
            Some(landing) => landing.ready(STORE_WITHIN).await.err(),
            None => None,
        };
        let misses_store = store.is_some() && route.settings.keeps_records();
        working += usize::from(landing.is_none() && !misses_store);
        landings.extend(landing.map(|why| (route.settings.name.clone(), why.to_string())));
    }
    Trouble {
        is_total: working == 0 && (store.is_some() || !landings.is_empty()),
        store,
        landings,
    }
}

// === impl Trouble ===

impl Trouble {
    pub(crate) const fn is_none(&self) -> bool {
        self.store.is_none() && self.landings.is_empty()
    }

    /// The store, or the names of routes that do not land.
    fn places(&self) -> Vec<&str> {
        let store = self.store.as_ref().map(|_| "store");
        let routes = self.landings.iter().map(|(route, _)| route.as_str());
        store.into_iter().chain(routes).collect()
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let landing = |(route, why): &(String, String)| format!("landing of {route}: {why}");
        let landings = self.landings.iter().map(landing);
        let all: Vec<_> = self.store.iter().cloned().chain(landings).collect();
        f.write_str(&all.join("; "))
    }
}

// === impl StoreHealth ===

impl StoreHealth {
    pub(crate) fn refuses(&self) -> bool {
        self.refuses.load(Ordering::Relaxed)
    }
}

/// Asks again and again, and logs each change.
pub(crate) async fn watch(gate: Arc<Gate>) {
    let mut before = Trouble::default();
    loop {
        let now = trouble(&gate).await;
        if now.places() != before.places() {
            match &now.store {
                _ if now.is_none() => {
                    tracing::warn!("the store and all landings take writes again")
                }
                Some(_) => {
                    tracing::error!(why = %now, "the store does not take writes: routes with records are not ready until it does");
                }
                None => {
                    tracing::error!(why = %now, "rows do not land: these routes are not ready until they do")
                }
            }
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
