//! One translation: an operation → the call of its function, with names of keys and arguments.

use crate::library::Function;
use crate::line::Size;
use redis::Cmd;
use semel::Key;
use semel::letter::{Letter, LetterId, Mark};
use semel::record::{Claim, Fail, FailKind, Finding, InDoubt, Lease, Resolution, State};
use std::num::NonZeroU32;
use std::time::Duration;

/// Longer durations count as this: Lua's numbers are exact up to 2^53, and a time plus two of these
/// stays below.
const DURATION_MAX: Duration = Duration::from_secs(75 * 366 * 24 * 60 * 60);

/// How many bytes a command has besides its keys and results.
const COMMAND_BYTES: usize = 160;

/// From how many bytes on a call is large: it takes longer to send than a small one to answer.
const LARGE_BYTES: usize = 64 * 1024;

/// A call of a function of the library.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The key or letter it is about.
    pub(crate) about: [u8; 32],
    /// The command.
    pub(crate) command: Cmd,
    /// How long the command is.
    pub(crate) size: Size,
}

/// Builds calls for the keys of one prefix.
#[derive(Debug)]
pub(crate) struct Calls {
    prefix: String,
}

// === impl Calls ===

impl Calls {
    pub(crate) fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
        }
    }

    pub(crate) fn claim(&self, claim: &Claim) -> Call {
        self.on_record(Function::Claim, &claim.key, 0)
            .bytes(claim.fingerprint.as_bytes())
            .bytes(&claim.owner.0)
            .number(micros(claim.lease))
            .number(micros(claim.retention))
            .number(parks(claim.in_doubt))
            .number(limit(claim.max_attempts))
    }

    pub(crate) fn renew(&self, lease: &Lease, lease_for: Duration, retention: Duration) -> Call {
        self.on_lease(Function::Renew, lease, 0)
            .number(micros(lease_for))
            .number(micros(retention))
    }

    pub(crate) fn complete(&self, lease: &Lease, result: &[u8], retention: Duration) -> Call {
        self.on_lease(Function::Complete, lease, result.len())
            .number(micros(retention))
            .bytes(result)
    }

    pub(crate) fn fail(&self, lease: &Lease, how: &Fail) -> Call {
        let (kind, delay) = match how.kind {
            FailKind::Final => (1, Duration::ZERO),
            FailKind::Retryable { delay } => (2, delay),
            FailKind::InDoubt { delay } => (3, delay),
        };
        self.on_lease(Function::Fail, lease, how.result.len())
            .number(kind)
            .number(parks(how.in_doubt))
            .number(limit(how.max_attempts))
            .number(micros(delay))
            .number(micros(how.retention))
            .bytes(&how.result)
    }

    pub(crate) fn release(&self, lease: &Lease) -> Call {
        self.on_lease(Function::Release, lease, 0)
    }

    pub(crate) fn look(&self, key: &Key) -> Call {
        self.on_record(Function::Look, key, 0)
    }

    /// As [`look`](Self::look), without the result.
    pub(crate) fn look_at_head(&self, key: &Key) -> Call {
        self.on_record(Function::Look, key, 0).number(0)
    }

    pub(crate) fn step_begin(&self, lease: &Lease, name: &str) -> Call {
        self.on_lease(Function::StepBegin, lease, name.len())
            .bytes(name.as_bytes())
    }

    pub(crate) fn step_restart(&self, lease: &Lease, name: &str) -> Call {
        self.on_lease(Function::StepRestart, lease, name.len())
            .bytes(name.as_bytes())
    }

    pub(crate) fn step_complete(&self, lease: &Lease, name: &str, result: &[u8]) -> Call {
        self.on_lease(Function::StepComplete, lease, name.len() + result.len())
            .bytes(name.as_bytes())
            .bytes(result)
    }

    pub(crate) fn resolve(&self, key: &Key, how: &Resolution) -> Call {
        let (state, result) = match &how.finding {
            Finding::Succeeded(result) => (State::Succeeded, result.as_ref()),
            Finding::Failed(result) => (State::Failed, result.as_ref()),
            Finding::Retry => (State::Waiting, [].as_slice()),
        };
        let fence = how.fence.map(|fence| fence.to_string());
        self.on_record(Function::Resolve, key, result.len())
            .number(u64::from(state.number()))
            .bytes(result)
            .bytes(fence.unwrap_or_default().as_bytes())
    }

    pub(crate) fn redrive(&self, key: &Key) -> Call {
        self.on_record(Function::Redrive, key, 0)
    }

    pub(crate) fn release_by_operator(&self, key: &Key) -> Call {
        self.on_record(Function::ReleaseByOperator, key, 0)
    }

    pub(crate) fn forget(&self, key: &Key) -> Call {
        self.on_record(Function::Forget, key, 0)
    }

    pub(crate) fn letter_put(&self, letter: &Letter) -> Call {
        let key = letter.key.map(|key| hex::encode(key.as_bytes()));
        let more = letter.route.len() + letter.delivery.len();
        self.on_letter(Function::LetterPut, &letter.id, more)
            .bytes(&letter.id.0)
            .bytes(key.as_deref().unwrap_or("-").as_bytes())
            .bytes(letter.route.as_bytes())
            .number(u64::from(letter.reason.number()))
            .number(letter.fence.0)
            .number(micros(letter.retention))
            .number(u64::from(letter.redriven))
            .bytes(&letter.delivery)
    }

    /// `after` is the time of the last letter seen.
    pub(crate) fn letter_list(&self, after: u64, limit: u64) -> Call {
        self.on_letters(Function::LetterList, [0; 32], 0)
            .number(after)
            .number(limit)
    }

    pub(crate) fn letter_get(&self, id: &LetterId) -> Call {
        self.on_letters(Function::LetterGet, id.0, 0).bytes(&id.0)
    }

    pub(crate) fn letter_mark(&self, id: &LetterId, mark: Mark) -> Call {
        let number = match mark {
            Mark::Redriven => 1,
            Mark::Closed => 2,
        };
        self.on_letter(Function::LetterMark, id, 0)
            .bytes(&id.0)
            .number(number)
    }

    /// The small write that `WAIT` waits for.
    pub(crate) fn touch(&self) -> Cmd {
        let mut command = Cmd::with_capacity(4, COMMAND_BYTES);
        command.arg("FCALL").arg(Function::Touch.name()).arg(1);
        command.arg(format!("{}:wait", self.prefix));
        command
    }

    /// A write that a server without memory to spare refuses, as it refuses a claim.
    pub(crate) fn ready(&self) -> Cmd {
        let mut command = Cmd::with_capacity(4, COMMAND_BYTES);
        command.arg("FCALL").arg(Function::Ready.name()).arg(1);
        command.arg(format!("{}:ready", self.prefix));
        command
    }

    /// The pattern that names of records match, and names of steps and letters do not.
    pub(crate) fn record_pattern(&self) -> String {
        format!("{}:{{*}}", self.prefix)
    }

    /// The key of the record with that name.
    pub(crate) fn key_of(&self, name: &[u8]) -> Option<Key> {
        let rest = name.strip_prefix(self.prefix.as_bytes())?;
        let digits = rest.strip_prefix(b":{")?.strip_suffix(b"}")?;
        let mut key = [0; 32];
        hex::decode_to_slice(digits, &mut key).ok()?;
        Some(Key::from_bytes(key))
    }

    fn record_name(&self, key: &Key) -> String {
        let mut digits = [0; 64];
        hex::encode_to_slice(key.as_bytes(), &mut digits).expect("64 digits hold 32 bytes");
        let digits = std::str::from_utf8(&digits).expect("hex digits are text");
        let mut name = String::with_capacity(self.prefix.len() + digits.len() + 3);
        for part in [self.prefix.as_str(), ":{", digits, "}"] {
            name.push_str(part);
        }
        name
    }

    fn on_record(&self, function: Function, key: &Key, more: usize) -> Call {
        let record = self.record_name(key);
        let bytes = COMMAND_BYTES + 2 * record.len() + more;
        let mut command = Cmd::with_capacity(13, bytes);
        command.arg("FCALL").arg(function.name()).arg("2");
        command.arg(&record).arg(record.clone() + ":s");
        Call {
            about: *key.as_bytes(),
            command,
            size: size(more),
        }
    }

    fn on_lease(&self, function: Function, lease: &Lease, more: usize) -> Call {
        self.on_record(function, &lease.key, more)
            .bytes(&lease.owner.0)
            .number(lease.fence.0)
    }

    /// On the letters as a whole.
    fn on_letters(&self, function: Function, about: [u8; 32], more: usize) -> Call {
        self.on_letter_keys(function, about, &[], more)
    }

    /// On one letter and its tombstone.
    fn on_letter(&self, function: Function, id: &LetterId, more: usize) -> Call {
        let tombstone = format!("{}:{{letters}}:t:{id}", self.prefix);
        self.on_letter_keys(function, id.0, &[tombstone], more)
    }

    fn on_letter_keys(
        &self,
        function: Function,
        about: [u8; 32],
        keys: &[String],
        more: usize,
    ) -> Call {
        let bytes = COMMAND_BYTES + 3 * (self.prefix.len() + 80) + more;
        let mut command = Cmd::with_capacity(15, bytes);
        command
            .arg("FCALL")
            .arg(function.name())
            .arg(2 + keys.len());
        command.arg(format!("{}:{{letters}}:h", self.prefix));
        command.arg(format!("{}:{{letters}}:z", self.prefix));
        command.arg(keys);
        Call {
            about,
            command,
            size: size(more),
        }
    }
}

