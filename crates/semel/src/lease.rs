//! Renewal: keeping the right to run while an effect runs, and knowing when it is over.

use crate::Outcome;
use crate::record::{Held, Lease};
use crate::store::Store;
use crate::work::{Failure, Work};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

/// How a lease came to its end.
pub(crate) enum Kept {
    /// The effect ended, and the run may say how.
    Ended(Result<Outcome, Failure>),
    /// The run was overtaken; its effect was cancelled.
    Stale,
}

/// Until when this process may count on its lease, by its own monotonic clock: counted from before
/// the call was sent, less a margin, so it ends before the store's own reckoning does.
#[derive(Clone, Debug)]
pub(crate) struct Term {
    until: Arc<Mutex<Instant>>,
}

/// A tenth of the lease is kept as margin, and never more than a second.
const MARGIN_MAX: Duration = Duration::from_secs(1);

/// How many times a lease is renewed in its own length.
const RENEWALS_PER_LEASE: u32 = 3;

/// Waits for the effect while renewing. Only `stale` cancels it: a run that was parked, or settled
/// by its own transaction, goes on to its end.
pub(crate) async fn keep(
    store: &dyn Store,
    lease: &Lease,
    work: &Work,
    term: &Term,
    mut effect: JoinHandle<Result<Outcome, Failure>>,
) -> Kept {
    let said = tokio::select! {
        biased;
        ended = &mut effect => ended.unwrap_or_else(|error| {
            Err(Failure::in_doubt(format!("the effect did not end by itself: {error}")))
        }),
        () = overtaken(store, lease, work, term) => {
            effect.abort();
            return Kept::Stale;
        }
        () = sleep(work.timeout) => {
            effect.abort();
            let timeout = work.timeout;
            Err(Failure::in_doubt(format!("the effect took longer than its timeout of {timeout:?}")))
        }
    };
    Kept::Ended(said)
}

/// Renews until somebody else owns the key. A store that cannot be reached is asked again: as long
/// as nobody else claims, a late renewal still counts.
async fn overtaken(store: &dyn Store, lease: &Lease, work: &Work, term: &Term) {
    loop {
        sleep(work.lease / RENEWALS_PER_LEASE).await;
        let sent = Instant::now();
        match store.renew(lease, work.lease, work.retention).await {
            Ok(Held::Applied(_) | Held::Already(_)) => term.prolong(sent, work.lease),
            Ok(Held::Settled(_) | Held::Parked) => std::future::pending().await,
            Ok(Held::Stale) => return,
            Err(why) => {
                tracing::warn!(key = %lease.key, %why, "a lease was not renewed; trying again");
            }
        }
    }
}

// === impl Term ===

impl Term {
    /// A term that begins now, before the claim is sent.
    pub(crate) fn from_now(lease: Duration) -> Self {
        Self {
            until: Arc::new(Mutex::new(end(Instant::now(), lease))),
        }
    }

    /// Whether no new effect may be started any more.
    pub(crate) fn is_over(&self) -> bool {
        *self.until.lock().expect("no holder of this lock panics") <= Instant::now()
    }

    fn prolong(&self, sent: Instant, lease: Duration) {
        *self.until.lock().expect("no holder of this lock panics") = end(sent, lease);
    }
}

fn end(sent: Instant, lease: Duration) -> Instant {
    sent + lease - (lease / 10).min(MARGIN_MAX)
}
