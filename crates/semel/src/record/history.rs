//! What a record remembers of attempts that are over: for people, decided by never.

use super::{Fence, Record, State};
use crate::clock::Time;
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// How many superseded attempts a record keeps: the latest ones.
pub const HISTORY_ITEMS_MAX: usize = 8;

/// How many bytes of an attempt's result its history keeps: of an encoded [`Outcome`](crate::Outcome) the status and how the
/// body begins.
pub const HISTORY_RESULT_BYTES_MAX: usize = 96;

/// The longest name of who claims or acts, and why, in bytes.
pub const BY_BYTES_MAX: usize = 128;

/// One attempt that a later grant or an act has superseded, as its record stood before that.
///
/// The grant or act that superseded attempt *k* began attempt *k* + 1, so `by` says where that ran; where the first one ran
/// is for the label to say. An act is an entry of its own: it has a fence, and the grant after it supersedes that. A keeper's
/// park has none, so its entry and the one of the act that follows have the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Superseded {
    /// The fence of the attempt: nearly the time of its grant, in µs.
    pub fence: Fence,
    /// How the record stood. Running: the attempt lapsed. Waiting: it failed or was released. Failed, parked: an act followed.
    pub state: State,
    /// Whether the attempt may or may not have had its effect.
    pub in_doubt: bool,
    /// The record's `lease_until`: the end of the lease; waiting, not before; otherwise when it got there.
    pub until: Time,
    /// When it was superseded.
    pub at: Time,
    /// Who superseded it: as the claim or the act said.
    pub by: Bytes,
    /// How its result began, at most [`HISTORY_RESULT_BYTES_MAX`] bytes; empty when it left no word.
    pub result: Bytes,
}

/// Who acted on a record and why, as [`Superseded::by`] has it: `redrive by alice: the bank is back`. What is too long is cut.
///
/// ```
/// use semel::protocol::act_by;
///
/// assert_eq!(act_by("redrive", "alice", "the bank is back"), "redrive by alice: the bank is back");
/// assert_eq!(act_by("release", "", ""), "release");
/// ```
#[must_use]
pub fn act_by(act: &str, who: &str, why: &str) -> Bytes {
    let mut by = act.to_owned();
    for (before, words) in [(" by ", who), (": ", why)] {
        if !words.is_empty() {
            by.push_str(before);
            by.push_str(words);
        }
    }
    cut_by(&by)
}

/// As much of who claims or acts as a record keeps, cut between characters.
#[must_use]
pub fn cut_by(by: &str) -> Bytes {
    let end = by.floor_char_boundary(BY_BYTES_MAX);
    Bytes::copy_from_slice(by.get(..end).unwrap_or_default().as_bytes())
}

/// A history as bytes, for stores that keep it whole.
#[must_use]
pub fn encode_history(history: &[Superseded]) -> Bytes {
    let mut out = BytesMut::new();
    for entry in history {
        out.put_u8(entry.state.number());
        out.put_u8(u8::from(entry.in_doubt));
        out.put_u64(entry.fence.0);
        out.put_u64(entry.until.0);
        out.put_u64(entry.at.0);
        for bytes in [&entry.by, &entry.result] {
            out.put_u8(u8::try_from(bytes.len()).expect("both are bounded below that"));
            out.put_slice(bytes);
        }
    }
    out.freeze()
}

/// Reads what [`encode_history`] wrote; `None` when it makes no sense.
#[must_use]
pub fn decode_history(mut bytes: Bytes) -> Option<Vec<Superseded>> {
    let mut history = Vec::new();
    while !bytes.is_empty() {
        let state = State::from_number(bytes.try_get_u8().ok()?)?;
        let in_doubt = bytes.try_get_u8().ok()? == 1;
        history.push(Superseded {
            state,
            in_doubt,
            fence: Fence(bytes.try_get_u64().ok()?),
            until: Time(bytes.try_get_u64().ok()?),
            at: Time(bytes.try_get_u64().ok()?),
            by: short(&mut bytes)?,
            result: short(&mut bytes)?,
        });
    }
    Some(history)
}

fn short(bytes: &mut Bytes) -> Option<Bytes> {
    let length = usize::from(bytes.try_get_u8().ok()?);
    (length <= bytes.len()).then(|| bytes.split_to(length))
}

// === impl Superseded ===

impl Superseded {
    /// The attempt of this record, which somebody supersedes now.
    pub(super) fn of(old: &Record, by: &Bytes, now: Time) -> Self {
        let result = old.last_failure().unwrap_or_default();
        let kept = result.len().min(HISTORY_RESULT_BYTES_MAX);
        Self {
            fence: old.fence,
            state: old.state,
            in_doubt: old.ended_in_doubt(),
            until: old.lease_until,
            at: now,
            by: by.clone(),
            // Copied, so that an entry does not hold on to a large result.
            result: Bytes::copy_from_slice(result.get(..kept).unwrap_or_default()),
        }
    }
}

// === impl Record ===

impl Record {
    /// Adds what a decision says was superseded; the oldest entries make room.
    pub fn remember(&mut self, superseded: Option<Superseded>) {
        self.history.extend(superseded);
        let over = self.history.len().saturating_sub(HISTORY_ITEMS_MAX);
        self.history.drain(..over);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(by: &'static str) -> Superseded {
        Superseded {
            fence: Fence(7),
            state: State::Waiting,
            in_doubt: true,
            until: Time(8),
            at: Time(9),
            by: by.into(),
            result: Bytes::from_static(&[0; HISTORY_RESULT_BYTES_MAX]),
        }
    }

    #[test]
    fn a_history_is_read_as_written() {
        for history in [vec![], vec![entry("gate a")], vec![entry(""), entry("b")]] {
            assert_eq!(decode_history(encode_history(&history)), Some(history));
        }
        let cut = encode_history(&[entry("gate a")]).slice(..40);
        assert_eq!(decode_history(cut), None);
    }

    #[test]
    fn who_acted_is_cut_between_characters() {
        let long = act_by("redrive", "bob", &"ä".repeat(BY_BYTES_MAX));
        assert!(long.len() <= BY_BYTES_MAX);
        assert!(std::str::from_utf8(&long).is_ok());
    }
}
