//! Problems (RFC 9457): what went wrong, for whoever can act on it. They say nothing of any other
//! request.

use super::cors;
use crate::delivery::Invalid;
use crate::settings::Source;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use semel::{Error, Outcome};
use serde_json::json;
use std::borrow::Cow;
use std::time::Duration;

/// A problem, with its place in `docs/errors.md`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    status: StatusCode,
    code: &'static str,
    title: &'static str,
    detail: Cow<'static, str>,
    retry_after: Option<Duration>,
}

/// Where the documentation is published. Whoever packages the gate says it when compiling; unless told, a `type` is a
/// path in the repository.
const DOCS: &str = match option_env!("SEMEL_DOCS_URL") {
    Some(url) => url,
    None => "docs",
};

const MEDIA_TYPE: &str = "application/problem+json";

/// The longest pause that is asked for while the same work runs.
const BUSY_RETRY_AFTER_MAX: Duration = Duration::from_secs(5);

/// When to ask again after the store could not be reached.
const STORE_RETRY_AFTER: Duration = Duration::from_secs(1);

/// When to ask again while letters are full: as often as they are counted.
const FULL_RETRY_AFTER: Duration = Duration::from_secs(60);

// === impl Problem ===

impl Problem {
    pub(crate) fn new(
        status: StatusCode,
        code: &'static str,
        title: &'static str,
        detail: impl Into<String>,
    ) -> Self {
        Self {
            detail: Cow::Owned(detail.into()),
            ..Self::fixed(status, code, title, "")
        }
    }

    /// One that is always told in the same words.
    pub(crate) const fn fixed(
        status: StatusCode,
        code: &'static str,
        title: &'static str,
        detail: &'static str,
    ) -> Self {
        Self {
            status,
            code,
            title,
            detail: Cow::Borrowed(detail),
            retry_after: None,
        }
    }

    pub(crate) const fn code(&self) -> &'static str {
        self.code
    }

    pub(crate) const fn status(&self) -> StatusCode {
        self.status
    }

    /// Asks for a pause, in whole seconds.
    pub(crate) const fn retry_after(mut self, pause: Duration) -> Self {
        self.retry_after = Some(pause);
        self
    }

    /// The same in a line, for people.
    pub(crate) fn says(&self) -> String {
        format!("{} {}: {}", self.status.as_u16(), self.title, self.detail)
    }

    /// The reply of the gate itself.
    pub(crate) fn reply(&self) -> Response<Bytes> {
        let mut reply = self.response();
        cors::mark_as_own(&mut reply);
        reply
    }

    /// The same, said in the handler's place.
    pub(crate) fn response(&self) -> Response<Bytes> {
        let mut response = Response::new(self.body());
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        if let Some(seconds) = self.pause_seconds() {
            let value = HeaderValue::from_str(&seconds);
            headers.insert(RETRY_AFTER, value.expect("digits are a header value"));
        }
        response
    }

    /// What is recorded of it when it stands for a handler's answer.
    pub(crate) fn outcome(&self) -> Outcome {
        let outcome = Outcome::new(self.status.as_u16(), self.body());
        let outcome = outcome.with_header("content-type", MEDIA_TYPE);
        match self.pause_seconds() {
            Some(seconds) => outcome.with_header("retry-after", seconds),
            None => outcome,
        }
    }

    /// The pause that is asked for, in whole seconds.
    fn pause_seconds(&self) -> Option<String> {
        let seconds = self.retry_after?.as_secs_f64().ceil().max(1.0);
        Some(format!("{seconds:.0}"))
    }

    fn body(&self) -> Bytes {
        let body = json!({
            "type": format!("{DOCS}/errors.md#{}", self.code),
            "title": self.title,
            "status": self.status.as_u16(),
            "detail": self.detail,
        });
        Bytes::from(body.to_string())
    }
}

// === What becomes of deliveries ===

pub(super) fn invalid(invalid: &Invalid) -> Problem {
    Problem::new(
        StatusCode::BAD_REQUEST,
        invalid.code,
        "This delivery cannot be named",
        invalid.detail.clone(),
    )
}

pub(super) const OUTCOME_UNREAD: Problem = Problem::fixed(
    StatusCode::SERVICE_UNAVAILABLE,
    "outcome-unread",
    "Whether it took effect cannot be read yet",
    "the handler ran, and the store could not be asked whether its transaction committed; nothing is recorded by \
     guess, a retry is safe",
).retry_after(STORE_RETRY_AFTER);

pub(super) const PARKED: Problem = Problem::fixed(
    StatusCode::CONFLICT,
    "parked",
    "A person must look at this work first",
    "it failed too often, or may have taken effect; a retry changes nothing until an operator has decided",
);

pub(super) const MISMATCHED: Problem = Problem::fixed(
    StatusCode::UNPROCESSABLE_ENTITY,
    "mismatched",
    "This key was used for other work",
    "a key names one piece of work: use a new key for new work, or repeat the first request exactly; \
     nothing was run",
);

