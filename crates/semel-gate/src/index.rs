//! The index: the sender's own names for deliveries, written to the store beside the claim, so that work can be found by
//! them for as long as it is remembered. Best effort: no delivery waits for it, and no claim reads it.

use crate::flow::Flow;
use crate::naming::Identity;
use bytes::Bytes;
use semel::store::{INDEX_ID_BYTES_MAX, StoreExt};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// How many names are being written at once; beyond it they are left out, rather than pile up behind a slow store.
const WRITES_MAX: usize = 64;

/// How long a write may take before it is given up.
const WRITE_WITHIN: Duration = Duration::from_secs(5);

/// Writes names, a bounded number of them at once.
#[derive(Debug)]
pub(crate) struct Index {
    writes: Arc<Semaphore>,
}

// === impl Index ===

impl Index {
    /// As the settings say; `None` keeps no index.
    pub(crate) fn of(wanted: bool) -> Option<Self> {
        wanted.then(|| Self {
            writes: Arc::new(Semaphore::new(WRITES_MAX)),
        })
    }

    /// Begins to write the names of a delivery of this work, and waits for nothing.
    pub(crate) fn note(&self, flow: &Flow, identity: &Identity) {
        let ids = ids(flow);
        let Ok(permit) = Arc::clone(&self.writes).try_acquire_owned() else {
            return;
        };
        let (gate, key) = (Arc::clone(&flow.gate), identity.key);
        let keep = flow.route.settings.terms(flow.source).retention;
        drop(flow.gate.deliveries.spawn(async move {
            let _permit = permit;
            let written = timeout(WRITE_WITHIN, gate.semel.store().index(&key, ids, keep)).await;
            if let Ok(Err(error)) = written {
                tracing::debug!(%key, %error, "the names of a delivery were not indexed");
            }
        }));
    }
}

/// What its sender calls a delivery, and the trace that it belongs to.
fn ids(flow: &Flow) -> Vec<Bytes> {
    let transport = &flow.transport;
    let names = [&transport.task_name, &transport.message_id];
    let names = names.into_iter().flatten().cloned();
    let ids = names.chain([flow.trace.trace_id()]).map(Bytes::from);
    ids.filter(|id| id.len() <= INDEX_ID_BYTES_MAX).collect()
}
