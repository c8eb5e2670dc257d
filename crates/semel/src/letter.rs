//! Letters: whole deliveries, kept because they were acknowledged without success.

use crate::clock::Time;
use crate::{Fingerprint, Key};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use std::fmt;

/// A delivery that was acknowledged without success. It never expires: it leaves by redrive or
/// discard.
///
/// ```
/// use semel::letter::{Dropped, Letter, LetterId, Put, Reason};
/// use semel::memory::MemoryStore;
/// use semel::{Fingerprint, Key, Store};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let store = MemoryStore::new();
/// let key = Key::from_bytes([1; 32]);
/// let letter = Letter {
///     id: LetterId::of_key(Reason::Parked, &key, &Fingerprint::of(b"payload")),
///     key: Some(key),
///     reason: Reason::Parked,
///     delivery: "POST /charge ...".into(),
/// };
/// assert_eq!(store.letter_put(&letter).await?, Put::Applied);
/// assert_eq!(store.letter_put(&letter).await?, Put::Already);
/// assert_eq!(store.letter_list(None, 10).await?.items.len(), 1);
/// assert_eq!(store.letter_get(&letter.id).await?.as_ref(), Some(&letter));
/// assert_eq!(store.letter_drop(&letter.id).await?, Dropped::Applied);
/// # Ok::<(), semel::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// Which letter.
    pub id: LetterId,
    /// The key of the delivery, if it had one.
    pub key: Option<Key>,
    /// Why it was kept.
    pub reason: Reason,
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
    /// Why it was kept.
    pub reason: Reason,
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
}

/// The answer to putting a letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Put {
    /// It is kept from now on.
    Applied,
    /// It was kept already.
    Already,
}

/// The answer to dropping a letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Dropped {
    /// It is gone now.
    Applied,
    /// There was no such letter.
    Gone,
}

// === impl Letter ===

impl Letter {
    /// What lists show of it.
    #[must_use]
    pub fn head(&self, created_at: Time) -> LetterHead {
        LetterHead {
            id: self.id,
            key: self.key,
            reason: self.reason,
            bytes: self.delivery.len() as u64,
            created_at,
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
    const ALL: [Self; 4] = [Self::Parked, Self::Failed, Self::Mismatched, Self::Invalid];

    /// The number that stores keep.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Parked => 1,
            Self::Failed => 2,
            Self::Mismatched => 3,
            Self::Invalid => 4,
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
        }
    }
}
