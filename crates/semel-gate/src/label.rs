//! Labels: what a record is about, for people. A claim carries one, and nothing is ever decided by it.
//!
//! It is JSON of at most [`LABEL_BYTES_MAX`](semel::store::LABEL_BYTES_MAX) bytes. Each member has room of its own, so that
//! a long one is cut and takes nothing from the others. Neither the caller nor a credential is ever part of it.

mod description;
mod digests;
mod encode;

pub(crate) use description::PART_TEXT_BYTES_MAX;
pub use description::{Description, part_name};
pub use digests::{Digest, Digests};
pub use encode::LabelOf;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use std::fmt;

/// A label that was read. What it does not say is empty: other versions, and users of the library, write others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Label {
    /// The route's name.
    pub route: String,
    /// Who delivered first.
    pub source: String,
    /// The gate that ran it first.
    pub gate: String,
    /// The parts of its key by name, in the order of the rule: in clear, or a keyed digest on a private route.
    #[serde(deserialize_with = "parts")]
    pub parts: Vec<(String, String)>,
    /// The sender's own name for the first delivery: of the task, message or event.
    pub id: String,
    /// The queue or subscription that it came from.
    pub from: String,
    /// The span that began the work.
    pub traceparent: String,
    /// Of what its fingerprint was taken.
    pub digests: Digests,
    /// The payload, where the route keeps it and it fits.
    pub payload: Option<String>,
}

/// The parts of a key, in the order in which they are written.
struct Parts;

// === impl Label ===

impl Label {
    /// Reads a label; `None` when it is none of a gate's.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    /// One short line for people: `order_id A-1`. Empty when there is nothing to say.
    #[must_use]
    pub fn about(&self) -> String {
        about(&self.parts)
    }

    /// The id of the trace that the work began in.
    #[must_use]
    pub fn trace_id(&self) -> Option<&str> {
        self.traceparent.split('-').nth(1)
    }
}

/// What parts say of the work: `order_id A-1, line 3`. Where a part stood is left out.
pub(crate) fn about(parts: &[(String, String)]) -> String {
    let mut line = String::with_capacity(parts.iter().map(|(n, v)| n.len() + v.len() + 3).sum());
    for (name, value) in parts {
        if !line.is_empty() {
            line.push_str(", ");
        }
        let plain = ["header:", "attribute:"]
            .iter()
            .find_map(|it| name.strip_prefix(it));
        line.push_str(plain.unwrap_or(name));
        line.push(' ');
        line.push_str(value);
    }
    line
}

/// A text that is at most so many bytes long, and ends in `…` where it was cut.
pub(crate) fn cut(text: &str, bytes_max: usize) -> std::borrow::Cow<'_, str> {
    if text.len() <= bytes_max {
        return text.into();
    }
    let room = bytes_max.saturating_sub('…'.len_utf8());
    let kept = text.get(..text.floor_char_boundary(room));
    format!("{}…", kept.unwrap_or_default()).into()
}

fn parts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(String, String)>, D::Error> {
    from.deserialize_map(Parts)
}

impl<'de> Visitor<'de> for Parts {
    type Value = Vec<(String, String)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of texts")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut parts = Vec::new();
        while let Some(part) = map.next_entry()? {
            parts.push(part);
        }
        Ok(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_for_people_leaves_out_where_a_part_stood() {
        let parts = [("order_id", "A-1"), ("header:x-shop", "7"), ("ce:id", "e1")];
        let parts = parts.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(about(&parts), "order_id A-1, x-shop 7, ce:id e1");
    }
}
