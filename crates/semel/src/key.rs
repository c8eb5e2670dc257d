//! Keys: which deliveries are the same piece of work.
//!
//! A [`KeyRule`] names the parts that identify the work; a [`Scope`] says where the rule belongs;
//! the [`Key`] is a digest over both, equal in every language (`vectors/keys.json`).

pub(crate) mod form;
mod rule;

pub use rule::{Delivered, KeyRule, Part};
pub(crate) use rule::{FORM, JSON, NULL};

use crate::record::Fence;
use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;

/// What is hashed first, so that no other digest can be mistaken for a key.
const TAG: &[u8] = b"semel-key-v1";

/// How a key begins when it is written.
const PREFIX: &str = "v1_";

/// The longest namespace, route name, method or caller, in bytes.
pub const SCOPE_BYTES_MAX: usize = 255;

/// The longest part of a key, in bytes: enough for any name, too little for a payload by mistake.
pub const PART_BYTES_MAX: usize = 65_536;

/// The domain identity of a piece of work: 32 bytes, the whole identity in every store.
///
/// ```
/// use semel::key::{Delivered, Key, KeyRule, Scope};
///
/// let scope = Scope::new("shop", "orders");
/// let rule: KeyRule = "/order_id".parse().unwrap();
/// let first = rule.key(&scope, &Delivered::payload(br#"{"order_id": 7, "try": 1}"#)).unwrap();
/// let again = rule.key(&scope, &Delivered::payload(br#"{"try": 2, "order_id": 7.0}"#)).unwrap();
/// assert_eq!(first, again);
/// assert_eq!(first.to_string().parse::<Key>().unwrap(), first);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key([u8; 32]);

/// Where a key belongs: the same parts on another route, or of another caller, are other work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// Keeps installations apart that share a store.
    pub namespace: String,
    /// The route's name, not its path.
    pub route: String,
    /// The method, on API routes.
    pub method: Option<String>,
    /// Who asked, on API routes: one caller never receives another's answer.
    pub caller: Option<String>,
}

/// A part of a key as it is hashed: its type and its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// `s` string, `d` number, `b` true or false, `z` null, `a` array, `o` object, `h` a digest.
    pub kind: char,
    /// The text of a string; the canonical JSON of everything else; 32 raw bytes of a digest.
    pub bytes: Vec<u8>,
}

/// Why a delivery has no key. A retry of the same delivery cannot fix it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// A part that the rule names is not there.
    #[error(
        "key part {part} is missing from the delivery: send it, or change the key rule; a retry of the same delivery fails again"
    )]
    MissingPart {
        /// The part, as the rule names it.
        part: String,
    },
    /// A part is there, but `null`, `[]` or `{}`.
    #[error(
        "key part {part} is {value}, which counts as missing: send a value, or write {part}?null in the key rule to accept null, [] and {{}}; a retry of the same delivery fails again"
    )]
    NullPart {
        /// The part, as the rule names it.
        part: String,
        /// What is there.
        value: &'static str,
    },
    /// An integer beyond 64 bits.
    #[error(
        "key part {part} holds the integer {literal}, which does not fit 64 bits: send it as a string; a retry of the same delivery fails again"
    )]
    WideInteger {
        /// The part, as the rule names it.
        part: String,
        /// The number as it was written.
        literal: String,
    },
    /// A number too large for a double.
    #[error(
        "key part {part} holds the number {literal}, which is too large: send it as a string; a retry of the same delivery fails again"
    )]
    NumberOverflow {
        /// The part, as the rule names it.
        part: String,
        /// The number as it was written.
        literal: String,
    },
    /// A number that is another decimal than the shortest text of the nearest double.
    #[error(
        "key part {part} holds the number {literal}, which a double rounds, so that several numbers would be one key: send it as a string; a retry of the same delivery fails again"
    )]
    InexactNumber {
        /// The part, as the rule names it.
        part: String,
        /// The number as it was written.
        literal: String,
    },
    /// A member name twice in one object, or a field of the key twice in one form.
    #[error(
        "the payload has the member {name:?} twice in one object or form, so two readers could see two values: send it once; a retry of the same delivery fails again"
    )]
    DuplicateMember {
        /// The name.
        name: String,
    },
    /// Half a character.
    #[error(
        "the payload has a string with half a surrogate pair, which is not text: fix the sender; a retry of the same delivery fails again"
    )]
    LoneSurrogate,
    /// Nested too deeply.
    #[error(
        "the payload is nested deeper than {} levels: flatten it; a retry of the same delivery fails again",
        crate::json::DEPTH_MAX
    )]
    TooDeep,
    /// Too many members.
    #[error(
        "the payload has more than {} members: send less of it in one delivery; a retry of the same delivery fails again",
        crate::json::MEMBERS_MAX
    )]
    TooManyMembers,
    /// Too long.
    #[error(
        "{what} has {bytes} bytes, the limit is {max}: name a shorter one, or use `body` to hash a payload; a retry fails again"
    )]
    TooLong {
        /// What is too long.
        what: String,
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        max: usize,
    },
    /// Nothing where something is needed.
    #[error("{what} is empty, and every key needs it: send it; a retry fails again")]
    Empty {
        /// What is empty.
        what: String,
    },
    /// A part of a form nobody knows.
    #[error(
        "{part:?} is not a key part: write /json/pointer, form:NAME, header:NAME, attribute:NAME, ce:NAME, message-id, task-name, queue, subscription or body"
    )]
    BadPart {
        /// The part as it was written.
        part: String,
    },
    /// Text that is not a key.
    #[error("{text:?} is not a key: a key is v1_ and 64 lower-case hex digits")]
    BadKey {
        /// The text.
        text: String,
    },
}

