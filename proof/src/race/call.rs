//! A call: what a caller asked of the store, what it was told, and when. The checker reads nothing else of a worker.

use semel::protocol::{
    Acted, Answer, Claim, Claimed, DoubtLimit, Fail, FailKind, Finding, Held, InDoubt, Lease,
    Operation, Owner, State, StepBegun,
};
use semel::{Error, Fingerprint, Outcome};
use serde::{Deserialize, Serialize};
use std::hash::{DefaultHasher, Hasher};
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::time::Duration;

/// A call and its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Call {
    pub(crate) key: u32,
    /// When it was made, in µs since 1970.
    pub(crate) began: u64,
    /// When it was answered, or given up.
    pub(crate) ended: u64,
    pub(crate) request: Request,
    pub(crate) response: Response,
}

/// What a caller asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Request {
    Claim(ClaimTerms),
    /// To keep the right to run for so long, in µs.
    Renew(RunId, u64),
    /// To say how a run ended.
    End(RunId, RunEnded),
    /// About a step, by name.
    Step(RunId, String, StepRequest),
    /// An operator's act.
    Operate(OperatorCall),
}

/// How a run says that it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RunEnded {
    /// With success, to be kept so long, in µs.
    Complete(ResultId, u64),
    /// The same, in a transaction of the caller's.
    CompleteIn(Nonce),
    Fail(FailureTerms, ResultId),
    /// Not begun: the lease is given up. Parks work of this age, in µs; 0 is no limit.
    Release(u64),
}

/// What is asked about a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum StepRequest {
    Begin,
    Restart,
    /// To record a result, by its digest.
    Complete(u64),
}

/// The terms of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClaimTerms {
    pub(crate) owner: OwnerId,
    /// Which of a key's payloads.
    pub(crate) payload: u8,
    /// Both in µs.
    pub(crate) lease: u64,
    pub(crate) retention: u64,
    pub(crate) policy: Policy,
    pub(crate) limits: RunLimits,
    /// For how long the run may act, in µs; 0 is not said.
    pub(crate) acts_for: u64,
}

/// What becomes of a run in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Policy {
    Retry,
    Park,
    Probe,
}

/// How many runs before the work is parked, of all and of those in doubt; 0 is no limit. The first doubt must be of this
/// age, in µs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunLimits {
    pub(crate) attempts: u32,
    pub(crate) doubts: u32,
    pub(crate) doubt_age: u64,
}

/// A claim's random id, short enough to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct OwnerId(pub u64);

/// A run, as its lease names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct RunId {
    pub(crate) fence: u64,
    pub(crate) owner: OwnerId,
    pub(crate) born: u64,
    pub(crate) attempt: u32,
    /// Whether the run before may or may not have had its effect.
    pub(crate) in_doubt: bool,
}

/// A number drawn for one result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Nonce(pub u64);

/// A stored result: whose it is, and a digest of its very bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct ResultId {
    /// The number that was drawn for it.
    pub(crate) nonce: Nonce,
    /// A digest of the bytes.
    pub(crate) digest: u64,
}

/// What a run that fails asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FailureTerms {
    pub(crate) kind: FailureKind,
    pub(crate) policy: Policy,
    pub(crate) limits: RunLimits,
}

/// How a run failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FailureKind {
    Final,
    Retryable,
    InDoubt,
    StillInDoubt,
}

/// What an operator does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum OperatorCall {
    /// Says that a parked run took effect.
    ResolveSucceeded(ResultId),
    /// Says that a parked run failed.
    ResolveFailed(ResultId),
    /// Lets a parked run be tried again.
    ResolveRetry,
    /// Makes a parked or failed record claimable again.
    Redrive,
    /// A keeper's: prolongs the retention of unfinished work, in µs from now on.
    Retain(u64),
    /// Takes the right to run away.
    Release,
    /// Ends the incarnation.
    Forget,
}

/// What a caller is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Response {
    Granted(RunId),
    /// It was settled earlier.
    Replayed(RecordedEnd),
    Busy,
    NotYet,
    Parked,
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
pub(crate) struct RecordedEnd {
    pub(crate) succeeded: bool,
    pub(crate) result: ResultId,
}

// === impl Call ===

impl Call {
    /// Whether the call was under way at some moment of this window.
    pub(crate) const fn overlaps(&self, window: &RangeInclusive<u64>) -> bool {
        self.began <= *window.end() && self.ended >= *window.start()
    }

    /// The run that asked, if it was one.
    pub(crate) const fn run(&self) -> Option<RunId> {
        match &self.request {
            Request::Renew(run, _) | Request::End(run, _) | Request::Step(run, ..) => Some(*run),
            Request::Claim(_) | Request::Operate(_) => None,
        }
    }

