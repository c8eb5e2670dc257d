//! `Semel::run`: claim → effect while renewing → record. The library's one flow.

mod claiming;
mod recording;
mod operator;

use crate::Outcome;
use crate::lease::{EffectEnded, run_while_renewing};
use crate::pending::{Paused, PendingOutcome, PendingOutcomes};
use crate::record::{Settled, State};
use crate::settled_cache::{Recorded, SettledCache};
use crate::single_flight::{Joined, Leader, SingleFlight};
use crate::step::Run;
use crate::store::{Error, Sharing, Store};
use crate::work::{Failure, Work};
use claiming::ClaimEnded;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// Runs pieces of work once each, on one store. Cheap to clone.
///
/// ```
/// use semel::memory::MemoryStore;
/// use semel::work::Work;
/// use semel::{Ended, Fingerprint, Key, Outcome, Semel};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let semel = Semel::new(MemoryStore::new());
/// let work = Work::new(Key::from_bytes([1; 32]), Fingerprint::of(b"order 7"));
///
/// let first = semel.run(work.clone(), |_| async { Ok(Outcome::ok("charged")) }).await.unwrap();
/// assert!(matches!(first, Ended::Ran(_)));
///
/// let again = semel.run(work, |_| async { panic!("a settled key never runs again") }).await.unwrap();
/// assert!(matches!(&again, Ended::Replayed(r) if r.outcome == Outcome::ok("charged")));
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct Semel {
    inner: Arc<Inner>,
}

/// Limits of the part in front of the store.
///
/// ```
/// use semel::memory::MemoryStore;
/// use semel::{Semel, Settings};
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// let settings = Settings { shared_cache: Duration::ZERO, ..Settings::default() };
/// let semel = Semel::with_settings(Arc::new(MemoryStore::new()), settings);
/// # drop(semel);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How long a settled outcome is answered from memory when other processes share the store.
    pub shared_cache: Duration,
    /// How many settled outcomes are kept in memory.
    pub cache_entries_max: usize,
    /// How many bytes of settled outcomes are kept in memory.
    pub cache_bytes_max: usize,
    /// How many duplicates may wait for one run in this process.
    pub waiters_max: usize,
    /// The largest body that is recorded; a larger one is not kept, and the work still succeeded.
    pub answer_bytes_max: usize,
    /// How long to try to record an outcome before the caller is told that it is pending.
    pub record_within: Duration,
    /// How many outcomes may wait for the store before nothing more is claimed. Runs that are under
    /// way then still end, so there may be as many more as there were runs.
    pub pending_max: usize,
    /// How many bytes of their bodies are kept; beyond that an outcome is recorded without its body.
    pub pending_bytes_max: usize,
}

/// What became of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Ended {
    /// This delivery ran the effect, and this is recorded.
    Ran(Arc<Recorded>),
    /// The work was settled by another delivery: this is what was recorded.
    Replayed(Arc<Recorded>),
    /// The effect ran and failed; it may be tried again, or is parked.
    Failed(Arc<Failed>),
    /// The effect ran, but the store could not be told yet; it is still being tried.
    Unrecorded(Arc<Recorded>),
    /// The effect ran, and records its success itself, and the store could not be asked yet whether
    /// it has; nothing is recorded by guess.
    Unread,
    /// Somebody else is running it.
    Busy {
        /// When to ask again.
        retry_after: Duration,
    },
    /// It failed earlier, and its next run is not due yet.
    NotYet {
        /// When it is due.
        retry_after: Duration,
    },
    /// Too much work is in hand; nothing was claimed or run.
    Full {
        /// When to ask again.
        retry_after: Duration,
    },
    /// A person must look first.
    Parked,
    /// The key is known with another payload.
    Mismatched,
    /// This run was overtaken: another run, or an operator, owns the key now.
    Stale,
}

/// A run that failed without settling the work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// What the effect said.
    pub failure: Failure,
    /// `Waiting` or `Parked`.
    pub state: State,
}

#[derive(Debug)]
struct Inner {
    store: Arc<dyn Store>,
    settings: Settings,
    single_flight: Arc<SingleFlight>,
    settled: SettledCache,
    outcomes: Arc<PendingOutcomes>,
    /// Room for claims that were given up unanswered and may have to be given back.
    unanswered: Arc<Semaphore>,
}

/// The first pause before a claim is tried again, and what it is doubled up to.
pub(crate) const POLL_FIRST: Duration = Duration::from_millis(20);
pub(crate) const POLL_MAX: Duration = Duration::from_millis(500);

// === impl Semel ===

impl Semel {
    /// On this store, with the default limits.
    pub fn new(store: impl Store) -> Self {
        Self::with_settings(Arc::new(store), Settings::default())
    }

