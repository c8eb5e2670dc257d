//! Letters: whole deliveries, kept because they were acknowledged without success, or may have to be.
//!
//! An open letter never expires. A closed one (its work has succeeded, or an operator discarded it)
//! stays as a tombstone for a while, so that the next duplicate does not bring it back; one under a
//! higher fence, or for another reason, does.

mod decide;
mod keep;
mod standing;

pub use decide::{LetterDecision, Stored, Tombstone, mark, put};
pub use keep::{Attempt, KeepDecision};
pub use standing::Standing;

use crate::clock::Time;
use crate::record::Fence;
use crate::store::{Error, RETENTION_MAX};
use crate::{Fingerprint, Key};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use std::fmt;
use std::time::Duration;

/// A delivery that was acknowledged without success. It never expires: it is closed when its work has
/// succeeded, or when an operator discards it.
///
/// ```
/// use semel::letter::{Letter, LetterId, Mark, Marked, Put, Reason};
/// use semel::memory::MemoryStore;
/// use semel::protocol::Fence;
/// use semel::store::Letters;
/// use semel::{Fingerprint, Key};
/// use std::time::Duration;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let store = MemoryStore::new();
/// let key = Key::from_bytes([1; 32]);
/// let letter = Letter {
///     id: LetterId::of_key(Reason::Parked, &key, &Fingerprint::of(b"payload")),
///     key: Some(key),
///     route: "charge".into(),
///     reason: Reason::Parked,
///     fence: Fence(7),
///     retention: Duration::from_secs(3600),
///     redriven: false,
///     alarmed: false,
///     delivery: "POST /charge ...".into(),
/// };
/// assert_eq!(store.put(&letter).await?, Put::Applied);
/// assert_eq!(store.put(&letter).await?, Put::Already);
/// assert_eq!(Letters::list(&store, None, 10).await?.items.len(), 1);
/// assert_eq!(store.get(&letter.id).await?.as_ref(), Some(&letter));
///
/// // Once closed, a duplicate does not bring it back; the next incarnation of the key does.
/// assert_eq!(store.mark(&letter.id, Mark::Closed).await?, Marked::Applied);
/// assert_eq!(store.get(&letter.id).await?, None);
/// assert_eq!(store.put(&letter).await?, Put::Closed);
/// let next = Letter { fence: Fence(8), ..letter };
/// assert_eq!(store.put(&next).await?, Put::Applied);
/// # Ok::<(), semel::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// Which letter.
    pub id: LetterId,
    /// The key of the delivery, if it had one.
    pub key: Option<Key>,
    /// The route that it was delivered to.
    pub route: String,
    /// Why it was kept.
    pub reason: Reason,
    /// The fence of the key's record when it was put; 0 when there was none.
    pub fence: Fence,
    /// How long its tombstone stays once it is closed.
    pub retention: Duration,
    /// Whether it was redriven: its work may have run since.
    pub redriven: bool,
    /// Whether an operator was alerted, because no further delivery of its work is expected.
    pub alarmed: bool,
    /// The delivery, encoded by whoever put it here.
    pub delivery: Bytes,
}

/// A letter without its delivery, as lists show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LetterHead {
    /// Which letter.
    pub id: LetterId,
    /// The key of the delivery, if it had one.
    pub key: Option<Key>,
    /// The route that it was delivered to.
    pub route: String,
    /// Why it was kept.
    pub reason: Reason,
    /// The fence of the key's record when it was put; 0 when there was none.
    pub fence: Fence,
    /// Whether it was redriven: its work may have run since.
    pub redriven: bool,
    /// Whether an operator was alerted, because no further delivery of its work is expected.
    pub alarmed: bool,
    /// The size of the delivery.
    pub bytes: u64,
    /// When it was put here, by the store's clock.
    pub created_at: Time,
}

/// The id of a letter: a hash of why and what, so that a letter is put once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LetterId(pub [u8; 32]);

/// Why a delivery was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// Its record was parked.
    Parked,
    /// It failed for good.
    Failed,
    /// Its key is known with another payload.
    Mismatched,
    /// It has no key, or is malformed.
    Invalid,
    /// Its work has not succeeded, and its sender may not deliver it again.
    Unfinished,
}

/// The answer to putting a letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Put {
    /// It is kept from now on.
    Applied,
    /// It was kept already.
    Already,
    /// It was closed, and this is a duplicate of what was closed: nothing is kept.
    Closed,
}

/// What is noted on an open letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It is being redriven: its work may have run, whatever becomes of its record.
    Redriven,
    /// No further delivery of its work is expected, and an operator was alerted.
    Alarmed,
    /// Its work has succeeded, or an operator discarded it: the delivery goes, a tombstone stays.
    Closed,
}

