//! Fingerprint: whether a repeated key is an honest repeat or other work under the same name.

use sha2::{Digest, Sha256};
use std::fmt;

/// The first byte that is hashed, so that a later way of taking fingerprints cannot be mistaken
/// for this one.
const VERSION: u8 = 1;

/// SHA-256 of a version byte and the payload bytes as delivered.
///
/// ```
/// use semel::Fingerprint;
///
/// let first = Fingerprint::of(b"{\"amount\":10}");
/// assert_eq!(first, Fingerprint::of(b"{\"amount\":10}"));
/// assert_ne!(first, Fingerprint::of(b"{\"amount\":11}"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of a payload.
    #[must_use]
    pub fn of(payload: &[u8]) -> Self {
        Self::of_all([payload])
    }

    /// The fingerprint of several pieces, one after the other; the caller sees to it that the
    /// pieces cannot run into each other.
    #[must_use]
    pub fn of_all<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hash = Sha256::new_with_prefix([VERSION]);
        for piece in pieces {
            hash.update(piece);
        }
        Self(hash.finalize().into())
    }

    /// For a route that does not compare payloads: every delivery of a key is an honest repeat.
    #[must_use]
    pub const fn off() -> Self {
        Self([0; 32])
    }

    /// A fingerprint as a store kept it.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes that a store keeps.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}
