//! Replies: who is told what. The only place that knows status codes.
//!
//! A broker hears "again, please" in every answer that is not a success code, so the reply depends
//! on who asked. Pure functions over `http` types and our own, for any front end.

pub(crate) mod cors;
pub mod meaning;
pub(crate) mod problem;

use crate::disposition::{Disposition, NotKept, Undelivered};
use crate::effect::doubt::DOUBT;
use crate::settings::Source;
use crate::trace::RUN_TRACE;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, HeaderName, HeaderValue, LOCATION};
use http::{HeaderMap, Response, StatusCode};
use problem::Problem;
use semel::outcome::{Body, bytes_of};
use semel::protocol::Ending;
use semel::work::FailureKind;
use semel::{Key, Outcome, Recorded};

pub(crate) const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
const KEY: HeaderName = HeaderName::from_static("semel-key");
const RECORDED: HeaderName = HeaderName::from_static("semel-recorded");
const BODY_NOT_KEPT: HeaderName = HeaderName::from_static("semel-body");

/// What the delivery that ran knows of the handler's answer beside the record. Duplicates hear what was
/// recorded. `R` is the part of a body that the front end has not read yet.
#[derive(Debug)]
pub struct HandlerAnswer<R> {
    /// All headers of the answer, cookies among them.
    pub headers: Option<HeaderMap>,
    /// The body of an answer that is not kept: what was read, and what is still to come.
    pub rest: Option<(Bytes, R)>,
}

/// The body of a reply.
#[derive(Debug)]
pub enum ReplyBody<R> {
    /// All of it.
    Whole(Bytes),
    /// What was read of the handler's answer, and what is still to come.
    Streamed(Bytes, R),
}

/// The reply to a delivery of this sender. A letter that the disposition names has been kept by now.
#[must_use]
pub fn reply<R>(
    source: Source,
    disposition: &Disposition,
    answer: HandlerAnswer<R>,
) -> Response<ReplyBody<R>> {
    match disposition {
        Disposition::Ran(recorded) => first(source, recorded, answer),
        Disposition::Replayed(recorded) => replayed(source, &recorded.outcome),
        Disposition::Unrecorded(recorded) => pending(source, recorded, answer),
        Disposition::Retryable(failed) => {
            let unanswered = match failed.failure.kind {
                FailureKind::InDoubt
                | FailureKind::StillInDoubt
                | FailureKind::Park
                | FailureKind::NotStarted
                | FailureKind::Withdrawn => answer.headers.is_none(),
                FailureKind::Retryable | FailureKind::Final => false,
            };
            let mut reply = again(source, &failed.failure.outcome, answer);
            if unanswered {
                cors::mark_as_own(&mut reply);
            }
            reply
        }
        Disposition::Letter(why) => acknowledged(matches!(why, Undelivered::FailedBefore(_))),
        Disposition::Unread => own(&problem::OUTCOME_UNREAD),
        Disposition::Parked => own(&problem::PARKED),
        Disposition::Mismatched => own(&problem::MISMATCHED),
        Disposition::Running { retry_after } => own(&problem::running(*retry_after)),
        Disposition::Busy { retry_after } => own(&problem::busy(*retry_after)),
        Disposition::NotYet { retry_after } => own(&problem::not_yet(*retry_after)),
        Disposition::Full { retry_after } => own(&problem::full(*retry_after)),
        Disposition::Stale => own(&problem::STALE),
        Disposition::Invalid(invalid) => own(&problem::invalid(invalid)),
        Disposition::Fault(_) => acknowledged(false),
        Disposition::FaultNotLanded(_) => own(&problem::NOT_LANDED),
        Disposition::Store(error) => own(&problem::store(error)),
        Disposition::NoRoom => own(&problem::no_room(source)),
        Disposition::NotKept(_, NotKept::Unsettled) => own(&problem::UNSETTLED),
        Disposition::NotKept(_, NotKept::Full) => own(&problem::LETTERS_FULL),
        Disposition::NotKept(_, NotKept::Store) => own(&problem::STORE_UNAVAILABLE),
    }
}

/// Tells the sender which work its delivery is: operators find it by that.
pub fn show_key<B>(reply: &mut Response<B>, key: &Key) {
    let value = HeaderValue::from_str(&key.to_string());
    let value = value.expect("a key is a word of letters and digits");
    reply.headers_mut().insert(KEY, value);
}

