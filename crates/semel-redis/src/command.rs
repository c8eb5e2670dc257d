//! One translation: an operation → the command that calls its function.

use crate::connections::Size;
use crate::library::function;
use crate::names::Names;
use redis::Cmd;
use semel::Key;
use semel::letter::{Letter, LetterId, Mark};
use semel::protocol::{
    Claim, DoubtLimit, Fail, FailKind, Finding, InDoubt, Lease, Operation, State,
};
use semel::store::{FOUND_KEYS_MAX, STEP_SHOWN_BYTES_MAX, STEPS_SHOWN_MAX};
use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::time::Duration;

/// Longer durations count as this: Lua's numbers are exact up to 2^53, and a time plus two of these
/// stays below.
const DURATION_MAX: Duration = Duration::from_secs(75 * 366 * 24 * 60 * 60);

/// How many bytes a command has besides its keys and results.
const COMMAND_BYTES: usize = 160;

/// From how many bytes on a command is large: it takes longer to send than a small one to answer.
const LARGE_BYTES: usize = 64 * 1024;

/// A call of a function of the library.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    /// The key or letter it is about.
    pub(crate) about: [u8; 32],
    /// What is sent.
    pub(crate) sent: Cmd,
    /// How long that is.
    pub(crate) size: Size,
}

// === impl Command ===

impl Command {
    /// The command for an operation on a record.
    pub(crate) fn of(names: &Names, operation: &Operation) -> Self {
        let command = Self::on_record(names, operation);
        match operation {
            Operation::Claim(claim) => command.claim(claim),
            Operation::Renew {
                lease,
                lease_for,
                retention,
            } => command
                .lease(lease)
                .number(micros(*lease_for))
                .number(micros(*retention)),
            Operation::Complete {
                lease,
                result,
                retention,
            } => command
                .lease(lease)
                .number(micros(*retention))
                .bytes(result),
            Operation::Fail { lease, how } => command.lease(lease).failure(how),
            Operation::Release { lease, park_after } => command.lease(lease).duration(*park_after),
            Operation::StepBegin { lease, name } | Operation::StepRestart { lease, name } => {
                command.lease(lease).bytes(name.as_bytes())
            }
            Operation::StepComplete {
                lease,
                name,
                result,
            } => command.lease(lease).bytes(name.as_bytes()).bytes(result),
            Operation::Resolve { how, by, .. } => {
                let (state, result) = match &how.finding {
                    Finding::Succeeded(result) => (State::Succeeded, result.as_ref()),
                    Finding::Failed(result) => (State::Failed, result.as_ref()),
                    Finding::Retry => (State::Waiting, [].as_slice()),
                };
                let fence = how.fence.map(|fence| fence.to_string());
                command
                    .number(u64::from(state.number()))
                    .bytes(result)
                    .bytes(fence.unwrap_or_default().as_bytes())
                    .bytes(by)
            }
            Operation::Retain { retention, .. } => command.number(micros(*retention)),
            Operation::Redrive { by, .. } | Operation::ReleaseByOperator { by, .. } => {
                command.bytes(by)
            }
            Operation::Steps(_) => command
                .number(STEPS_SHOWN_MAX as u64)
                .number(STEP_SHOWN_BYTES_MAX as u64),
            Operation::Look(_)
            | Operation::Forget(_)
            | Operation::Index { .. }
            | Operation::Find(_)
            | Operation::Ready => command,
        }
    }

    /// Only the part of a look that lists show: without the result and the label.
    pub(crate) fn without_result(self) -> Self {
        self.number(0)
    }

    pub(crate) fn letter_put(names: &Names, letter: &Letter) -> Self {
        let key = letter.key.map(|key| hex::encode(key.as_bytes()));
        let more = letter.route.len() + letter.delivery.len();
        Self::on_letter(names, "letter_put", &letter.id, more)
            .bytes(&letter.id.0)
            .bytes(key.as_deref().unwrap_or("-").as_bytes())
            .bytes(letter.route.as_bytes())
            .number(u64::from(letter.reason.number()))
            .number(letter.fence.0)
            .number(micros(letter.retention))
            .number(u64::from(letter.redriven))
            .number(u64::from(letter.alarmed))
            .bytes(&letter.delivery)
    }

    /// `after` is the time of the last letter seen.
    pub(crate) fn letter_list(names: &Names, after: u64, limit: u64) -> Self {
        let about = [0; 32];
        Self::new("letter_list", about, &names.letters(), 0)
            .number(after)
            .number(limit)
    }

    pub(crate) fn letter_get(names: &Names, id: &LetterId) -> Self {
        Self::new("letter_get", id.0, &names.letters(), 0).bytes(&id.0)
    }

    pub(crate) fn letter_mark(names: &Names, id: &LetterId, mark: Mark) -> Self {
        let number = match mark {
            Mark::Redriven => 1,
            Mark::Alarmed => 2,
            Mark::Closed => 3,
        };
        Self::on_letter(names, "letter_mark", id, 0)
            .bytes(&id.0)
            .number(number)
    }

    /// Keeps a key under the digest of a transport id.
    pub(crate) fn index(names: &Names, id: &[u8; 32], key: &Key, keep: Duration) -> Self {
        Self::on_index(names, "index", id)
            .number(micros(keep))
            .bytes(key.as_bytes())
    }

