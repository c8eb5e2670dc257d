//! A call: what a caller asked of the store, what it was told, and when. The checker reads nothing else of a worker.

use semel::protocol::{Acted, Held, State, StepBegun};
use semel::{Error, Outcome};
use serde::{Deserialize, Serialize};
use std::hash::{DefaultHasher, Hasher};
use std::ops::RangeInclusive;
use std::time::Duration;

/// A call and its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// About which key, by number.
    pub key: u32,
    /// When it was made, in µs since 1970.
    pub began: u64,
    /// When it was answered, or given up.
    pub ended: u64,
    /// What was asked.
    pub request: Request,
    /// What was said.
    pub response: Response,
}

/// What a caller asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// To run.
    Claim(ClaimTerms),
    /// To keep the right to run for so long, in µs.
    Renew(RunId, u64),
    /// To record success, to be kept so long, in µs.
    Complete(RunId, ResultId, u64),
    /// The same, in a transaction of the caller's.
    CompleteIn(RunId, Nonce),
    /// To record a failure.
    Fail(RunId, FailureTerms, ResultId),
    /// To give the right to run back.
    Release(RunId),
    /// To begin a step.
    StepBegin(RunId, String),
    /// To begin a step again.
    StepRestart(RunId, String),
    /// To record a step.
    StepComplete(RunId, String, u64),
    /// An operator's act.
    Operate(OperatorCall),
}

/// The terms of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimTerms {
    /// The claim's random id.
    pub owner: OwnerId,
    /// Which of a key's payloads.
    pub payload: u8,
    /// The lease, in µs.
    pub lease: u64,
    /// The retention, in µs.
    pub retention: u64,
    /// Whether doubt parks.
    pub park: bool,
    /// How many runs before the work is parked; 0 is no limit.
    pub max_attempts: u32,
}

/// A claim's random id, short enough to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct OwnerId(pub u64);

/// A run, as its lease names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RunId {
    /// Its fence.
    pub fence: u64,
    /// Its owner.
    pub owner: OwnerId,
    /// Its incarnation.
    pub born: u64,
    /// Its attempt.
    pub attempt: u32,
}

/// A number drawn for one result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Nonce(pub u64);

/// A stored result: whose it is, and a digest of its very bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ResultId {
    /// The number that was drawn for it.
    pub nonce: Nonce,
    /// A digest of the bytes.
    pub digest: u64,
}

/// How a run fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureTerms {
    /// How.
    pub kind: FailureKind,
    /// Whether doubt parks.
    pub park: bool,
    /// How many runs before the work is parked; 0 is no limit.
    pub max_attempts: u32,
}

/// The kinds of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailureKind {
    /// For good.
    Final,
    /// May be tried again.
    Retryable,
    /// May or may not have happened.
    InDoubt,
}

/// What an operator does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OperatorCall {
    /// Says that a parked run took effect.
    ResolveSucceeded(ResultId),
    /// Says that a parked run failed.
    ResolveFailed(ResultId),
    /// Lets a parked run be tried again.
    ResolveRetry,
    /// Makes a parked or failed record claimable again.
    Redrive,
    /// Takes the right to run away.
    Release,
    /// Ends the incarnation.
    Forget,
}

/// What a caller is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Response {
    /// Run it.
    Granted(RunId),
    /// It was settled earlier.
    Replayed(RecordedEnd),
    /// Somebody runs it.
    Busy,
    /// It is not due.
    NotYet,
    /// A person must look.
    Parked,
    /// Another payload.
    Mismatched,
    /// Written; the state now.
    Applied(u8),
    /// Written earlier; the state now.
    Already(u8),
    /// Settled under this lease.
    Settled(RecordedEnd),
    /// This run is not the owner.
    Stale,
    /// The step is to be run.
    StepRun,
    /// The step was done by this fence, with this result.
    Memo(u64, u64),
    /// The step was begun by this fence.
    StepInDoubt(u64),
    /// The operator's act was done.
    Acted,
    /// It was refused.
    Refused,
    /// It is for no such state; 0 is absent.
    Gone(u8),
    /// The caller's transaction was rolled back, by choice or because the store said so.
    RolledBack(String),
    /// Nobody knows: the caller did not wait, or the store could not be reached.
    Unknown(String),
    /// Something no caller may ever be told here.
    Wrong(String),
}

/// A recorded end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedEnd {
    /// Whether it succeeded.
    pub succeeded: bool,
    /// What was recorded.
    pub result: ResultId,
}

