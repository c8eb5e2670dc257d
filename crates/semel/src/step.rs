//! Steps: named parts of a run, each with a remembered result.

use crate::Key;
use crate::lease::Term;
use crate::record::{Fence, Held, InDoubt, Lease, StepBegun};
use crate::run::{POLL_FIRST, jittered};
use crate::store::{Error, Store, StoreExt};
use crate::work::Failure;
use bytes::Bytes;
use std::collections::HashSet;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex};
use tokio::time::sleep;

/// How often a step's call is made before the store counts as unavailable.
const STEP_TRIES_MAX: u32 = 3;

/// One execution under a lease, as its effect sees it.
pub struct Run {
    store: Arc<dyn Store>,
    lease: Lease,
    in_doubt: InDoubt,
    term: Term,
    names: Mutex<HashSet<String>>,
}

/// What a step's effect is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The step's own key, the same in every run of the work: hand it to the downstream as its
    /// idempotency key.
    pub key: Key,
    /// The run's fence.
    pub fence: Fence,
}

// === impl Run ===

impl Run {
    pub(crate) fn new(store: Arc<dyn Store>, lease: Lease, in_doubt: InDoubt, term: Term) -> Self {
        Self {
            store,
            lease,
            in_doubt,
            term,
            names: Mutex::default(),
        }
    }

    /// The right under which this run runs: key, fence, attempt. Hand it to
    /// `semel_postgres::complete_in` to complete inside a transaction.
    #[must_use]
    pub const fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Whether the run before this one may or may not have had its effect. Under [`InDoubt::Probe`] find out before you do
    /// anything. It happened: give back its outcome. It did not, and will not any more: go on as if there had been no run. Nobody
    /// can say: [`Failure::still_in_doubt`], or [`Failure::park`].
    ///
    /// ```
    /// use semel::memory::MemoryStore;
    /// use semel::protocol::InDoubt;
    /// use semel::work::{Failure, Work};
    /// use semel::{Fingerprint, Key, Outcome, Semel};
    ///
    /// # async fn transfer_of(_: &Key) -> Result<Option<&'static str>, String> { Ok(None) }
    /// # async fn transfer(_: &Key) -> Result<&'static str, Failure> { Ok("receipt 1") }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// let semel = Semel::new(MemoryStore::new());
    /// let work = Work::new(Key::from_bytes([1; 32]), Fingerprint::of(b"order 7"));
    /// let ended = semel.run(work.in_doubt(InDoubt::Probe), |run| async move {
    ///     if run.in_doubt() {
    ///         match transfer_of(&run.lease().key).await {
    ///             Ok(Some(receipt)) => return Ok(Outcome::ok(receipt)),
    ///             Ok(None) => {}
    ///             Err(why) => return Err(Failure::still_in_doubt(why)),
    ///         }
    ///     }
    ///     transfer(&run.lease().key).await.map(Outcome::ok)
    /// });
    /// # assert!(matches!(ended.await.unwrap(), semel::Ended::Ran(_)));
    /// # });
    /// ```
    #[must_use]
    pub const fn in_doubt(&self) -> bool {
        self.lease.in_doubt
    }

