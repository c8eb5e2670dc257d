//! How an answer is judged: against what was expected, with durations set aside.

use crate::Error;
use crate::letter::{Letter, Marked, Put};
use crate::record::{
    Acted, Answer, Claimed, Ending, Held, Lease, Record, Settled, State, StepBegun,
};
use bytes::Bytes;
use std::fmt::Debug;
use std::time::Duration;

/// The longest text of an answer in a report: results may have megabytes.
const SHOWN_CHARS_MAX: usize = 600;

/// How much real time may pass within a behaviour before durations look wrong.
const SLACK: Duration = Duration::from_secs(300);

/// What a behaviour, or a part of one, comes to.
pub(super) type Judged<T = ()> = Result<T, Broken>;

/// What was expected and what was answered instead.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) expected: String,
    pub(super) answered: String,
}

/// An answer without its durations, which no two runs agree on; [`about`] judges those.
pub(super) trait Plain: Sized {
    fn plain(self) -> Self {
        self
    }
}

/// The call must give this answer.
pub(super) fn is<T>(call: &str, expected: T, answered: Result<T, Error>) -> Judged
where
    T: Plain + Debug + PartialEq,
{
    let (expected, answered) = (Ok(expected.plain()), answered.map(Plain::plain));
    if expected == answered {
        return Ok(());
    }
    broken(&format!("{call}: {}", shown(&expected)), &shown(&answered))
}

/// The call must be answered, by whatever answer.
pub(super) fn ok<T>(call: &str, answered: Result<T, Error>) -> Judged<T> {
    answered.or_else(|error| broken(&format!("{call}: an answer"), &format!("{error}")))
}

/// The claim must be granted.
pub(super) fn granted(call: &str, answered: Result<Claimed, Error>) -> Judged<Lease> {
    match answered {
        Ok(Claimed::Granted(lease)) => Ok(lease),
        other => broken(&format!("{call}: Granted"), &shown(&other)),
    }
}

/// The call must be refused as wrong, in words that name the thing.
pub(super) fn invalid<T: Debug>(call: &str, names: &str, answered: &Result<T, Error>) -> Judged {
    match answered {
        Err(Error::Invalid(why)) if why.contains(names) => Ok(()),
        other => broken(
            &format!("{call}: Invalid, in words that name the {names}"),
            &shown(other),
        ),
    }
}

/// Something must be so.
pub(super) fn that(so: bool, expected: &str, answered: impl Debug) -> Judged {
    if so {
        Ok(())
    } else {
        broken(expected, &shown(&answered))
    }
}

/// A duration must be what it should be, but for the time the behaviour itself took.
pub(super) fn about(what: &str, expected: Duration, answered: Duration) -> Judged {
    let so = answered <= expected + Duration::from_secs(1) && answered + SLACK >= expected;
    that(so, &format!("{what}: about {expected:?}"), answered)
}

pub(super) fn broken<T>(expected: &str, answered: &str) -> Judged<T> {
    Err(Broken {
        expected: expected.to_owned(),
        answered: answered.to_owned(),
    })
}

/// A recorded end, its retention aside.
pub(super) fn end(ending: Ending, result: &[u8]) -> Settled {
    Settled {
        ending,
        result: Bytes::copy_from_slice(result),
        keep: Duration::ZERO,
    }
}

pub(super) fn shown(answer: &impl Debug) -> String {
    let text = format!("{answer:?}");
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}… ({} characters)", text.split_at(end).0, text.len()),
        None => text,
    }
}

// === impl Plain ===

impl Plain for Settled {
    fn plain(self) -> Self {
        Self {
            keep: Duration::ZERO,
            ..self
        }
    }
}

impl Plain for Claimed {
    fn plain(self) -> Self {
        let retry_after = Duration::ZERO;
        match self {
            Self::Replayed(settled) => Self::Replayed(settled.plain()),
            Self::Busy { .. } => Self::Busy { retry_after },
            Self::NotYet { .. } => Self::NotYet { retry_after },
            Self::Granted(_) | Self::Parked | Self::Mismatched => self,
        }
    }
}

impl Plain for Held {
    fn plain(self) -> Self {
        match self {
            Self::Settled(settled) => Self::Settled(settled.plain()),
            Self::Applied(_) | Self::Already(_) | Self::Parked | Self::Stale => self,
        }
    }
}

impl Plain for StepBegun {
    fn plain(self) -> Self {
        match self {
            Self::Settled(settled) => Self::Settled(settled.plain()),
            Self::Run | Self::Memo { .. } | Self::InDoubt(_) | Self::Parked | Self::Stale => self,
        }
    }
}

impl Plain for Answer {
    fn plain(self) -> Self {
        match self {
            Self::Claimed(claimed) => Self::Claimed(claimed.plain()),
            Self::Held(held) => Self::Held(held.plain()),
            Self::StepBegun(begun) => Self::StepBegun(begun.plain()),
            Self::Looked(_)
            | Self::Acted(_)
            | Self::Steps(_)
            | Self::Indexed
            | Self::Found(_)
            | Self::Ready => self,
        }
    }
}

impl Plain for Acted {}
impl Plain for Put {}
impl Plain for Marked {}
impl Plain for State {}
impl Plain for Option<Record> {}
impl Plain for Option<Letter> {}