    /// Remembers under which digests a key is kept.
    pub(crate) fn index_of(
        names: &Names,
        key: &Key,
        ids: &BTreeSet<[u8; 32]>,
        keep: Duration,
    ) -> Self {
        let about = *key.as_bytes();
        let command = Self::new("index", about, &[names.index_of(key)], 0);
        let command = command.number(micros(keep));
        ids.iter().fold(command, |command, id| command.bytes(id))
    }

    /// The keys under the digest of a transport id.
    pub(crate) fn find(names: &Names, id: &[u8; 32]) -> Self {
        Self::on_index(names, "find", id).number(FOUND_KEYS_MAX as u64)
    }

    /// Forgets under which digests a key is kept, and says them.
    pub(crate) fn index_ids(names: &Names, key: &Key) -> Self {
        Self::new("index_ids", *key.as_bytes(), &[names.index_of(key)], 0)
    }

    pub(crate) fn unindex(names: &Names, id: &[u8; 32], key: &Key) -> Self {
        Self::on_index(names, "unindex", id).bytes(key.as_bytes())
    }

    fn on_index(names: &Names, word: &str, id: &[u8; 32]) -> Self {
        Self::new(word, *id, &[names.index(id)], 0)
    }

    /// The small write that `WAIT` waits for.
    pub(crate) fn touch(names: &Names) -> Self {
        Self::new("touch", [0; 32], &[names.of("wait")], 0)
    }

    /// On the record and the steps of an operation's key; on a key of its own when it has none.
    fn on_record(names: &Names, operation: &Operation) -> Self {
        let word = operation.word();
        let Some(key) = operation.key() else {
            // A write that a server without memory to spare refuses, as it refuses a claim.
            return Self::new(word, [0; 32], &[names.of("ready")], 0);
        };
        let record = names.record(key);
        let steps = record.clone() + ":s";
        let more = carried(operation);
        Self::new(word, *key.as_bytes(), &[record, steps], more)
    }

    /// On one letter and its tombstone.
    fn on_letter(names: &Names, word: &str, id: &LetterId, more: usize) -> Self {
        let [heads, order] = names.letters();
        Self::new(word, id.0, &[heads, order, names.tombstone(id)], more)
    }

    fn new(word: &str, about: [u8; 32], keys: &[String], more: usize) -> Self {
        let named: usize = keys.iter().map(String::len).sum();
        let mut sent = Cmd::with_capacity(18, COMMAND_BYTES + named + more);
        sent.arg("FCALL")
            .arg(function(word))
            .arg(keys.len())
            .arg(keys);
        Self {
            about,
            sent,
            size: if more < LARGE_BYTES {
                Size::Small
            } else {
                Size::Large
            },
        }
    }

    fn lease(self, lease: &Lease) -> Self {
        self.bytes(&lease.owner.0).number(lease.fence.0)
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.sent.arg(bytes);
        self
    }

    fn claim(self, claim: &Claim) -> Self {
        self.bytes(claim.fingerprint.as_bytes())
            .bytes(&claim.owner.0)
            .number(micros(claim.lease))
            .number(micros(claim.retention))
            .number(policy(claim.in_doubt))
            .number(limit(claim.max_attempts))
            .doubts(claim.max_in_doubt)
            .duration(claim.park_after)
            .duration(claim.acts_for)
            .bytes(&claim.label)
            .bytes(&claim.by)
    }

    fn failure(self, how: &Fail) -> Self {
        let (kind, delay) = match how.kind {
            FailKind::Final => (1, Duration::ZERO),
            FailKind::Retryable { delay } => (2, delay),
            FailKind::InDoubt { delay } => (3, delay),
            FailKind::StillInDoubt { delay } => (4, delay),
        };
        self.number(kind)
            .number(policy(how.in_doubt))
            .number(limit(how.max_attempts))
            .doubts(how.max_in_doubt)
            .duration(how.park_after)
            .number(micros(delay))
            .number(micros(how.retention))
            .bytes(&how.result)
    }

    fn doubts(self, max: Option<DoubtLimit>) -> Self {
        let age = max.map_or(Duration::ZERO, |max| max.age);
        self.number(limit(max.map(|max| max.runs)))
            .number(micros(age))
    }

    fn number(mut self, number: u64) -> Self {
        self.sent.arg(number);
        self
    }

    /// Nothing when there is none.
    fn duration(self, duration: Option<Duration>) -> Self {
        match duration {
            Some(duration) => self.number(micros(duration)),
            None => self.bytes(b""),
        }
    }
}

/// How many bytes of names and results an operation carries.
fn carried(operation: &Operation) -> usize {
    let name = operation.step().map_or(0, |(_, name)| name.len());
    name + operation.result().map_or(0, |result| result.len())
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.min(DURATION_MAX).as_micros()).expect("75 years fit 64 bits")
}

fn policy(in_doubt: InDoubt) -> u64 {
    match in_doubt {
        InDoubt::Retry => 0,
        InDoubt::Park => 1,
        InDoubt::Probe => 2,
    }
}

/// 0 is no limit.
fn limit(max: Option<NonZeroU32>) -> u64 {
    max.map_or(0, |max| u64::from(max.get()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_duration_leaves_what_lua_counts_exactly() {
        let now = 4_102_444_800_000_000; // the year 2100
        assert_eq!(micros(Duration::from_nanos(1_999)), 1);
        assert!(now + 2 * micros(Duration::MAX) < 1 << 53);
    }
}