    /// Does a named part of the run once. A part that was done in an earlier run of the same work
    /// is not done again: its result is given back. A part that an earlier run began and never
    /// finished is in doubt, and the work's policy decides.
    ///
    /// # Errors
    /// The effect's own failure; or one that ends the run when the step cannot be begun or
    /// recorded. Pass it on with `?`.
    ///
    /// ```
    /// use semel::memory::MemoryStore;
    /// use semel::work::Work;
    /// use semel::{Ended, Fingerprint, Key, Outcome, Semel};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// let semel = Semel::new(MemoryStore::new());
    /// let work = Work::new(Key::from_bytes([1; 32]), Fingerprint::of(b"order 7"));
    /// let ended = semel.run(work, |run| async move {
    ///     let receipt = run.step("charge", |_step| async { Ok("receipt 1".into()) }).await?;
    ///     run.step("ship", |_step| async { Ok("parcel 9".into()) }).await?;
    ///     Ok(Outcome::ok(receipt))
    /// });
    /// assert!(matches!(ended.await.unwrap(), Ended::Ran(r) if r.outcome == Outcome::ok("receipt 1")));
    /// # });
    /// ```
    pub async fn step<E, F>(&self, name: &str, effect: E) -> Result<Bytes, Failure>
    where
        E: FnOnce(Step) -> F,
        F: Future<Output = Result<Bytes, Failure>>,
    {
        self.use_name(name)?;
        if let Some(result) = self.begin(name).await? {
            return Ok(result);
        }
        if self.term.is_over() {
            return Err(lost(name));
        }
        let step = Step {
            key: self.lease.key.step(self.lease.born, name),
            fence: self.lease.fence,
        };
        let result = effect(step).await?;
        let held = with_retries(|| self.store.step_complete(&self.lease, name, &result)).await;
        match held.map_err(|error| unrecorded(name, &error))? {
            Held::Applied(_) | Held::Already(_) => Ok(result),
            Held::Settled(_) | Held::Parked | Held::Stale => Err(lost(name)),
        }
    }

    /// Begins the step; gives the remembered result of one that was done.
    async fn begin(&self, name: &str) -> Result<Option<Bytes>, Failure> {
        let begun = with_retries(|| self.store.step_begin(&self.lease, name)).await;
        match begun.map_err(|error| not_begun(name, &error))? {
            StepBegun::Run => Ok(None),
            StepBegun::Memo { result, .. } => Ok(Some(result)),
            StepBegun::InDoubt(fence) => self.restart(name, fence).await,
            StepBegun::Settled(_) | StepBegun::Parked | StepBegun::Stale => Err(lost(name)),
        }
    }

    async fn restart(&self, name: &str, fence: Fence) -> Result<Option<Bytes>, Failure> {
        if self.in_doubt == InDoubt::Park {
            return Err(Failure::in_doubt(format!(
                "step {name:?} was begun by the run with fence {fence} and never finished: it may or \
                 may not have happened, a person must look"
            )));
        }
        let restarted = with_retries(|| self.store.step_restart(&self.lease, name)).await;
        match restarted.map_err(|error| not_begun(name, &error))? {
            Held::Applied(_) | Held::Already(_) => Ok(None),
            Held::Settled(_) | Held::Parked | Held::Stale => Err(lost(name)),
        }
    }

    fn use_name(&self, name: &str) -> Result<(), Failure> {
        let mut names = self.names.lock().expect("no holder of this lock panics");
        if names.insert(name.to_owned()) {
            return Ok(());
        }
        Err(Failure::final_failure(format!(
            "step name {name:?} was used twice in one run, so its remembered result would answer for \
             both: give each step its own name, deploy, and redrive"
        )))
    }
}

/// Calls again while the store cannot be reached: every call may be repeated.
async fn with_retries<T, F: Future<Output = Result<T, Error>>>(
    call: impl Fn() -> F,
) -> Result<T, Error> {
    for _ in 1..STEP_TRIES_MAX {
        match call().await {
            Err(Error::Unavailable(_)) => sleep(jittered(POLL_FIRST)).await,
            answered => return answered,
        }
    }
    call().await
}

/// In doubt, not retryable: what the run did before this step stays done, and only its author knows
/// what that was. Under `park` nobody may do it again unasked.
fn not_begun(name: &str, error: &Error) -> Failure {
    match error {
        Error::Invalid(_) => {
            Failure::final_failure(format!("step {name:?} was not begun: {error}"))
        }
        Error::Unavailable(_) | Error::Denied(_) | Error::Corrupt(_) | Error::Bug(_) => {
            Failure::in_doubt(format!("step {name:?} was not begun: {error}"))
        }
    }
}

fn unrecorded(name: &str, error: &Error) -> Failure {
    Failure::in_doubt(format!("step {name:?} was done but not recorded: {error}"))
}

/// In doubt for the same reason.
fn lost(name: &str) -> Failure {
    Failure::in_doubt(format!(
        "step {name:?} is not recorded: this run no longer holds its lease"
    ))
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("lease", &self.lease)
            .finish_non_exhaustive()
    }
}
