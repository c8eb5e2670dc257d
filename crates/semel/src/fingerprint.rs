//! Fingerprint: whether a repeated key is an honest repeat or other work under the same name.

use crate::key::feed;
use crate::payload::{Payload, is_json};
use sha2::{Digest, Sha256};
use std::fmt;

/// The first byte that is hashed, so that another way of taking fingerprints cannot be mistaken
/// for this one. Version 1 knew the payload's bytes only.
const VERSION: u8 = 2;

/// SHA-256 of a version byte and everything that makes a repeat honest, as the caller sees it.
///
/// ```
/// use semel::Fingerprint;
///
/// let of = |path, body: &str| {
///     Fingerprint::of_request("POST", path, Some("application/json"), body.as_bytes())
/// };
/// let first = of("/charge", r#"{"amount": 10, "currency": "EUR"}"#);
/// assert_eq!(first, of("/charge", r#"{"currency":"EUR","amount":10.0}"#));
/// assert_ne!(first, of("/charge", r#"{"amount": 11, "currency": "EUR"}"#));
/// assert_ne!(first, of("/refund", r#"{"amount": 10, "currency": "EUR"}"#));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

/// A fingerprint that is being taken: first what stands beside the payload, in an order that the
/// caller keeps to, then the payload.
///
/// Each piece is hashed as a type byte, 8 bytes of length and its bytes: `m` method, `p` path, `n` the name
/// of a value and `v` that value or `x` when there is none, `j` the encoding of a JSON value, `b` bytes.
///
/// ```
/// use semel::fingerprint::Pieces;
///
/// let of = |kind| Pieces::new().path("/orders").named("ce:type", kind).bytes(b"7");
/// assert_ne!(of(Some("order.created")), of(Some("order.cancelled")));
/// assert_ne!(of(Some("")), of(None));
/// ```
#[derive(Clone, Debug)]
pub struct Pieces(Sha256);

// === impl Fingerprint ===

impl Fingerprint {
    /// The fingerprint of bytes alone.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Pieces::new().bytes(bytes)
    }

    /// The fingerprint of a payload alone: as a JSON value if it is one, else as bytes.
    #[must_use]
    pub fn of_payload(payload: &Payload<'_>) -> Self {
        Pieces::new().payload(payload)
    }

    /// The fingerprint of an HTTP request: its method, its path with the query, and its body, as a
    /// JSON value if its `Content-Type` says so.
    #[must_use]
    pub fn of_request(
        method: &str,
        path_and_query: &str,
        content_type: Option<&str>,
        body: &[u8],
    ) -> Self {
        let pieces = Pieces::new().method(method).path(path_and_query);
        if content_type.is_some_and(is_json) {
            pieces.payload(&Payload::read(body, []))
        } else {
            pieces.bytes(body)
        }
    }

    /// For a route that compares nothing: every delivery of a key is an honest repeat.
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

// === impl Pieces ===

impl Pieces {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self(Sha256::new_with_prefix([VERSION]))
    }

    /// The method of the request.
    #[must_use]
    pub fn method(self, method: &str) -> Self {
        self.piece('m', method.as_bytes())
    }

    /// Its path, with the query where that makes a difference.
    #[must_use]
    pub fn path(self, path: &str) -> Self {
        self.piece('p', path.as_bytes())
    }

    /// A value that travels beside the payload. None and an empty one differ.
    #[must_use]
    pub fn named(self, name: &str, value: Option<&str>) -> Self {
        let named = self.piece('n', name.as_bytes());
        match value {
            Some(value) => named.piece('v', value.as_bytes()),
            None => named.piece('x', b""),
        }
    }

    /// Ends with the payload as a JSON value, whatever the order of its members, its spacing and the
    /// spelling of its numbers; as bytes if it cannot be read so.
    #[must_use]
    pub fn payload(self, payload: &Payload<'_>) -> Fingerprint {
        match payload.encoding() {
            Some(encoding) => self.piece('j', encoding.as_bytes()).done(),
            None => self.bytes(payload.bytes()),
        }
    }

    /// Ends with the payload as bytes.
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> Fingerprint {
        self.piece('b', bytes).done()
    }

    fn piece(mut self, kind: char, bytes: &[u8]) -> Self {
        feed(&mut self.0, kind, bytes);
        self
    }

    fn done(self) -> Fingerprint {
        Fingerprint(self.0.finalize().into())
    }
}

impl Default for Pieces {
    fn default() -> Self {
        Self::new()
    }
}