/// The answer to marking a letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Marked {
    /// It is marked so.
    Applied,
    /// There is no such open letter.
    Gone,
}

/// The longest name of a route, in bytes: as long as a key's scope allows.
pub const ROUTE_BYTES_MAX: usize = 255;

// === impl Letter ===

impl Letter {
    /// What lists show of it.
    #[must_use]
    pub fn head(&self, created_at: Time) -> LetterHead {
        LetterHead {
            id: self.id,
            key: self.key,
            route: self.route.clone(),
            reason: self.reason,
            fence: self.fence,
            redriven: self.redriven,
            alarmed: self.alarmed,
            bytes: self.delivery.len() as u64,
            created_at,
        }
    }

    /// Whether a store can keep it; every store asks before it writes.
    ///
    /// # Errors
    /// `Invalid`, naming what is wrong.
    pub fn validate(&self) -> Result<(), Error> {
        let (bytes, retention) = (self.route.len(), self.retention);
        if bytes > ROUTE_BYTES_MAX || self.route.contains('\0') {
            return Err(Error::invalid(format!(
                "the name of a letter's route must have at most {ROUTE_BYTES_MAX} bytes and no NUL, this one has \
                 {bytes} bytes; nothing was written, fix the name before you retry"
            )));
        }
        if retention > RETENTION_MAX {
            return Err(Error::invalid(format!(
                "the retention {retention:?} of a letter is over the limit of 366 days; nothing was written, fix \
                 the setting before you retry"
            )));
        }
        Ok(())
    }
}

// === impl LetterHead ===

impl LetterHead {
    /// Whether only an operator can finish its work: no further delivery is expected.
    #[must_use]
    pub const fn is_for_operator(&self) -> bool {
        match self.reason {
            Reason::Unfinished => self.alarmed,
            Reason::Parked | Reason::Failed | Reason::Mismatched | Reason::Invalid => true,
        }
    }
}

// === impl LetterId ===

impl LetterId {
    /// The id of a letter about a key.
    ///
    /// ```
    /// use semel::letter::{LetterId, Reason};
    /// use semel::{Fingerprint, Key};
    ///
    /// let (key, payload) = (Key::from_bytes([7; 32]), Fingerprint::of(b"payload"));
    /// let id = LetterId::of_key(Reason::Parked, &key, &payload);
    /// assert_eq!(id, LetterId::of_key(Reason::Parked, &key, &payload));
    /// assert_ne!(id, LetterId::of_key(Reason::Failed, &key, &payload));
    /// ```
    #[must_use]
    pub fn of_key(reason: Reason, key: &Key, fingerprint: &Fingerprint) -> Self {
        Self::of(reason, b'k', key.as_bytes(), fingerprint)
    }

    /// The id of a letter about a delivery without a key, by its transport identity.
    #[must_use]
    pub fn of_delivery(reason: Reason, transport: &str, fingerprint: &Fingerprint) -> Self {
        Self::of(reason, b't', transport.as_bytes(), fingerprint)
    }

    /// The key of (`redrive`, this id): the work of a letter whose delivery has no key of its own runs
    /// under it. Its tag is its own, so it never meets the key of a delivery.
    #[must_use]
    pub fn redrive_key(&self) -> Key {
        let mut hash = Sha256::new_with_prefix(b"semel-redrive-v1");
        hash.update(self.0);
        Key::from_bytes(hash.finalize().into())
    }

    fn of(reason: Reason, kind: u8, name: &[u8], fingerprint: &Fingerprint) -> Self {
        let mut hash = Sha256::new_with_prefix(b"semel-letter-v1");
        hash.update([reason.number(), kind]);
        hash.update(fingerprint.as_bytes());
        hash.update(name);
        Self(hash.finalize().into())
    }
}

impl fmt::Display for LetterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for LetterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LetterId({self})")
    }
}

// === impl Reason ===

impl Reason {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Parked,
        Self::Failed,
        Self::Mismatched,
        Self::Invalid,
        Self::Unfinished,
    ];

    /// The number that stores keep.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Parked => 1,
            Self::Failed => 2,
            Self::Mismatched => 3,
            Self::Invalid => 4,
            Self::Unfinished => 5,
        }
    }

    /// The reason with that number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|reason| reason.number() == number)
    }

    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Parked => "parked",
            Self::Failed => "failed",
            Self::Mismatched => "mismatched",
            Self::Invalid => "invalid",
            Self::Unfinished => "unfinished",
        }
    }

    /// Whether it is about the work of the delivery's own key: that work may have run.
    #[must_use]
    pub const fn is_of_own_key(self) -> bool {
        match self {
            Self::Parked | Self::Failed | Self::Unfinished => true,
            Self::Mismatched | Self::Invalid => false,
        }
    }
}
