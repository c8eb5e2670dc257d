//! One exchange between a process and a dependency, and the boundary before it.

use crate::judge::timeline::{Event, What};
use crate::world::protocol::{Message, MessageKind};
use std::time::Duration;

/// More of one exchange's bytes are not kept.
const EXCHANGE_BYTES_MAX: usize = 256 * 1024;

/// Bytes in one direction until the direction changes.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    /// Counts the boundaries of a trial, from 1.
    pub(crate) number: u32,
    pub(crate) boundary: Boundary,
    /// Which connection it belongs to.
    pub(crate) connection: u64,
    pub(crate) lane: String,
    /// The name of the process that speaks.
    pub(crate) speaker: String,
    pub(crate) message: Message,
    pub(crate) at: Duration,
    pub(crate) bytes: Vec<u8>,
    pub(crate) forwarded: bool,
    /// Seen after the trial had ended.
    pub(crate) late: bool,
}

/// A boundary that can be found again in another trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Boundary {
    pub(crate) signature: Signature,
    /// Which one of its kind this is, from 1.
    pub(crate) nth: u32,
}

/// Where a trial is to be held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    At(Boundary),
    /// By number alone: handlers may say the same in other words.
    Number(u32),
}

/// What happens at a boundary, less what differs from delivery to delivery.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Signature {
    pub(crate) process: usize,
    pub(crate) dependency: usize,
    pub(crate) outward: bool,
    pub(crate) shape: String,
}

// === impl Signature ===

impl Signature {
    /// Whichever process asks.
    pub(crate) fn same_request(&self, other: &Self) -> bool {
        self.outward && self.dependency == other.dependency && self.shape == other.shape
    }
}

// === impl Exchange ===

impl Exchange {
    /// Whether it goes to the dependency.
    pub(crate) fn is_request(&self) -> bool {
        self.boundary.signature.outward
    }

    /// Whether it changes something, or answers what does.
    pub(crate) fn writes(&self) -> bool {
        self.message.kind >= MessageKind::Write
    }

    /// Which process speaks.
    pub(crate) fn process(&self) -> usize {
        self.boundary.signature.process
    }

    pub(crate) fn is(&self, hold: &Hold) -> bool {
        match hold {
            Hold::At(boundary) => self.boundary == *boundary,
            Hold::Number(number) => self.number == *number,
        }
    }

    pub(crate) fn keep(&mut self, bytes: &[u8]) {
        let room = EXCHANGE_BYTES_MAX.saturating_sub(self.bytes.len());
        self.bytes.extend(bytes.iter().take(room));
    }

    pub(crate) fn event(&self) -> Event {
        Event {
            at: self.at,
            lane: self.lane.clone(),
            what: What::Wire {
                boundary: self.number,
                outward: self.is_request(),
                process: self.speaker.clone(),
                says: self.message.text.clone(),
                values: self.message.values.clone(),
            },
        }
    }
}

/// Whether these bytes name an id as a whole: what is longer on either side is another one. Who ends with a letter is
/// what all ids of a run begin with, and may be followed by a number.
pub(crate) fn names(bytes: &[u8], id: &str) -> bool {
    let id = id.as_bytes();
    let is_prefix = id.last().is_some_and(|last| !last.is_ascii_digit());
    let follows = |byte: u8| {
        let number = is_prefix && byte.is_ascii_digit();
        !byte.is_ascii_alphanumeric() || number
    };
    let mut found = bytes.windows(id.len().max(1)).enumerate();
    found.any(|(at, window)| {
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        let after = bytes.get(at + id.len());
        window == id
            && before.is_none_or(|byte| !byte.is_ascii_alphanumeric())
            && after.is_none_or(|byte| follows(*byte))
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn exchange(number: u32, outward: bool, text: &str, kind: MessageKind) -> Exchange {
        let signature = Signature {
            process: 0,
            dependency: 0,
            outward,
            shape: text.to_owned(),
        };
        Exchange {
            number,
            boundary: Boundary { signature, nth: 1 },
            connection: 0,
            lane: String::new(),
            speaker: String::new(),
            message: Message::new(text, kind),
            at: Duration::from_millis(number.into()),
            bytes: Vec::new(),
            forwarded: true,
            late: false,
        }
    }

    #[test]
    fn ids_are_named_as_a_whole() {
        for text in ["a7", "order-a7", "order_a7:x", r#"{"id":"a7"}"#] {
            assert!(names(text.as_bytes(), "a7"), "{text}");
        }
        for text in ["a71", "ba7", "a7b", "", "a"] {
            assert!(!names(text.as_bytes(), "a7"), "{text}");
        }
        assert!(names(b"p1x00001", "p1x") && !names(b"p1xy", "p1x"));
    }

    /// What a handler says that looks first and writes later.
    pub(crate) fn check_then_insert() -> Vec<Exchange> {
        use MessageKind::{Commit, Read, Write};
        vec![
            exchange(1, true, "SELECT", Read),
            exchange(2, false, "SELECT 0", Read),
            exchange(3, true, "INSERT", Write),
            exchange(4, false, "INSERT 0 1", Commit),
            exchange(5, true, "UPDATE", Write),
            exchange(6, false, "UPDATE 1", Commit),
        ]
    }
}
