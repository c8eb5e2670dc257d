//! What a status of the handler means for the record.

use crate::reply::problem::Problem;
use crate::settings::{Route, Source};
use http::StatusCode;
use semel::Outcome;
use semel::work::{Failure, FailureKind};
use std::time::Duration;

/// What an answer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// It took effect.
    Success,
    /// It did not and will not.
    Final,
    /// It may be tried again, as the route's backoff says.
    Retryable,
    /// It may be tried again at once.
    RetryableAtOnce,
    /// It may or may not have taken effect, and a person decides.
    InDoubt,
}

/// Answers to API clients that speak of this moment or of this caller, not of the work.
const NOT_RECORDED: [u16; 8] = [401, 403, 404, 408, 409, 423, 425, 429];

/// What the handler's answer means, for deliveries of this source.
///
/// Where doubt is parked or asked about, an answer that is not a success leaves it open whether the effect happened: a
/// handler may charge and then answer 500, and a proxy may answer 502 for it. Only what the route lists as
/// `undone` says that nothing happened, and what is recorded as failed is never run again.
#[must_use]
pub fn meaning(route: &Route, source: Source, status: StatusCode) -> Meaning {
    if route.is_final(status) {
        return Meaning::Final;
    }
    let default = default_meaning(source, status);
    let settles = match default {
        Meaning::Success | Meaning::Final => true,
        Meaning::Retryable | Meaning::RetryableAtOnce | Meaning::InDoubt => false,
    };
    if settles || !route.doubts_failures() || route.is_undone(status) {
        default
    } else {
        Meaning::InDoubt
    }
}

/// What an answer means where doubt is tried again.
fn default_meaning(source: Source, status: StatusCode) -> Meaning {
    match source {
        Source::CloudTasks | Source::PubSub | Source::CloudEvents | Source::Webhook(_) => {
            if status.is_success() {
                Meaning::Success
            } else {
                Meaning::Retryable
            }
        }
        Source::Api if status.is_success() || status.is_redirection() => Meaning::Success,
        Source::Api if status.is_client_error() && !NOT_RECORDED.contains(&status.as_u16()) => {
            Meaning::Final
        }
        Source::Api => Meaning::RetryableAtOnce,
    }
}

// === impl Meaning ===

impl Meaning {
    /// What an answer with this meaning says of its run, in the library's words.
    ///
    /// # Errors
    /// When it is not a success.
    pub fn of(self, outcome: Outcome) -> Result<Outcome, Failure> {
        match self {
            Self::Success => Ok(outcome),
            Self::Final => Err(failed(FailureKind::Final, outcome)),
            Self::Retryable => Err(failed(FailureKind::Retryable, outcome)),
            Self::InDoubt => Err(failed(FailureKind::InDoubt, outcome)),
            Self::RetryableAtOnce => Err(Failure {
                after: Some(Duration::ZERO),
                ..failed(FailureKind::Retryable, outcome)
            }),
        }
    }
}

pub(crate) const fn failed(kind: FailureKind, outcome: Outcome) -> Failure {
    Failure {
        kind,
        outcome,
        after: None,
    }
}

/// A success code of the handler that was not taken for one: its own transaction should have
/// recorded it, and did not.
pub(crate) fn says_success(failure: &Failure) -> bool {
    (200..300).contains(&failure.outcome.status)
}

/// What is told and kept when the gate itself failed in the middle of a run.
pub(crate) const GATE_BROKEN: Problem = Problem::fixed(
    StatusCode::INTERNAL_SERVER_ERROR,
    "gate-broken",
    "The gate failed",
    "please report this with the gate's log; whether the work took effect is in its record",
);

/// What is told and kept when the handler did not answer in time.
pub(crate) fn timed_out(why: impl Into<String>) -> Problem {
    Problem::new(
        StatusCode::GATEWAY_TIMEOUT,
        "handler-timeout",
        "The handler did not answer in time",
        why,
    )
}

/// What is told and kept when the handler gave no answer.
pub(crate) fn unreachable(why: impl Into<String>) -> Problem {
    Problem::new(
        StatusCode::BAD_GATEWAY,
        "handler-unreachable",
        "The handler gave no answer",
        why,
    )
}