// === impl Call ===

impl Call {
    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.command.arg(bytes);
        self
    }

    fn number(mut self, number: u64) -> Self {
        self.command.arg(number);
        self
    }
}

fn size(bytes: usize) -> Size {
    if bytes < LARGE_BYTES {
        Size::Small
    } else {
        Size::Large
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.min(DURATION_MAX).as_micros()).expect("75 years fit 64 bits")
}

fn parks(in_doubt: InDoubt) -> u64 {
    match in_doubt {
        InDoubt::Retry => 0,
        InDoubt::Park => 1,
    }
}

/// 0 is no limit.
fn limit(max_attempts: Option<NonZeroU32>) -> u64 {
    max_attempts.map_or(0, |max| u64::from(max.get()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_records_are_read_back_and_others_are_not() {
        let calls = Calls::new("sml");
        let key = Key::from_bytes([0xab; 32]);
        let name = calls.record_name(&key);
        assert_eq!(name, format!("sml:{{{}}}", "ab".repeat(32)));
        assert_eq!(calls.key_of(name.as_bytes()), Some(key));
        for other in [
            &format!("{name}:s"),
            "sml:{letters}:h",
            "sml:{}",
            "x:{ab}",
            "",
        ] {
            assert_eq!(calls.key_of(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn no_duration_leaves_what_lua_counts_exactly() {
        let now = 4_102_444_800_000_000; // the year 2100
        assert_eq!(micros(Duration::from_nanos(1_999)), 1);
        assert!(now + 2 * micros(Duration::MAX) < 1 << 53);
    }
}
