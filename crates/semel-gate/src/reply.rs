//! Replies: who is told what. The only place that knows status codes.
//!
//! A broker hears "again, please" in every answer that is not a success code, so the reply depends
//! on who asked.

pub(crate) mod cors;
pub(crate) mod meaning;
pub(crate) mod problem;
pub(crate) mod refusal;

use crate::delivery::Invalid;
use crate::effect::Heard;
use crate::settings::{OnInvalid, Source};
use crate::upstream::{AnyBody, chained, full};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, RETRY_AFTER};
use http::{HeaderMap, Response, StatusCode};
use problem::Problem;
use semel::letter::Reason;
use semel::outcome::{Body, bytes_of};
use semel::record::{Ending, State};
use semel::work::FailureKind;
use semel::{Ended, Error, Outcome, Recorded};
use std::time::Duration;

pub(crate) const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
const RECORDED: HeaderName = HeaderName::from_static("semel-recorded");
const BODY_NOT_KEPT: HeaderName = HeaderName::from_static("semel-body");

/// The longest pause that is asked for while the same work runs.
const BUSY_RETRY_AFTER_MAX: Duration = Duration::from_secs(5);

/// When to ask again after the store could not be reached.
const STORE_RETRY_AFTER: Duration = Duration::from_secs(1);

/// When to ask again while letters are full: as often as they are counted.
const FULL_RETRY_AFTER: Duration = Duration::from_secs(60);

/// What became of a delivery.
#[derive(Debug)]
pub(crate) enum Told {
    /// It had a key.
    Ended(Ended, Box<Heard>),
    /// It can have none.
    Invalid(Invalid),
    /// The store could not be asked before the run, or a letter could not be kept.
    Store(Error),
    /// There was no room in memory to read its payload.
    NoRoom,
    /// It would be acknowledged as a letter, but none is kept: its sender must keep it.
    NotKept(NotKept),
}

/// Why a delivery is not kept as a letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotKept {
    /// The work that its key stands for is not settled, so neither is what becomes of it.
    Unsettled,
    /// The route's quota of letters is used up.
    Full,
}

/// A reply, with its body.
pub(crate) type Reply = Response<AnyBody>;

/// Why a delivery must be kept as a letter before its sender hears the reply; `None`: it need not.
pub(crate) fn letter(source: Source, on_invalid: OnInvalid, told: &Told) -> Option<Reason> {
    if source == Source::Api {
        return None;
    }
    match told {
        Told::Invalid(_) if on_invalid == OnInvalid::Letter => Some(Reason::Invalid),
        Told::Invalid(_) | Told::Store(_) | Told::NoRoom | Told::NotKept(_) => None,
        Told::Ended(ended, _) => match ended {
            // Also for a duplicate: whoever came first may have died before it wrote the letter.
            Ended::Ran(recorded) | Ended::Replayed(recorded) => match recorded.ending {
                Ending::Succeeded => None,
                Ending::Failed => Some(Reason::Failed),
            },
            Ended::Failed(failed) => (failed.state == State::Parked).then_some(Reason::Parked),
            Ended::Parked => Some(Reason::Parked),
            Ended::Mismatched => Some(Reason::Mismatched),
            Ended::Unrecorded(_)
            | Ended::Unread
            | Ended::Busy { .. }
            | Ended::NotYet { .. }
            | Ended::Full { .. }
            | Ended::Stale => None,
        },
    }
}

/// The reply to a delivery. What `letter` names has been kept by now.
pub(crate) fn reply(source: Source, on_invalid: OnInvalid, told: Told) -> Reply {
    if letter(source, on_invalid, &told).is_some() {
        return acknowledged(matches!(told, Told::Ended(Ended::Replayed(_), _)));
    }
    match told {
        Told::Invalid(invalid) => problem(
            StatusCode::BAD_REQUEST,
            invalid.code,
            "This delivery cannot be named",
            invalid.detail,
        ),
        Told::Store(error) => store(&error),
        Told::NoRoom => refusal::no_room(source),
        Told::NotKept(why) => not_kept(why),
        Told::Ended(ended, heard) => ended_reply(source, ended, *heard),
    }
}

