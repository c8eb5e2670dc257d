//! Renewal: keeping the right to run while an effect runs, and knowing when it is over.

use crate::Outcome;
use crate::record::{Held, Lease};
use crate::store::{Store, StoreExt};
use crate::work::{Failure, Work};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// How a lease came to its end.
pub(crate) enum EffectEnded {
    /// The effect ended, and the run may say how.
    Said(Result<Outcome, Failure>),
    /// The run was overtaken; its effect was cancelled.
    Stale,
}

/// How long this process may count on its lease, by its own monotonic clock: counted from before
/// the call was sent, less a margin, so it ends before the store's own reckoning does.
#[derive(Clone, Debug)]
pub(crate) struct Term {
    lease: Duration,
    asked: Instant,
    sent: Arc<Mutex<Instant>>,
}

/// A tenth of the lease is kept as margin, and never more than a second.
const MARGIN_MAX: Duration = Duration::from_secs(1);

/// How many times a lease is renewed in its own length.
const RENEWALS_PER_LEASE: u32 = 3;

/// How many times a failed renewal would be tried again in the length of a lease.
const RENEWAL_RETRIES_PER_LEASE: u32 = 10;

/// How long a cancelled effect may take to end.
const CANCEL_WAIT_MAX: Duration = Duration::from_secs(1);

/// Waits for the effect while renewing. Only `stale` cancels it: a run that was parked, or settled
/// by its own transaction, goes on to its end.
pub(crate) async fn run_while_renewing(
    store: &dyn Store,
    lease: &Lease,
    work: &Work,
    term: &Term,
    mut effect: JoinHandle<Result<Outcome, Failure>>,
) -> EffectEnded {
    let said = tokio::select! {
        biased;
        ended = &mut effect => ended.unwrap_or_else(|error| {
            // What a panic says is for the log: a failure may be told to whoever asked.
            tracing::error!(key = %lease.key, %error, "an effect did not end by itself");
            Err(Failure::in_doubt("the effect did not end by itself"))
        }),
        () = overtaken(store, lease, work, term) => {
            cancel(effect).await;
            return EffectEnded::Stale;
        }
        () = sleep(work.timeout) => {
            cancel(effect).await;
            let timeout = work.timeout;
            Err(Failure::in_doubt(format!("the effect took longer than its timeout of {timeout:?}")))
        }
    };
    EffectEnded::Said(said)
}

/// Renews until somebody else owns the key. A store that cannot be reached is asked again: as long
/// as nobody else claims, a late renewal still counts.
async fn overtaken(store: &dyn Store, lease: &Lease, work: &Work, term: &Term) {
    let mut renew_at = term.renew_at();
    loop {
        sleep_until(renew_at).await;
        let sent = Instant::now();
        match store.renew(lease, work.lease, work.retention).await {
            Ok(Held::Applied(_) | Held::Already(_)) => {
                term.begin_at(sent);
                renew_at = term.renew_at();
            }
            Ok(Held::Settled(_) | Held::Parked) => std::future::pending().await,
            Ok(Held::Stale) => return,
            Err(why) => {
                tracing::warn!(key = %lease.key, %why, "a lease was not renewed; trying again");
                renew_at = Instant::now() + work.lease / RENEWAL_RETRIES_PER_LEASE;
            }
        }
    }
}

/// Cancels the effect and sees it end, so that it cannot overlap the next run; one that does not
/// yield is not waited for long.
async fn cancel(effect: JoinHandle<Result<Outcome, Failure>>) {
    effect.abort();
    drop(timeout(CANCEL_WAIT_MAX, effect).await);
}

// === impl Term ===

impl Term {
    /// A term that begins now, before the claim is sent, for a caller that asked then.
    pub(crate) fn from_now(lease: Duration, asked: Instant) -> Self {
        Self {
            lease,
            asked,
            sent: Arc::new(Mutex::new(Instant::now())),
        }
    }

    /// Time since the caller asked, which may have waited for a slot or for another run.
    pub(crate) fn waited(&self) -> Duration {
        self.asked.elapsed()
    }

    /// Whether no new effect may be started any more.
    pub(crate) fn is_over(&self) -> bool {
        self.ends_at() <= Instant::now()
    }

    /// When this process can no longer count on it.
    pub(crate) fn ends_at(&self) -> Instant {
        let margin = (self.lease / 10).min(MARGIN_MAX);
        *self.lock() + self.lease - margin
    }

    pub(crate) fn renew_at(&self) -> Instant {
        *self.lock() + self.lease / RENEWALS_PER_LEASE
    }

    pub(crate) fn begin_at(&self, sent: Instant) {
        *self.lock() = sent;
    }

    fn lock(&self) -> MutexGuard<'_, Instant> {
        self.sent.lock().expect("no holder of this lock panics")
    }
}
