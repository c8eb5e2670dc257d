//! Outcome: what became of a run, and how a store keeps it.
//!
//! Version 1: byte `0x01` · 4-byte big-endian length n · n bytes of JSON
//! `{"status":200,"headers":{"content-type":"application/json"}}` · body bytes. A header value is a
//! string, or an array of strings when the header is repeated; bytes that are not UTF-8 stand in it as
//! `header` says. `"body":"not-kept"` in the JSON says that the body was over the limit.

mod header;

pub use header::{bytes_of, text_of};

use crate::store::Error;
use bytes::{BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The first byte of an encoded outcome.
const VERSION: u8 = 1;

/// The headers that are recorded and replayed. Cookies, credentials and everything that belongs to
/// one connection or one moment are not.
pub const HEADERS_KEPT: [&str; 16] = [
    "content-type",
    "content-language",
    "content-encoding",
    "content-disposition",
    "location",
    "etag",
    "last-modified",
    "link",
    "retry-after",
    // Without these a web page could read the first answer and no replay of it.
    "access-control-allow-credentials",
    "access-control-allow-headers",
    "access-control-allow-methods",
    "access-control-allow-origin",
    "access-control-expose-headers",
    "access-control-max-age",
    "vary",
];

/// What became of a run: a status, headers and a body, replayed byte for byte to duplicates.
///
/// ```
/// use semel::Outcome;
///
/// let outcome = Outcome::new(201, "charged").with_header("content-type", "text/plain");
/// assert_eq!(Outcome::decode(&outcome.encode()).unwrap(), outcome);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// A status in the sense of HTTP. The library gives it no meaning.
    pub status: u16,
    /// The headers that are kept, in lower case, each with its values in order; [`bytes_of`] gives the
    /// bytes of a value.
    pub headers: BTreeMap<String, Vec<String>>,
    /// The body.
    pub body: Body,
}

/// The body of an outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// All of it.
    Kept(Bytes),
    /// It was larger than the limit: the outcome stands, the body was not kept.
    NotKept,
}

#[derive(Serialize, Deserialize)]
struct Head {
    status: u16,
    #[serde(default)]
    headers: BTreeMap<String, Values>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<NotKept>,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Values {
    One(String),
    Many(Vec<String>),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum NotKept {
    NotKept,
}

// === impl Outcome ===

impl Outcome {
    /// An outcome with this status and body.
    #[must_use]
    pub fn new(status: u16, body: impl Into<Bytes>) -> Self {
        Self {
            status,
            headers: BTreeMap::new(),
            body: Body::Kept(body.into()),
        }
    }

    /// Status 200 with this body: what most effects of a Rust service end with.
    #[must_use]
    pub fn ok(body: impl Into<Bytes>) -> Self {
        Self::new(200, body)
    }

    /// Adds a header value.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers
            .entry(name.to_ascii_lowercase())
            .or_default()
            .push(value.into());
        self
    }

    /// Adds a header value that may be other than UTF-8.
    #[must_use]
    pub fn with_header_bytes(self, name: &str, value: &[u8]) -> Self {
        self.with_header(name, text_of(value))
    }

    /// The same outcome, its body dropped if it is longer than `max` bytes.
    #[must_use]
    pub fn bounded(mut self, max: usize) -> Self {
        if matches!(&self.body, Body::Kept(bytes) if bytes.len() > max) {
            self.body = Body::NotKept;
        }
        self
    }

    /// The body's bytes; empty when they were not kept.
    #[must_use]
    pub fn body_bytes(&self) -> Bytes {
        match &self.body {
            Body::Kept(bytes) => bytes.clone(),
            Body::NotKept => Bytes::new(),
        }
    }

    /// The bytes that a store keeps.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let head =
            serde_json::to_vec(&Head::from(self)).expect("strings and numbers always encode");
        let body = self.body_bytes();
        let mut out = BytesMut::with_capacity(5 + head.len() + body.len());
        out.put_u8(VERSION);
        out.put_u32(u32::try_from(head.len()).expect("headers are bounded far below 4 GiB"));
        out.put_slice(&head);
        out.put_slice(&body);
        out.freeze()
    }

    /// Reads what a store kept.
    ///
    /// # Errors
    /// `Corrupt` when the bytes are no outcome of a version this build knows.
    pub fn decode(bytes: &Bytes) -> Result<Self, Error> {
        let wrong = |what: &str| {
            Error::corrupt(format!(
                "a stored outcome {what}; nothing is replayed from it, look at the record with \
                 `semel records show`"
            ))
        };
        let Some((&[version, a, b, c, d], rest)) = bytes.split_first_chunk::<5>() else {
            return Err(wrong("is too short"));
        };
        if version != VERSION {
            return Err(wrong(&format!(
                "has version {version}, this build reads version 1"
            )));
        }
        let length = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
        let Some((head, body)) = rest.split_at_checked(length) else {
            return Err(wrong("is cut off"));
        };
        let head: Head =
            serde_json::from_slice(head).map_err(|e| wrong(&format!("has a bad head ({e})")))?;
        Ok(head.with_body(bytes.slice_ref(body)))
    }
}

// === impl Head ===

impl From<&Outcome> for Head {
    fn from(outcome: &Outcome) -> Self {
        let values = |values: &Vec<String>| match values.as_slice() {
            [one] => Values::One(one.clone()),
            many => Values::Many(many.to_vec()),
        };
        Self {
            status: outcome.status,
            headers: outcome
                .headers
                .iter()
                .map(|(name, v)| (name.clone(), values(v)))
                .collect(),
            body: match outcome.body {
                Body::Kept(_) => None,
                Body::NotKept => Some(NotKept::NotKept),
            },
        }
    }
}

impl Head {
    fn with_body(self, body: Bytes) -> Outcome {
        let values = |values| match values {
            Values::One(one) => vec![one],
            Values::Many(many) => many,
        };
        Outcome {
            status: self.status,
            headers: self
                .headers
                .into_iter()
                .map(|(name, v)| (name, values(v)))
                .collect(),
            body: match self.body {
                None => Body::Kept(body),
                Some(NotKept::NotKept) => Body::NotKept,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_postgres_writes_is_read() {
        let head = br#"{"status" : 200, "headers" : {"content-type": "application/json"}}"#;
        let mut bytes = vec![1, 0, 0, 0, u8::try_from(head.len()).unwrap()];
        bytes.extend_from_slice(head);
        bytes.extend_from_slice(b"{}");
        let outcome = Outcome::decode(&bytes.into()).unwrap();
        assert_eq!(
            outcome,
            Outcome::ok("{}").with_header("Content-Type", "application/json")
        );
    }

    #[test]
    fn a_body_over_the_limit_is_not_kept_and_says_so() {
        let outcome = Outcome::ok(vec![0; 11]).bounded(10);
        assert_eq!(outcome.body, Body::NotKept);
        assert_eq!(
            Outcome::decode(&outcome.encode()).unwrap().body,
            Body::NotKept
        );
        assert_eq!(
            Outcome::ok(vec![0; 10]).bounded(10),
            Outcome::ok(vec![0; 10])
        );
    }

    #[test]
    fn damaged_outcomes_are_refused() {
        let good = Outcome::ok("x").encode();
        for bad in [
            Bytes::new(),
            good.slice(..4),
            good.slice(..10),
            Bytes::from_static(&[2; 40]),
        ] {
            let error = Outcome::decode(&bad).unwrap_err();
            assert!(matches!(error, Error::Corrupt(_)), "{error}");
        }
    }
}