fn ended_reply(source: Source, ended: Ended, heard: Heard) -> Reply {
    match ended {
        Ended::Ran(recorded) => first(source, &recorded, heard),
        Ended::Replayed(recorded) if source == Source::Api => replayed(&recorded.outcome),
        Ended::Replayed(_) => acknowledged(true),
        Ended::Unrecorded(recorded) => pending(source, &recorded, heard),
        Ended::Unread => wait(
            StatusCode::SERVICE_UNAVAILABLE,
            "outcome-unread",
            "Whether it took effect cannot be read yet",
            "the handler ran, and the store could not be asked whether its transaction committed; nothing is recorded by \
             guess, a retry is safe",
            STORE_RETRY_AFTER,
        ),
        Ended::Failed(failed) => match failed.state {
            State::Parked => parked(),
            State::Running | State::Succeeded | State::Failed | State::Waiting => {
                let unanswered = match failed.failure.kind {
                    FailureKind::InDoubt | FailureKind::NotStarted => heard.headers.is_none(),
                    FailureKind::Retryable | FailureKind::Final => false,
                };
                let mut reply = again(source, &failed.failure.outcome, heard);
                if unanswered {
                    cors::mark_as_own(&mut reply);
                }
                reply
            }
        },
        Ended::Parked => parked(),
        Ended::Mismatched => problem(
            StatusCode::UNPROCESSABLE_ENTITY,
            "mismatched",
            "This key was used for other work",
            "a key names one piece of work: use a new key for new work, or repeat the first request exactly; \
             nothing was run",
        ),
        Ended::Busy { retry_after } => wait(
            StatusCode::CONFLICT,
            "busy",
            "The same work is still running",
            "ask again for its outcome; nothing was run by this request",
            // The run may end long before its lease does.
            retry_after.min(BUSY_RETRY_AFTER_MAX),
        ),
        Ended::NotYet { retry_after } => wait(
            StatusCode::CONFLICT,
            "not-yet",
            "The last run failed, and the next one is not due yet",
            "nothing was run by this request; a retry is safe",
            retry_after,
        ),
        Ended::Full { retry_after } => wait(
            StatusCode::TOO_MANY_REQUESTS,
            "full",
            "Too much work is in hand",
            "nothing was run; a retry is safe",
            retry_after,
        ),
        Ended::Stale => wait(
            StatusCode::CONFLICT,
            "stale",
            "This run was overtaken",
            "another run, or an operator, owns this work now; ask again for its outcome",
            STORE_RETRY_AFTER,
        ),
    }
}

/// What the first sender hears of a recorded run: all that the handler said. A broker hears a success
/// code, whatever a handler that completes by itself recorded: it would follow a redirect with a GET.
fn first(source: Source, recorded: &Recorded, heard: Heard) -> Reply {
    let mut reply = answer(&recorded.outcome, heard);
    if recorded.ending == Ending::Succeeded && !acknowledges(source, reply.status()) {
        *reply.status_mut() = match recorded.outcome.body {
            Body::Kept(ref body) if body.is_empty() => StatusCode::NO_CONTENT,
            Body::Kept(_) | Body::NotKept => StatusCode::OK,
        };
        reply.headers_mut().remove(LOCATION);
    }
    reply
}

/// Which statuses a sender takes for a success. Pub/Sub knows five, and nothing else.
fn acknowledges(source: Source, status: StatusCode) -> bool {
    match source {
        Source::Api => true,
        Source::CloudTasks => status.is_success(),
        Source::PubSub | Source::CloudEvents => {
            matches!(status.as_u16(), 102 | 200 | 201 | 202 | 204)
        }
    }
}

/// The record is not made yet; the answer is real. A broker that hears of a failure delivers again.
fn pending(source: Source, recorded: &Recorded, heard: Heard) -> Reply {
    let mut reply = match (recorded.ending, source) {
        (Ending::Failed, Source::CloudTasks | Source::PubSub | Source::CloudEvents) => {
            again(source, &recorded.outcome, heard)
        }
        (Ending::Succeeded | Ending::Failed, _) => {
            // A duplicate hears what will be recorded.
            let not_kept = recorded.outcome.body == Body::NotKept && heard.rest.is_none();
            let mut reply = first(source, recorded, heard);
            if not_kept {
                let not_kept = HeaderValue::from_static("not-kept");
                reply.headers_mut().insert(BODY_NOT_KEPT, not_kept);
            }
            reply
        }
    };
    reply
        .headers_mut()
        .insert(RECORDED, HeaderValue::from_static("pending"));
    reply
}

/// A failure that may be tried again. A success code would say the opposite, and a broker would
/// follow a redirect.
fn again(source: Source, outcome: &Outcome, heard: Heard) -> Reply {
    let refused = outcome.status >= 400;
    if refused {
        return answer(outcome, heard);
    }
    let why = if (300..400).contains(&outcome.status) && source != Source::Api {
        Problem::new(
            StatusCode::BAD_GATEWAY,
            "redirect",
            "The handler answered with a redirect",
            "a broker would follow it with a GET; name the final address as the upstream; a retry is safe",
        )
    } else {
        Problem::new(
            StatusCode::BAD_GATEWAY,
            "not-completed",
            "The handler answered without completing",
            "its transaction did not record this run, so it did not take effect; a retry is safe",
        )
    };
    by_problem(&why)
}

/// 409, never 429 or 503: those would throttle a whole queue.
fn not_kept(why: NotKept) -> Reply {
    match why {
        NotKept::Unsettled => wait(
            StatusCode::CONFLICT,
            "unsettled",
            "What became of this key is not decided yet",
            "its key stands for other work that is running or waiting, or its record changed just now; nothing was run \
             or kept by this delivery, a retry is safe",
            BUSY_RETRY_AFTER_MAX,
        ),
        NotKept::Full => wait(
            StatusCode::CONFLICT,
            "letters-full",
            "This route keeps no more letters",
            "an operator must redrive or discard letters first; nothing was kept by this delivery, a retry is safe",
            FULL_RETRY_AFTER,
        ),
    }
}