    /// On this store, with limits of the caller's.
    #[must_use]
    pub fn with_settings(store: Arc<dyn Store>, settings: Settings) -> Self {
        let settled = SettledCache::new(settings.cache_entries_max, settings.cache_bytes_max);
        let outcomes = PendingOutcomes::new(settings.pending_max, settings.pending_bytes_max);
        Self {
            inner: Arc::new(Inner {
                store,
                settings,
                single_flight: Arc::default(),
                settled,
                outcomes: Arc::new(outcomes),
                unanswered: Arc::new(Semaphore::new(claiming::UNANSWERED_MAX)),
            }),
        }
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &dyn Store {
        self.inner.store.as_ref()
    }

    /// Why nothing is claimed for the time being, if so: the store does not take an outcome that is
    /// in hand, or too many of them wait for it. Deliveries of settled work are still answered from
    /// memory, those of work in hand from what is known; all others fail with `Unavailable`.
    #[must_use]
    pub fn paused(&self) -> Option<Paused> {
        self.inner.outcomes.paused()
    }

    /// How many outcomes wait for the store because it did not take them at the first try.
    #[must_use]
    pub fn pending_count(&self) -> usize {
        self.inner.outcomes.count()
    }

    /// The successes and final failures that the store does not have yet.
    #[must_use]
    pub fn pending(&self) -> Vec<PendingOutcome> {
        self.inner.outcomes.all()
    }

    /// Waits until no outcome is in hand: each is recorded, or there is no use in recording it.
    pub async fn pending_recorded(&self) {
        self.inner.outcomes.emptied().await;
    }

    /// Runs the effect unless this work was settled, is running or must wait; records what became
    /// of it. The effect has a task of its own: a caller that hangs up does not cancel it.
    ///
    /// # Errors
    /// When the store could not be asked before the effect ran: nothing was run.
    pub async fn run<E, F>(&self, work: Work, effect: E) -> Result<Ended, Error>
    where
        E: FnOnce(Run) -> F + Send + 'static,
        F: Future<Output = Result<Outcome, Failure>> + Send + 'static,
    {
        if let Some(recorded) = self.inner.settled.get(&work) {
            return Ok(Ended::Replayed(recorded));
        }
        work.validate()?;
        let asked = Instant::now();
        let busy = Ended::Busy {
            retry_after: work.lease,
        };
        match self
            .inner
            .single_flight
            .join(&work, self.inner.settings.waiters_max)
        {
            Joined::Leader(leader) => self.lead(leader, work, asked, effect).await,
            Joined::Follower(follower) => match follower.wait(work.patience()).await {
                Some(finished) => finished.map(Ended::for_attached),
                None => Ok(busy),
            },
            Joined::Mismatched => Ok(Ended::Mismatched),
            Joined::Full => Ok(busy),
        }
    }

    async fn lead<E, F>(
        &self,
        leader: Leader,
        work: Work,
        asked: Instant,
        effect: E,
    ) -> Result<Ended, Error>
    where
        E: FnOnce(Run) -> F + Send + 'static,
        F: Future<Output = Result<Outcome, Failure>> + Send + 'static,
    {
        let semel = self.clone();
        let task = tokio::spawn(async move {
            let ended = semel.attempt(&work, asked, effect).await;
            leader.finish(&ended);
            ended
        });
        task.await
            .map_err(|error| Error::bug(format!("the task of a run failed: {error}")))?
    }

    /// The one flow: claim → effect while renewing → record.
    async fn attempt<E, F>(&self, work: &Work, asked: Instant, effect: E) -> Result<Ended, Error>
    where
        E: FnOnce(Run) -> F + Send + 'static,
        F: Future<Output = Result<Outcome, Failure>> + Send + 'static,
    {
        // Whoever led this key before put its outcome there before it finished.
        if let Some(told) = self.inner.outcomes.of(work) {
            return Ok(told);
        }
        let (lease, term, _slot) = match self.claim(work, asked).await? {
            ClaimEnded::Granted { lease, term, slot } => (lease, term, slot),
            ClaimEnded::Ended(ended) => return Ok(ended),
        };
        if term.is_over() {
            return self.give_back(&lease).await;
        }
        let run = Run::new(
            Arc::clone(&self.inner.store),
            lease.clone(),
            work.in_doubt,
            term.clone(),
        );
        match run_while_renewing(
            self.store(),
            &lease,
            work,
            &term,
            tokio::spawn(async move { effect(run).await }),
        )
        .await
        {
            EffectEnded::Said(said) => Ok(self.record(&lease, work, &term, said).await),
            EffectEnded::Stale => Ok(Ended::Stale),
        }
    }

    fn remember(&self, work: &Work, settled: &Settled) -> Result<Arc<Recorded>, Error> {
        let outcome = Outcome::decode(&settled.result)?;
        let recorded = Arc::new(Recorded {
            ending: settled.ending,
            outcome,
        });
        self.cache(work, &recorded, settled.keep);
        Ok(recorded)
    }

    fn cache(&self, work: &Work, recorded: &Arc<Recorded>, keep: Duration) {
        let keep = match self.store().sharing() {
            Sharing::OneProcess => keep,
            Sharing::Shared => keep.min(self.inner.settings.shared_cache),
        };
        self.inner.settled.put(work, recorded, keep);
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "jitter: nothing that is stored depends on it"
)]
pub(crate) fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(rand::random_range(0.5..1.0))
}

// === impl Ended ===

impl Ended {
    /// What a delivery hears that attached to the one that ran.
    fn for_attached(self) -> Self {
        match self {
            Self::Ran(recorded) => Self::Replayed(recorded),
            ended @ (Self::Replayed(_)
            | Self::Failed(_)
            | Self::Unrecorded(_)
            | Self::Unread
            | Self::Busy { .. }
            | Self::NotYet { .. }
            | Self::Full { .. }
            | Self::Parked
            | Self::Mismatched
            | Self::Stale) => ended,
        }
    }
}

// === impl Settings ===

impl Default for Settings {
    fn default() -> Self {
        Self {
            shared_cache: Duration::from_secs(5),
            cache_entries_max: 100_000,
            cache_bytes_max: 8 * 1024 * 1024,
            waiters_max: 64,
            answer_bytes_max: 1024 * 1024,
            record_within: Duration::from_secs(10),
            pending_max: 1000,
            pending_bytes_max: 64 * 1024 * 1024,
        }
    }
}
