//! The `Store` trait: what every store promises, in prose and in types.

use crate::Key;
use crate::letter::{Letter, LetterHead, LetterId, Mark, Marked, Put};
use crate::record::{
    Acted, Claim, Claimed, Fail, Held, Lease, Record, Resolution, State, StepBegun,
};
use async_trait::async_trait;
use bytes::Bytes;
use std::fmt::Debug;
use std::time::Duration;

/// Where records, steps and letters are kept.
///
/// # Contract
///
/// - **One method is one atomic step**, per key. Two calls for one key behave as if one came after
///   the other; calls for different keys never wait for each other's effects.
/// - **The store's own clock judges**: no method takes a time. A lapsed lease does not revoke; only
///   a later grant or an operator's act does.
/// - **Every method does what the function of the same name in [`record`](crate::record) decides**, or
///   for letters the one in [`letter`](crate::letter).
///   The conformance suite (feature `conformance`) compares the two, operation by operation.
/// - **Fences rise** per key with every grant, also across `sweep` and `forget`.
/// - **An answer is given when it is as durable as the store makes it.** A grant under
///   [`InDoubt::Park`](crate::record::InDoubt::Park) and every completion, failure and letter is
///   durable before it is answered.
/// - **`Unavailable` means unknown**: the write may have been made. Every method may be repeated
///   with the same arguments: a claim with the same owner is granted again; a write answers
///   [`Held::Already`], or is applied again to the same end (a failure that parked).
/// - **`Denied` means not now**: the server was reached, and the same call is taken once somebody has
///   fixed it. `Invalid` is left for calls that can never be taken as they are.
/// - **Dropping the future** of a call leaves the write made or not made, never half made.
///
/// # Wrappers
///
/// There are no default methods: a store that wraps another (to count, to inject faults) states
/// what it does with each call, and a new method cannot be forgotten.
///
/// # Example
///
/// What [`Semel::run`](crate::Semel::run) does with a store, step by step:
///
/// ```
/// use semel::memory::MemoryStore;
/// use semel::record::{Claim, Claimed, Held, InDoubt, Owner, State};
/// use semel::{Fingerprint, Key, Outcome, Store};
/// use std::time::Duration;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let store = MemoryStore::new();
/// let (lease, retention) = (Duration::from_secs(30), Duration::from_secs(3600));
/// let claim = Claim {
///     key: Key::from_bytes([1; 32]),
///     fingerprint: Fingerprint::of(b"payload"),
///     owner: Owner::random(),
///     lease,
///     retention,
///     in_doubt: InDoubt::Retry,
///     max_attempts: None,
/// };
/// let Claimed::Granted(right) = store.claim(&claim).await? else { panic!("a new key is granted") };
/// let other = Claim { owner: Owner::random(), ..claim };
/// assert!(matches!(store.claim(&other).await?, Claimed::Busy { .. }));
///
/// let result = Outcome::ok("done").encode();
/// assert_eq!(store.renew(&right, lease, retention).await?, Held::Applied(State::Running));
/// assert_eq!(store.complete(&right, &result, retention).await?, Held::Applied(State::Succeeded));
/// assert_eq!(store.complete(&right, &result, retention).await?, Held::Already(State::Succeeded));
/// assert!(matches!(store.claim(&other).await?, Claimed::Replayed(s) if s.result == result));
/// # Ok::<(), semel::Error>(())
/// # }).unwrap();
/// ```
#[async_trait]
pub trait Store: Debug + Send + Sync + 'static {
    /// Whether other processes use the same records: it bounds how long a settled outcome may be
    /// answered from memory.
    fn sharing(&self) -> Sharing;

    /// Asks to run.
    async fn claim(&self, claim: &Claim) -> Result<Claimed, Error>;

    /// Prolongs a lease by `lease_for` from now.
    async fn renew(
        &self,
        lease: &Lease,
        lease_for: Duration,
        retention: Duration,
    ) -> Result<Held, Error>;

    /// Records success. `result` is an encoded [`Outcome`](crate::Outcome).
    async fn complete(
        &self,
        lease: &Lease,
        result: &Bytes,
        retention: Duration,
    ) -> Result<Held, Error>;

    /// Records a failure.
    async fn fail(&self, lease: &Lease, how: &Fail) -> Result<Held, Error>;

    /// Gives the right to run back; only when nothing of the effect was begun.
    async fn release(&self, lease: &Lease) -> Result<Held, Error>;

    /// Reads a record; `None` when it is absent or expired.
    async fn look(&self, key: &Key) -> Result<Option<Record>, Error>;

    /// Begins a step.
    async fn step_begin(&self, lease: &Lease, name: &str) -> Result<StepBegun, Error>;

    /// Begins a step again that was in doubt.
    async fn step_restart(&self, lease: &Lease, name: &str) -> Result<Held, Error>;

    /// Records the result of a step that this run began.
    async fn step_complete(&self, lease: &Lease, name: &str, result: &Bytes)
    -> Result<Held, Error>;

    /// An operator says what became of a parked run, or of the lapsed run that the resolution names.
    async fn resolve(&self, key: &Key, how: &Resolution) -> Result<Acted, Error>;

    /// An operator makes a parked or failed record claimable again.
    async fn redrive(&self, key: &Key) -> Result<Acted, Error>;

    /// An operator takes the right to run from whoever has it.
    async fn release_by_operator(&self, key: &Key) -> Result<Acted, Error>;

    /// An operator ends the incarnation: result and steps go at once.
    async fn forget(&self, key: &Key) -> Result<Acted, Error>;

    /// Lists records (without their results) that are not expired, in no particular order, in pages of at most
    /// `limit`. A page may be short, even empty, and still have a next one. A record that changes
    /// state while it is listed may be missed or seen.
    async fn list(
        &self,
        state: Option<State>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<(Key, Record)>, Error>;

    /// Removes a window of what expired longer than the store's grace ago, with its steps, and
    /// tombstones of letters that have expired.
    async fn sweep(&self, after: Option<&Cursor>) -> Result<Swept, Error>;

    /// Whether a claim could be granted and its end recorded now: the store is asked, and writes something. Whoever
    /// decides whether to send deliveries here asks this every few seconds.
    async fn ready(&self) -> Result<(), Error>;

    /// Keeps a letter, once per id, unless it was closed under this fence or a higher one; durable
    /// before it is answered.
    async fn letter_put(&self, letter: &Letter) -> Result<Put, Error>;

    /// Lists open letters, oldest first, in pages of at most `limit`.
    async fn letter_list(
        &self,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<LetterHead>, Error>;

    /// Reads an open letter.
    async fn letter_get(&self, id: &LetterId) -> Result<Option<Letter>, Error>;

    /// Notes on an open letter that it is being redriven, or closes it; durable before it is answered.
    async fn letter_mark(&self, id: &LetterId, mark: Mark) -> Result<Marked, Error>;
}

/// Who uses a store's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// This process alone.
    OneProcess,
    /// Possibly many processes.
    Shared,
}