fn own<R>(problem: &Problem) -> Response<ReplyBody<R>> {
    problem.reply().map(ReplyBody::Whole)
}

/// What the first sender hears of a recorded run: all that the handler said. A broker hears a success
/// code, whatever a handler that completes by itself recorded: it would follow a redirect with a GET.
fn first<R>(
    source: Source,
    recorded: &Recorded,
    answer: HandlerAnswer<R>,
) -> Response<ReplyBody<R>> {
    let mut reply = answered(&recorded.outcome, answer);
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
        Source::CloudTasks | Source::Webhook(_) => status.is_success(),
        Source::PubSub | Source::CloudEvents => {
            matches!(status.as_u16(), 102 | 200 | 201 | 202 | 204)
        }
    }
}

/// The record is not made yet; the answer is real. A broker that hears of a failure delivers again.
fn pending<R>(
    source: Source,
    recorded: &Recorded,
    answer: HandlerAnswer<R>,
) -> Response<ReplyBody<R>> {
    let mut reply = if recorded.ending == Ending::Failed && source.is_broker() {
        again(source, &recorded.outcome, answer)
    } else {
        // A duplicate hears what will be recorded.
        let not_kept = recorded.outcome.body == Body::NotKept && answer.rest.is_none();
        let mut reply = first(source, recorded, answer);
        if not_kept {
            let not_kept = HeaderValue::from_static("not-kept");
            reply.headers_mut().insert(BODY_NOT_KEPT, not_kept);
        }
        reply
    };
    reply
        .headers_mut()
        .insert(RECORDED, HeaderValue::from_static("pending"));
    reply
}

/// A failure that may be tried again. A success code would say the opposite, and a broker would
/// follow a redirect.
fn again<R>(source: Source, outcome: &Outcome, answer: HandlerAnswer<R>) -> Response<ReplyBody<R>> {
    match outcome.status {
        400.. => answered(outcome, answer),
        300..400 if source.is_broker() => own(&problem::REDIRECT),
        _ => own(&problem::NOT_COMPLETED),
    }
}

/// The handler's answer, first hand if there is one.
fn answered<R>(outcome: &Outcome, answer: HandlerAnswer<R>) -> Response<ReplyBody<R>> {
    let body = match answer.rest {
        None => ReplyBody::Whole(outcome.body_bytes()),
        Some((begun, rest)) => ReplyBody::Streamed(begun, rest),
    };
    let mut reply = Response::new(body);
    *reply.status_mut() = StatusCode::from_u16(outcome.status).unwrap_or(StatusCode::BAD_GATEWAY);
    *reply.headers_mut() = answer.headers.unwrap_or_else(|| headers(outcome));
    reply
}

/// What a duplicate hears: an API client the recorded answer, byte for byte.
fn replayed<R>(source: Source, outcome: &Outcome) -> Response<ReplyBody<R>> {
    if source.is_broker() {
        return acknowledged(true);
    }
    let mut reply = answered(outcome, HandlerAnswer::default());
    let headers = reply.headers_mut();
    headers.insert(REPLAYED, HeaderValue::from_static("true"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if outcome.body == Body::NotKept {
        headers.insert(BODY_NOT_KEPT, HeaderValue::from_static("not-kept"));
    }
    reply
}

/// A broker needs not hear more than that it may forget the delivery.
fn acknowledged<R>(replayed: bool) -> Response<ReplyBody<R>> {
    let mut reply = Response::new(ReplyBody::Whole(Bytes::new()));
    if replayed {
        let headers = reply.headers_mut();
        headers.insert(REPLAYED, HeaderValue::from_static("true"));
    }
    reply
}

fn headers(outcome: &Outcome) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let kept = outcome
        .headers
        .iter()
        .filter(|(name, _)| ![RUN_TRACE, DOUBT].contains(&name.as_str()));
    for (name, values) in kept {
        for value in values {
            // A stored value that is not a header any more is left out, never sent as it is.
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

// === impl HandlerAnswer ===

impl<R> Default for HandlerAnswer<R> {
    fn default() -> Self {
        Self {
            headers: None,
            rest: None,
        }
    }
}
