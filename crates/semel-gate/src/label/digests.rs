//! Digests of what a fingerprint is taken of, part by part: two of them show which part of a mismatch differs. They are short,
//! for people to compare, and decide nothing.

use ring::hmac;
use semel::Fingerprint;
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::str::FromStr;

/// The digests of the parts of a fingerprint; a part that is not compared has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Digests {
    /// Of the method.
    pub method: Option<Digest>,
    /// Of the path, with the query where that counts.
    pub path: Option<Digest>,
    /// Of an event's type, subject and dataschema.
    pub kind: Option<Digest>,
    /// Of a message's attributes, and of what else the route names.
    pub attributes: Option<Digest>,
    /// Of the payload.
    pub payload: Option<Digest>,
}

/// The beginning of a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digest(pub [u8; 4]);

/// How a digest that is not there is written.
const NONE: &str = "--------";

/// The digits of one digest.
const DIGITS: usize = NONE.len();

// === impl Digests ===

impl Digests {
    /// The words for the parts, in their order.
    pub const WORDS: [&'static str; 5] = ["method", "path", "type", "attributes", "payload"];

    /// All parts, in the order of [`WORDS`](Self::WORDS).
    #[must_use]
    pub const fn all(&self) -> [Option<Digest>; 5] {
        [
            self.method,
            self.path,
            self.kind,
            self.attributes,
            self.payload,
        ]
    }

    const fn of_all([method, path, kind, attributes, payload]: [Option<Digest>; 5]) -> Self {
        Self {
            method,
            path,
            kind,
            attributes,
            payload,
        }
    }

    /// The parts that differ from another delivery's of the same key.
    pub fn differing(&self, other: &Self) -> impl Iterator<Item = &'static str> {
        let pairs = self.all().into_iter().zip(other.all());
        let differing = Self::WORDS.into_iter().zip(pairs);
        differing.filter_map(|(word, (one, two))| (one != two).then_some(word))
    }

    /// The same under a key that nobody outside knows: guesses cannot be tried on them.
    #[must_use]
    pub(crate) fn keyed(&self, key: &hmac::Key) -> Self {
        Self::of_all(self.all().map(|digest| {
            let Digest(bytes) = digest?;
            let tag = hmac::sign(key, &bytes);
            tag.as_ref().first_chunk().copied().map(Digest)
        }))
    }
}

/// 40 characters: 8 for each part in order, `--------` where there is none.
impl fmt::Display for Digests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for digest in self.all() {
            match digest {
                Some(digest) => write!(f, "{digest}")?,
                None => f.write_str(NONE)?,
            }
        }
        Ok(())
    }
}

impl FromStr for Digests {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not five digests");
        let mut all = [None; 5];
        if text.len() != all.len() * DIGITS {
            return Err(wrong());
        }
        for (digest, digits) in all.iter_mut().zip(text.as_bytes().chunks(DIGITS)) {
            let mut bytes = [0; 4];
            *digest = match hex::decode_to_slice(digits, &mut bytes) {
                Ok(()) => Some(Digest(bytes)),
                Err(_) if digits == NONE.as_bytes() => None,
                Err(_) => return Err(wrong()),
            };
        }
        Ok(Self::of_all(all))
    }
}

/// What cannot be read says nothing: the rest of a label is still worth reading.
impl<'de> Deserialize<'de> for Digests {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Ok(text.parse().unwrap_or_default())
    }
}

// === impl Digest ===

impl Digest {
    pub(crate) fn of(fingerprint: &Fingerprint) -> Self {
        let [a, b, c, d, ..] = *fingerprint.as_bytes();
        Self([a, b, c, d])
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self([a, b, c, d]) = self;
        write!(f, "{a:02x}{b:02x}{c:02x}{d:02x}")
    }
}
