//! The `Store` trait: what every store promises, in prose and in types.

mod ext;
mod letters;
mod error;
mod limits;
#[doc(hidden)]
pub mod batch;

pub use error::{Detail, Error};
pub use ext::StoreExt;
pub use letters::Letters;
pub use limits::{
    FOUND_KEYS_MAX, INDEX_ID_BYTES_MAX, INDEX_IDS_MAX, LABEL_BYTES_MAX, LEASE_MAX,
    RESULT_BYTES_MAX, RETENTION_MAX, STEP_NAME_BYTES_MAX, STEP_SHOWN_BYTES_MAX, STEPS_SHOWN_MAX,
    index_digest, shown_step, validate_acts_for, validate_bytes, validate_index, validate_lease,
    validate_result, validate_step_name,
};

use crate::Key;
use crate::record::{Answer, Operation, Record, State};
use async_trait::async_trait;
use bytes::Bytes;
use std::fmt::Debug;

/// Where records and their steps are kept; a store that keeps letters too is a [`Letters`].
///
/// # Contract
///
/// - **One operation is one atomic step**, per key. Two operations on one key behave as if one came after
///   the other; operations on different keys never wait for each other's effects.
/// - **The store's own clock judges**: no operation has a time. A lapsed lease does not revoke; only
///   a later grant or an operator's act does.
/// - **Every operation does what [`decide`](fn@crate::record::decide) decides**, after
///   [`validate`](Operation::validate) has found nothing wrong with it. The conformance suite (feature `conformance`)
///   compares the two, operation by operation.
/// - **Fences rise** per key with every grant, also across `sweep` and `forget`.
/// - **An answer is given when it is as durable as the store makes it.** A grant under
///   [`InDoubt::Park`](crate::record::InDoubt::Park) or [`InDoubt::Probe`](crate::record::InDoubt::Probe) and every completion, failure and letter is
///   durable before it is answered.
/// - **`Unavailable` means unknown**: the write may have been made. Every operation may be repeated
///   as it is: a claim with the same owner is granted again; a write answers
///   [`Held::Already`](crate::protocol::Held::Already), or is applied again to the same end (a failure that parked).
/// - **`Denied` means not now**: the server was reached, and the same call is taken once somebody has
///   fixed it. `Invalid` is left for calls that can never be taken as they are.
/// - **Dropping the future** of a call leaves the write made or not made, never half made.
///
/// # Wrappers
///
/// A store that wraps another (to count, to inject faults) has one method to think about, and matches on the
/// operations that it cares for. A new need is a new operation, never a new method.
///
/// # Callers
///
/// [`StoreExt`] has a typed method for each operation, of every store: `store.claim(&claim)` is
/// `store.apply(&Operation::Claim(claim))` and a [`Claimed`](crate::record::Claimed).
///
/// # Example
///
/// What [`Semel::run`](crate::Semel::run) does with a store, step by step:
///
/// ```
/// use semel::memory::MemoryStore;
/// use semel::protocol::{Claim, Claimed, Held, Owner, State};
/// use semel::store::StoreExt;
/// use semel::{Fingerprint, Key, Outcome};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let store = MemoryStore::new();
/// let claim = Claim::new(Key::from_bytes([1; 32]), Fingerprint::of(b"payload"));
/// let (lease, retention) = (claim.lease, claim.retention);
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

    /// Does one operation, whole or not at all, and answers it.
    ///
    /// # Errors
    /// See [`Error`]: each says what to do next.
    async fn apply(&self, operation: &Operation) -> Result<Answer, Error>;

    /// Lists records (without their results, labels and histories) that are not expired, in no particular order, in pages of at most
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