// === impl Key ===

impl Key {
    /// The key of these fields in this scope.
    ///
    /// # Errors
    /// When the scope or a field is empty or too long.
    pub fn of(scope: &Scope, fields: &[Field]) -> Result<Self, KeyError> {
        if fields.is_empty() {
            return Err(KeyError::Empty {
                what: "the key rule".into(),
            });
        }
        let mut hash = Sha256::new_with_prefix(TAG);
        for (kind, name, text) in scope.fields() {
            if text.is_empty() {
                return Err(KeyError::Empty { what: name.into() });
            }
            bounded(name, text.len(), SCOPE_BYTES_MAX)?;
            feed(&mut hash, kind, text.as_bytes());
        }
        for field in fields {
            feed(&mut hash, field.kind, &field.bytes);
        }
        Ok(Self(hash.finalize().into()))
    }

    /// The key of a step: handed to the downstream as its idempotency key. It is the same for every run of one
    /// incarnation; work that is done anew, after its retention or a `forget`, has a new one, or the downstream would
    /// take it for a duplicate.
    ///
    /// ```
    /// use semel::Key;
    /// use semel::protocol::Fence;
    ///
    /// let parent = Key::from_bytes([7; 32]);
    /// let (born, again) = (Fence(1), Fence(2));
    /// assert_eq!(parent.step(born, "charge"), parent.step(born, "charge"));
    /// assert_ne!(parent.step(born, "charge"), parent.step(born, "ship"));
    /// assert_ne!(parent.step(born, "charge"), parent.step(again, "charge"));
    /// ```
    #[must_use]
    pub fn step(&self, born: Fence, name: &str) -> Self {
        let mut hash = Sha256::new_with_prefix(TAG);
        feed(&mut hash, 'k', &self.0);
        feed(&mut hash, 'i', &born.0.to_be_bytes());
        feed(&mut hash, 't', name.as_bytes());
        Self(hash.finalize().into())
    }

    /// A key as a store kept it.
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

/// Hashes bytes behind their type and length, so that no two fields run into each other.
pub(crate) fn feed(hash: &mut Sha256, kind: char, bytes: &[u8]) {
    let mut tag = [0; 1];
    hash.update(kind.encode_utf8(&mut tag));
    hash.update((bytes.len() as u64).to_be_bytes());
    hash.update(bytes);
}

fn bounded(what: &str, bytes: usize, max: usize) -> Result<(), KeyError> {
    if bytes <= max {
        Ok(())
    } else {
        Err(KeyError::TooLong {
            what: what.into(),
            bytes,
            max,
        })
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", hex::encode(self.0))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}

impl FromStr for Key {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let digits = text
            .strip_prefix(PREFIX)
            .filter(|digits| !digits.contains(|c: char| c.is_ascii_uppercase()));
        let mut bytes = [0; 32];
        match digits.map(|digits| hex::decode_to_slice(digits, &mut bytes)) {
            Some(Ok(())) => Ok(Self(bytes)),
            Some(Err(_)) | None => Err(KeyError::BadKey { text: text.into() }),
        }
    }
}

// === impl Scope ===

impl Scope {
    /// A scope without method and caller, as for a broker's deliveries.
    #[must_use]
    pub fn new(namespace: impl Into<String>, route: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            route: route.into(),
            method: None,
            caller: None,
        }
    }

    fn fields(&self) -> impl Iterator<Item = (char, &'static str, &str)> {
        let method = self.method.as_deref().map(|text| ('m', "the method", text));
        let caller = self.caller.as_deref().map(|text| ('c', "the caller", text));
        [
            ('n', "the namespace", self.namespace.as_str()),
            ('r', "the route name", self.route.as_str()),
        ]
        .into_iter()
        .chain(method)
        .chain(caller)
    }
}

// === impl KeyError ===

impl KeyError {
    /// A short word for the kind of refusal, the same in every language.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::MissingPart { .. } | Self::NullPart { .. } => "missing_part",
            Self::WideInteger { .. } => "wide_integer",
            Self::NumberOverflow { .. } => "number_overflow",
            Self::InexactNumber { .. } => "inexact_number",
            Self::DuplicateMember { .. } => "duplicate_member",
            Self::LoneSurrogate => "lone_surrogate",
            Self::TooDeep => "too_deep",
            Self::TooManyMembers => "too_many_members",
            Self::TooLong { .. } => "too_long",
            Self::Empty { .. } => "empty",
            Self::BadPart { .. } => "bad_part",
            Self::BadKey { .. } => "bad_key",
        }
    }
}
