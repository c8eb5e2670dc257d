//! What came of an attempt, and how it is written down.

use super::schedule::HandlerLoad;
use crate::http_client::Answer;
use crate::proto::rpc::Status;
use std::time::Duration;
use tonic::Code;

/// What came of an attempt, for the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttemptOutcome {
    /// Any 2xx.
    Success,
    /// Anything else; 504 after a deadline, 0 when no answer came.
    Failure {
        code: u16,
        retry_after: Option<Duration>,
    },
    /// It was not sent: it is older than a task can be.
    TooOld,
}

// === impl AttemptOutcome ===

impl AttemptOutcome {
    /// No answer came.
    pub(super) const NO_ANSWER: Self = Self::Failure {
        code: 0,
        retry_after: None,
    };

    /// The deadline passed.
    pub(super) const TIMEOUT: Self = Self::Failure {
        code: 504,
        retry_after: None,
    };

    pub(super) fn of(answer: &Answer) -> Self {
        match answer {
            Answer::Status { code, .. } if (200..300).contains(code) => Self::Success,
            Answer::Status { code, retry_after } => Self::Failure {
                code: *code,
                retry_after: *retry_after,
            },
            Answer::TimedOut => Self::TIMEOUT,
            Answer::Unreachable(_) | Answer::Cut => Self::NO_ANSWER,
        }
    }

    /// What it says about the handler's load.
    pub(super) fn load(self) -> HandlerLoad {
        match self {
            Self::Success => HandlerLoad::Succeeded,
            Self::Failure {
                code: 429 | 503, ..
            } => HandlerLoad::Overloaded,
            Self::Failure {
                code: 500..=599, ..
            } => HandlerLoad::Failed,
            Self::Failure { .. } | Self::TooOld => HandlerLoad::Neutral,
        }
    }
}

/// How a failed attempt is shown in its task.
pub(super) fn response_status(code: u16) -> Status {
    let (kind, name) = kind(code);
    let number = i32::from(kind);
    Status {
        code: number,
        message: format!("{name}({number}): HTTP status code {code}"),
        details: Vec::new(),
    }
}

fn kind(code: u16) -> (Code, &'static str) {
    match code {
        400 => (Code::InvalidArgument, "INVALID_ARGUMENT"),
        401 => (Code::Unauthenticated, "UNAUTHENTICATED"),
        403 => (Code::PermissionDenied, "PERMISSION_DENIED"),
        404 => (Code::NotFound, "NOT_FOUND"),
        409 => (Code::Aborted, "ABORTED"),
        429 => (Code::ResourceExhausted, "RESOURCE_EXHAUSTED"),
        499 => (Code::Cancelled, "CANCELLED"),
        402..=498 => (Code::FailedPrecondition, "FAILED_PRECONDITION"),
        501 => (Code::Unimplemented, "UNIMPLEMENTED"),
        503 => (Code::Unavailable, "UNAVAILABLE"),
        504 => (Code::DeadlineExceeded, "DEADLINE_EXCEEDED"),
        500..=599 => (Code::Internal, "INTERNAL"),
        0..=399 | 600.. => (Code::Unknown, "UNKNOWN"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_shown_as_recorded() {
        let recorded = [
            (301, "UNKNOWN(2)"),
            (400, "INVALID_ARGUMENT(3)"),
            (401, "UNAUTHENTICATED(16)"),
            (403, "PERMISSION_DENIED(7)"),
            (404, "NOT_FOUND(5)"),
            (405, "FAILED_PRECONDITION(9)"),
            (409, "ABORTED(10)"),
            (410, "FAILED_PRECONDITION(9)"),
            (418, "FAILED_PRECONDITION(9)"),
            (429, "RESOURCE_EXHAUSTED(8)"),
            (499, "CANCELLED(1)"),
            (500, "INTERNAL(13)"),
            (501, "UNIMPLEMENTED(12)"),
            (502, "INTERNAL(13)"),
            (503, "UNAVAILABLE(14)"),
            (504, "DEADLINE_EXCEEDED(4)"),
            (505, "INTERNAL(13)"),
            (507, "INTERNAL(13)"),
            (0, "UNKNOWN(2)"),
        ];
        for (code, name) in recorded {
            let status = response_status(code);
            assert_eq!(status.message, format!("{name}: HTTP status code {code}"));
            assert!(name.ends_with(&format!("({})", status.code)));
        }
    }
}