// === impl Call ===

impl Call {
    /// Whether the call was under way at some moment of this window.
    #[must_use]
    pub const fn overlaps(&self, window: &RangeInclusive<u64>) -> bool {
        self.began <= *window.end() && self.ended >= *window.start()
    }

    /// The run that asked, if it was one.
    #[must_use]
    pub const fn run(&self) -> Option<RunId> {
        match &self.request {
            Request::Renew(run, _)
            | Request::Complete(run, ..)
            | Request::CompleteIn(run, _)
            | Request::Fail(run, ..)
            | Request::Release(run)
            | Request::StepBegin(run, _)
            | Request::StepRestart(run, _)
            | Request::StepComplete(run, ..) => Some(*run),
            Request::Claim(_) | Request::Operate(_) => None,
        }
    }

    /// Whether what was asked may have been done.
    #[must_use]
    pub const fn may_have_been_done(&self) -> bool {
        match self.response {
            Response::Granted(_)
            | Response::Applied(_)
            | Response::Already(_)
            | Response::StepRun
            | Response::Acted
            | Response::Unknown(_) => true,
            Response::Replayed(_)
            | Response::Busy
            | Response::NotYet
            | Response::Parked
            | Response::Mismatched
            | Response::Settled(_)
            | Response::Stale
            | Response::Memo(..)
            | Response::StepInDoubt(_)
            | Response::Refused
            | Response::Gone(_)
            | Response::RolledBack(_)
            | Response::Wrong(_) => false,
        }
    }
}

// === impl Response ===

impl Response {
    /// What an answer to a write under a lease says.
    pub fn held(held: &Result<Held, Error>) -> Self {
        match held {
            Ok(Held::Applied(state)) => Self::Applied(state.number()),
            Ok(Held::Already(state)) => Self::Already(state.number()),
            Ok(Held::Settled(settled)) => Self::Settled(RecordedEnd::of(settled)),
            Ok(Held::Parked) => Self::Parked,
            Ok(Held::Stale) => Self::Stale,
            Err(error) => Self::error(error),
        }
    }

    /// What an answer to beginning a step says.
    pub fn begun(begun: &Result<StepBegun, Error>) -> Self {
        match begun {
            Ok(StepBegun::Run) => Self::StepRun,
            Ok(StepBegun::Memo { fence, result }) => Self::Memo(fence.0, digest(result)),
            Ok(StepBegun::InDoubt(fence)) => Self::StepInDoubt(fence.0),
            Ok(StepBegun::Settled(settled)) => Self::Settled(RecordedEnd::of(settled)),
            Ok(StepBegun::Parked) => Self::Parked,
            Ok(StepBegun::Stale) => Self::Stale,
            Err(error) => Self::error(error),
        }
    }

    /// What an answer to an operator says.
    pub fn acted(acted: &Result<Acted, Error>) -> Self {
        match acted {
            Ok(Acted::Applied) => Self::Acted,
            Ok(Acted::Refused) => Self::Refused,
            Ok(Acted::Gone(state)) => Self::Gone(state.map_or(0, State::number)),
            Err(error) => Self::error(error),
        }
    }

    /// What an error says.
    pub fn error(error: &Error) -> Self {
        match error {
            Error::Unavailable(why) | Error::Denied(why) => Self::Unknown(why.to_string()),
            Error::Invalid(_) | Error::Corrupt(_) | Error::Bug(_) => Self::Wrong(error.to_string()),
        }
    }
}

// === impl RecordedEnd ===

impl RecordedEnd {
    /// A recorded end as a store gives it.
    #[must_use]
    pub fn of(settled: &semel::protocol::Settled) -> Self {
        Self {
            succeeded: settled.ending == semel::protocol::Ending::Succeeded,
            result: ResultId::of(&settled.result),
        }
    }
}

// === impl ResultId ===

impl ResultId {
    /// The mark of stored bytes; nonce 0 if they hold none.
    #[must_use]
    pub fn of(result: &bytes::Bytes) -> Self {
        let outcome = Outcome::decode(result).ok();
        let nonce = outcome.and_then(|outcome| {
            let body = outcome.body_bytes();
            std::str::from_utf8(&body).ok()?.parse().ok()
        });
        Self {
            nonce: Nonce(nonce.unwrap_or(0)),
            digest: digest(result),
        }
    }
}

/// A digest to tell bytes apart.
#[must_use]
pub fn digest(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

/// A duration as calls and records give it.
#[must_use]
pub fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