/// The run may end long before its lease does.
pub(super) fn busy(retry_after: Duration) -> Problem {
    Problem::new(
        StatusCode::CONFLICT,
        "busy",
        "The same work is still running",
        "ask again for its outcome; nothing was run by this request",
    )
    .retry_after(retry_after.min(BUSY_RETRY_AFTER_MAX))
}

/// The same for the delivery whose own run it is.
pub(super) fn running(retry_after: Duration) -> Problem {
    Problem::new(
        StatusCode::CONFLICT,
        "busy",
        "The same work is still running",
        "it takes longer than this request can wait, and goes on; ask again for its outcome",
    )
    .retry_after(retry_after.min(BUSY_RETRY_AFTER_MAX))
}

pub(super) fn not_yet(retry_after: Duration) -> Problem {
    Problem::new(
        StatusCode::CONFLICT,
        "not-yet",
        "The last run failed, and the next one is not due yet",
        "nothing was run by this request; a retry is safe",
    )
    .retry_after(retry_after)
}

pub(super) fn full(retry_after: Duration) -> Problem {
    Problem::new(
        StatusCode::TOO_MANY_REQUESTS,
        "full",
        "Too much work is in hand",
        "nothing was run; a retry is safe",
    )
    .retry_after(retry_after)
}

pub(super) const STALE: Problem = Problem::fixed(
    StatusCode::CONFLICT,
    "stale",
    "This run was overtaken",
    "another run, or an operator, owns this work now; ask again for its outcome",
)
.retry_after(STORE_RETRY_AFTER);

pub(super) const REDIRECT: Problem = Problem::fixed(
    StatusCode::BAD_GATEWAY,
    "redirect",
    "The handler answered with a redirect",
    "a broker would follow it with a GET; name the final address as the upstream; a retry is safe",
);

pub(super) const NOT_COMPLETED: Problem = Problem::fixed(
    StatusCode::BAD_GATEWAY,
    "not-completed",
    "The handler answered without completing",
    "its transaction did not complete this run (`semel.complete`): what it did in that transaction is not committed under this \
     run, and whether it took effect elsewhere is unknown; the work may run again",
);

/// 409, never 429 or 503: those would throttle a whole queue.
pub(super) const UNSETTLED: Problem = Problem::fixed(
    StatusCode::CONFLICT,
    "unsettled",
    "What became of this key is not decided yet",
    "its key stands for other work that is running or waiting, or its record changed just now; nothing was run \
     by this delivery, a retry is safe",
).retry_after(BUSY_RETRY_AFTER_MAX);

/// 409 for the same reason.
pub(super) const LETTERS_FULL: Problem = Problem::fixed(
    StatusCode::CONFLICT,
    "letters-full",
    "This route keeps no more letters",
    "an operator must redrive or discard letters first; nothing was kept by this delivery, a retry is safe",
).retry_after(FULL_RETRY_AFTER);

pub(super) fn store(error: &Error) -> Problem {
    match error {
        Error::Unavailable(_) | Error::Denied(_) => STORE_UNAVAILABLE,
        Error::Invalid(_) | Error::Corrupt(_) | Error::Bug(_) => Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "store-refused",
            "The store refused",
            "nothing was run by this request; the gate's log says why",
        ),
    }
}

pub(crate) const STORE_UNAVAILABLE: Problem = Problem::fixed(
    StatusCode::SERVICE_UNAVAILABLE,
    "store-unavailable",
    "The store cannot be reached",
    "nothing was run by this request; a retry is safe",
)
.retry_after(STORE_RETRY_AFTER);

pub(crate) const NOT_LANDED: Problem = Problem::fixed(
    StatusCode::SERVICE_UNAVAILABLE,
    "not-landed",
    "The delivery has not landed",
    "its row is not known to be durable, so it is not acknowledged; a retry is safe, and lands it again",
)
.retry_after(STORE_RETRY_AFTER);

/// What is cut short would land as if it were whole.
pub(crate) fn answer_too_large(max: usize) -> Problem {
    Problem::new(
        StatusCode::BAD_GATEWAY,
        "answer-too-large",
        "The handler's answer is too large to land",
        format!(
            "it has more than answer_bytes_max {max} bytes: raise it, or let the handler say less; a retry runs the handler again"
        ),
    )
}

/// Bodies that others hold say nothing of the queue that this one is from: Cloud Tasks would slow all
/// of it down on 429 or 503, and only this task on 409.
pub(crate) fn no_room(source: Source) -> Problem {
    let status = if source.is_broker() {
        StatusCode::CONFLICT
    } else {
        StatusCode::TOO_MANY_REQUESTS
    };
    Problem::new(
        status,
        "no-room",
        "There is no room for this request",
        "the heads and bodies in hand together, or those of this connection or address, are as large as \
         `bodies_bytes_max` allows; nothing was run, a retry is safe",
    )
    .retry_after(STORE_RETRY_AFTER)
}