fn parked() -> Reply {
    problem(
        StatusCode::CONFLICT,
        "parked",
        "A person must look at this work first",
        "it failed too often, or may have taken effect; a retry changes nothing until an operator has decided",
    )
}

/// The handler's answer, first hand if there is one.
fn answer(outcome: &Outcome, heard: Heard) -> Reply {
    let headers = heard.headers.unwrap_or_else(|| headers(outcome));
    let body = match heard.rest {
        None => full(outcome.body_bytes()),
        Some((begun, rest)) => chained(begun, rest),
    };
    let mut reply = Response::new(body);
    *reply.status_mut() = status(outcome);
    *reply.headers_mut() = headers;
    reply
}

/// What a duplicate hears: the recorded answer, byte for byte.
fn replayed(outcome: &Outcome) -> Reply {
    let mut reply = answer(outcome, Heard::default());
    let headers = reply.headers_mut();
    headers.insert(REPLAYED, HeaderValue::from_static("true"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if outcome.body == Body::NotKept {
        headers.insert(BODY_NOT_KEPT, HeaderValue::from_static("not-kept"));
    }
    reply
}

/// A broker needs not hear more than that it may forget the delivery.
fn acknowledged(replayed: bool) -> Reply {
    let mut reply = Response::new(full(Bytes::new()));
    if replayed {
        reply
            .headers_mut()
            .insert(REPLAYED, HeaderValue::from_static("true"));
    }
    reply
}

fn status(outcome: &Outcome) -> StatusCode {
    StatusCode::from_u16(outcome.status).unwrap_or(StatusCode::BAD_GATEWAY)
}

fn headers(outcome: &Outcome) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, values) in &outcome.headers {
        for value in values {
            // A stored value that is no header any more is left out, never sent as it is.
            if let (Ok(name), Ok(value)) = (
                name.parse::<HeaderName>(),
                HeaderValue::from_bytes(&bytes_of(value)),
            ) {
                headers.append(name, value);
            }
        }
    }
    headers
}

fn store(error: &Error) -> Reply {
    match error {
        Error::Unavailable(_) | Error::Denied(_) => wait(
            StatusCode::SERVICE_UNAVAILABLE,
            "store-unavailable",
            "The store cannot be reached",
            "nothing was run by this request; a retry is safe",
            STORE_RETRY_AFTER,
        ),
        Error::Invalid(_) | Error::Corrupt(_) | Error::Bug(_) => problem(
            StatusCode::INTERNAL_SERVER_ERROR,
            "store-refused",
            "The store refused",
            "nothing was run by this request; the gate's log says why",
        ),
    }
}

fn problem(
    status: StatusCode,
    code: &'static str,
    title: &'static str,
    detail: impl Into<String>,
) -> Reply {
    by_problem(&Problem::new(status, code, title, detail))
}

fn by_problem(problem: &Problem) -> Reply {
    let mut reply = Response::new(full(problem.body()));
    *reply.status_mut() = problem.status;
    let content_type = HeaderValue::from_static(Problem::CONTENT_TYPE);
    reply.headers_mut().insert(CONTENT_TYPE, content_type);
    cors::mark_as_own(&mut reply);
    reply
}

fn wait(
    status: StatusCode,
    code: &'static str,
    title: &'static str,
    detail: &'static str,
    retry_after: Duration,
) -> Reply {
    let mut reply = problem(status, code, title, detail);
    let seconds = retry_after.as_secs_f64().ceil().max(1.0);
    let value = HeaderValue::from_str(&format!("{seconds:.0}")).expect("digits are a header value");
    reply.headers_mut().insert(RETRY_AFTER, value);
    reply
}

/// What a person reads on a letter.
pub(crate) fn why(ended: &Ended) -> String {
    let answered = |outcome: &Outcome| format!("the handler's answer was {}", outcome.status);
    match ended {
        Ended::Ran(recorded) | Ended::Replayed(recorded) | Ended::Unrecorded(recorded) => {
            format!("{}, a failure for good", answered(&recorded.outcome))
        }
        Ended::Failed(failed) => match failed.failure.kind {
            FailureKind::InDoubt => format!(
                "it may or may not have taken effect (status {})",
                failed.failure.outcome.status
            ),
            FailureKind::NotStarted | FailureKind::Retryable | FailureKind::Final => {
                format!(
                    "{}, and its attempts are used up",
                    answered(&failed.failure.outcome)
                )
            }
        },
        Ended::Parked => "its record is parked: a person must look first".into(),
        Ended::Mismatched => "its key is known for other work (see `fingerprint`)".into(),
        Ended::Unread => "whether its transaction committed cannot be read yet".into(),
        Ended::Busy { .. } | Ended::NotYet { .. } | Ended::Full { .. } | Ended::Stale => {
            "it did not run".into()
        }
    }
}
