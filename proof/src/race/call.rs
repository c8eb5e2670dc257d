//! A call: what a caller asked of the store, what it was told, and when. The checker reads nothing else of a worker.

use semel::protocol::{
    Acted, Answer, Claim, Claimed, Fail, FailKind, Finding, Held, InDoubt, Lease, Operation, Owner,
    State, StepBegun,
};
use semel::{Error, Fingerprint, Outcome};
use serde::{Deserialize, Serialize};
use std::hash::{DefaultHasher, Hasher};
use std::num::NonZeroU32;
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

// === impl Request ===

impl Request {
    /// What an operation asks.
    pub(super) fn of(operation: &Operation) -> Self {
        match operation {
            Operation::Claim(claim) => Self::Claim(ClaimTerms::of(claim)),
            Operation::Renew {
                lease, lease_for, ..
            } => Self::Renew(RunId::of(lease), micros(*lease_for)),
            Operation::Complete {
                lease,
                result,
                retention,
            } => Self::Complete(RunId::of(lease), ResultId::of(result), micros(*retention)),
            Operation::Fail { lease, how } => {
                let (terms, result) = (FailureTerms::of(how), ResultId::of(&how.result));
                Self::Fail(RunId::of(lease), terms, result)
            }
            Operation::Release(lease) => Self::Release(RunId::of(lease)),
            Operation::StepBegin { lease, name } => Self::StepBegin(RunId::of(lease), name.clone()),
            Operation::StepRestart { lease, name } => {
                Self::StepRestart(RunId::of(lease), name.clone())
            }
            Operation::StepComplete {
                lease,
                name,
                result,
            } => Self::StepComplete(RunId::of(lease), name.clone(), digest(result)),
            Operation::Resolve { how, .. } => Self::Operate(match &how.finding {
                Finding::Succeeded(result) => OperatorCall::ResolveSucceeded(ResultId::of(result)),
                Finding::Failed(result) => OperatorCall::ResolveFailed(ResultId::of(result)),
                Finding::Retry => OperatorCall::ResolveRetry,
            }),
            Operation::Redrive(_) => Self::Operate(OperatorCall::Redrive),
            Operation::ReleaseByOperator(_) => Self::Operate(OperatorCall::Release),
            Operation::Forget(_) => Self::Operate(OperatorCall::Forget),
            Operation::Look(_) | Operation::Ready => unreachable!("nobody asks this in a race"),
        }
    }
}

// === impl ClaimTerms ===

impl ClaimTerms {
    fn of(claim: &Claim) -> Self {
        Self {
            owner: OwnerId::of(claim.owner),
            payload: u8::from(claim.fingerprint != Fingerprint::of(&[0])),
            lease: micros(claim.lease),
            retention: micros(claim.retention),
            park: claim.in_doubt == InDoubt::Park,
            max_attempts: claim.max_attempts.map_or(0, NonZeroU32::get),
        }
    }
}

// === impl FailureTerms ===

impl FailureTerms {
    fn of(how: &Fail) -> Self {
        Self {
            kind: match how.kind {
                FailKind::Final => FailureKind::Final,
                FailKind::Retryable { .. } => FailureKind::Retryable,
                FailKind::InDoubt { .. } => FailureKind::InDoubt,
            },
            park: how.in_doubt == InDoubt::Park,
            max_attempts: how.max_attempts.map_or(0, NonZeroU32::get),
        }
    }
}

// === impl OwnerId ===

impl OwnerId {
    /// The first half of an owner.
    #[must_use]
    pub fn of(owner: Owner) -> Self {
        let (half, _) = owner.0.split_at(8);
        Self(half.iter().fold(0, |id, byte| id << 8 | u64::from(*byte)))
    }
}

// === impl RunId ===

impl RunId {
    /// The run of a lease.
    #[must_use]
    pub fn of(lease: &Lease) -> Self {
        Self {
            fence: lease.fence.0,
            owner: OwnerId::of(lease.owner),
            born: lease.born.0,
            attempt: lease.attempt,
        }
    }
}

// === impl Response ===

impl Response {
    /// What an answer says.
    pub(super) fn of(answer: &Result<Answer, Error>) -> Self {
        match answer {
            Ok(Answer::Claimed(claimed)) => match claimed {
                Claimed::Granted(lease) => Self::Granted(RunId::of(lease)),
                Claimed::Replayed(settled) => Self::Replayed(RecordedEnd::of(settled)),
                Claimed::Busy { .. } => Self::Busy,
                Claimed::NotYet { .. } => Self::NotYet,
                Claimed::Parked => Self::Parked,
                Claimed::Mismatched => Self::Mismatched,
            },
            Ok(Answer::Held(held)) => match held {
                Held::Applied(state) => Self::Applied(state.number()),
                Held::Already(state) => Self::Already(state.number()),
                Held::Settled(settled) => Self::Settled(RecordedEnd::of(settled)),
                Held::Parked => Self::Parked,
                Held::Stale => Self::Stale,
            },
            Ok(Answer::StepBegun(begun)) => match begun {
                StepBegun::Run => Self::StepRun,
                StepBegun::Memo { fence, result } => Self::Memo(fence.0, digest(result)),
                StepBegun::InDoubt(fence) => Self::StepInDoubt(fence.0),
                StepBegun::Settled(settled) => Self::Settled(RecordedEnd::of(settled)),
                StepBegun::Parked => Self::Parked,
                StepBegun::Stale => Self::Stale,
            },
            Ok(Answer::Acted(acted)) => match acted {
                Acted::Applied => Self::Acted,
                Acted::Refused => Self::Refused,
                Acted::Gone(state) => Self::Gone(state.map_or(0, State::number)),
            },
            Ok(Answer::Looked(_) | Answer::Ready) => Self::Wrong(format!("{answer:?}")),
            Err(Error::Unavailable(why) | Error::Denied(why)) => Self::Unknown(why.to_string()),
            Err(error @ (Error::Invalid(_) | Error::Corrupt(_) | Error::Bug(_))) => {
                Self::Wrong(error.to_string())
            }
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