    /// Whether what was asked may have been done.
    pub(crate) const fn may_have_been_done(&self) -> bool {
        use Response::{Acted, Already, Applied, Granted, StepRun, Unknown};
        matches!(
            self.response,
            Granted(_) | Applied(_) | Already(_) | StepRun | Acted | Unknown(_)
        )
    }
}

// === impl Request ===

impl Request {
    /// What an operation asks.
    pub(super) fn of(operation: &Operation) -> Self {
        let run = || RunId::of(operation.lease().expect("a run asks"));
        let result = || ResultId::of(operation.result().expect("it records one"));
        let step = |name: &String, request| Self::Step(run(), name.clone(), request);
        match operation {
            Operation::Claim(claim) => Self::Claim(ClaimTerms::of(claim)),
            Operation::Renew { lease_for, .. } => Self::Renew(run(), micros(*lease_for)),
            Operation::Complete { retention, .. } => {
                Self::End(run(), RunEnded::Complete(result(), micros(*retention)))
            }
            Operation::Fail { how, .. } => {
                Self::End(run(), RunEnded::Fail(FailureTerms::of(how), result()))
            }
            Operation::Release { park_after, .. } => {
                Self::End(run(), RunEnded::Release(park_after.map_or(0, micros)))
            }
            Operation::StepBegin { name, .. } => step(name, StepRequest::Begin),
            Operation::StepRestart { name, .. } => step(name, StepRequest::Restart),
            Operation::StepComplete { name, result, .. } => {
                step(name, StepRequest::Complete(digest(result)))
            }
            Operation::Resolve { how, .. } => Self::Operate(match &how.finding {
                Finding::Succeeded(_) => OperatorCall::ResolveSucceeded(result()),
                Finding::Failed(_) => OperatorCall::ResolveFailed(result()),
                Finding::Retry => OperatorCall::ResolveRetry,
            }),
            Operation::Redrive { .. } => Self::Operate(OperatorCall::Redrive),
            Operation::Retain { retention, .. } => {
                Self::Operate(OperatorCall::Retain(micros(*retention)))
            }
            Operation::ReleaseByOperator { .. } => Self::Operate(OperatorCall::Release),
            Operation::Forget(_) => Self::Operate(OperatorCall::Forget),
            Operation::Look(_)
            | Operation::Steps(_)
            | Operation::Index { .. }
            | Operation::Find(_)
            | Operation::Ready => unreachable!("nobody asks this in a race"),
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
            policy: Policy::of(claim.in_doubt),
            limits: RunLimits::of(claim.max_attempts, claim.max_in_doubt),
            acts_for: claim.acts_for.map_or(0, micros),
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
                FailKind::StillInDoubt { .. } => FailureKind::StillInDoubt,
            },
            policy: Policy::of(how.in_doubt),
            limits: RunLimits::of(how.max_attempts, how.max_in_doubt),
        }
    }
}

// === impl Policy ===

impl Policy {
    const fn of(in_doubt: InDoubt) -> Self {
        match in_doubt {
            InDoubt::Retry => Self::Retry,
            InDoubt::Park => Self::Park,
            InDoubt::Probe => Self::Probe,
        }
    }
}

// === impl RunLimits ===

impl RunLimits {
    fn of(attempts: Option<NonZeroU32>, doubts: Option<DoubtLimit>) -> Self {
        let number = |max: Option<NonZeroU32>| max.map_or(0, NonZeroU32::get);
        Self {
            attempts: number(attempts),
            doubts: number(doubts.map(|max| max.runs)),
            doubt_age: doubts.map_or(0, |max| micros(max.age)),
        }
    }
}

// === impl OwnerId ===

impl OwnerId {
    /// The first half of an owner.
    pub(crate) fn of(owner: Owner) -> Self {
        let (half, _) = owner.0.split_at(8);
        Self(half.iter().fold(0, |id, byte| id << 8 | u64::from(*byte)))
    }
}

// === impl RunId ===

impl RunId {
    /// The run of a lease.
    pub(crate) fn of(lease: &Lease) -> Self {
        Self {
            fence: lease.fence.0,
            owner: OwnerId::of(lease.owner),
            born: lease.born.0,
            attempt: lease.attempt,
            in_doubt: lease.in_doubt,
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
            Ok(
                Answer::Looked(_)
                | Answer::Steps(_)
                | Answer::Indexed
                | Answer::Found(_)
                | Answer::Ready,
            ) => Self::Wrong(format!("{answer:?}")),
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
    pub(crate) fn of(settled: &semel::protocol::Settled) -> Self {
        Self {
            succeeded: settled.ending == semel::protocol::Ending::Succeeded,
            result: ResultId::of(&settled.result),
        }
    }
}

// === impl ResultId ===

impl ResultId {
    /// The mark of stored bytes; nonce 0 if they hold none.
    pub(crate) fn of(result: &bytes::Bytes) -> Self {
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
pub(crate) fn digest(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

/// A duration as calls and records give it.
pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
