//! When incarnations are looked at by a sweep: rows in the order of time, so that a sweep reads what is due and nothing else.

use super::{Decode, Encode, Fields};
use semel::Key;
use semel::protocol::Fence;

/// What is due at one time, as one group noted it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Due(pub(crate) Vec<Incarnation>);

/// An incarnation of a key. Whichever follows it has a note of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Incarnation {
    pub(crate) key: Key,
    pub(crate) born: Fence,
}

// === impl Due ===

impl Encode for Due {
    fn encode(&self, out: &mut Vec<u8>) {
        for of in &self.0 {
            out.extend_from_slice(of.key.as_bytes());
            out.extend_from_slice(&of.born.0.to_be_bytes());
        }
    }
}

impl Decode for Due {
    fn decode(mut fields: Fields<'_>) -> Option<Self> {
        let mut due = Vec::with_capacity(fields.0.len() / 40);
        while !fields.0.is_empty() {
            due.push(Incarnation {
                key: Key::from_bytes(fields.array()?),
                born: Fence(fields.u64()?),
            });
        }
        Some(Self(due))
    }
}