/// Where a list or a sweep goes on. Only the store that gave it can read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor(pub Bytes);

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// What was found.
    pub items: Vec<T>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<Cursor>,
}

/// What a sweep did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swept {
    /// How many records went.
    pub removed: u64,
    /// Where the next window begins; `None` at the end.
    pub next: Option<Cursor>,
}

/// Why a store did not answer, by what to do next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The store could not be asked, or did not answer: whether the write was made is unknown.
    /// Repeating the same call is safe.
    #[error("store unavailable: {0}")]
    Unavailable(String),
    /// The store was reached and does not take the call until somebody fixes it: a password, a
    /// right, a table, a read-only server, room on a disk. Nothing was written. Repeating the same
    /// call is safe, and succeeds once it is fixed.
    #[error("store denies: {0}")]
    Denied(String),
    /// The call itself is wrong. A repeat fails again: mend the call.
    #[error("invalid: {0}")]
    Invalid(String),
    /// What is stored cannot be trusted. Nothing is replayed from it: stop and look.
    #[error("corrupt: {0}")]
    Corrupt(String),
    /// Something that cannot be, was. Please report it.
    #[error("bug in semel: {0}")]
    Bug(String),
}

/// The longest lease: a run that says nothing for longer is as good as dead.
pub const LEASE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The longest retention.
pub const RETENTION_MAX: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// The longest name of a step, in bytes.
pub const STEP_NAME_BYTES_MAX: usize = 255;

/// The largest result of a run or a step, encoded, in bytes.
pub const RESULT_BYTES_MAX: usize = 16 * 1024 * 1024;

impl Claim {
    /// Whether the durations of this claim make sense; every store asks before it writes.
    ///
    /// # Errors
    /// `Invalid`, naming the setting.
    pub fn validate(&self) -> Result<(), Error> {
        validate_lease(self.lease, self.retention)
    }
}

/// Whether a lease and a retention make sense together; every store asks before it writes.
///
/// # Errors
/// `Invalid`, naming the setting.
pub fn validate_lease(lease: Duration, retention: Duration) -> Result<(), Error> {
    let wrong = |what: String| {
        Err(Error::Invalid(format!(
            "{what}; nothing was written, mend the setting before you retry"
        )))
    };
    if lease < Duration::from_millis(1) || lease > LEASE_MAX {
        return wrong(format!("lease {lease:?} is not between 1 ms and 24 h"));
    }
    if retention < lease {
        return wrong(format!(
            "lease {lease:?} is longer than retention {retention:?}, so a run could outlive its record"
        ));
    }
    if retention > RETENTION_MAX {
        return wrong(format!(
            "retention {retention:?} is over the limit of 366 days"
        ));
    }
    Ok(())
}

/// Whether a step's name can be one; every store asks before it writes.
///
/// # Errors
/// `Invalid`, naming the name.
pub fn validate_step_name(name: &str) -> Result<(), Error> {
    if name.is_empty() || name.len() > STEP_NAME_BYTES_MAX || name.contains('\0') {
        return Err(Error::Invalid(format!(
            "step name {name:?} must have 1 to {STEP_NAME_BYTES_MAX} bytes and no NUL; the step was not begun, \
             rename it before you retry"
        )));
    }
    Ok(())
}
