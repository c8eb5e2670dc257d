//! The names of what spans say, by version 1.44 of OpenTelemetry's semantic conventions, in which all of messaging is
//! still in development. Names that begin with `semel.` are ours.

use super::span::{Attributes, SpanKind, Value};
use crate::disposition::{Disposition, Undelivered};
use crate::flow::Flow;
use crate::forwarded_request::RunContext;
use crate::settings::{Source, Upstream};
use bytes::Bytes;
use http::{Request, StatusCode};
use semel::protocol::Ending;
use std::borrow::Cow;
use std::time::Duration;

pub(super) const CLAIM: &str = "semel.claim";
pub(super) const LANDED_ROWS: &str = "semel.landing.rows";
pub(super) const STATUS: &str = "http.response.status_code";
const METHOD: &str = "http.request.method";
const ERROR_TYPE: &str = "error.type";

/// What the gate does with a message, in the words of the conventions.
const PROCESS: &str = "process";

/// What the delivery's own span says.
pub(super) fn of_delivery(
    flow: &Flow,
    disposition: &Disposition,
    status: StatusCode,
) -> Attributes {
    let route = &flow.route.settings;
    let described = match flow.source {
        Source::Api => of_request(flow),
        Source::CloudTasks | Source::PubSub | Source::CloudEvents | Source::Webhook(_) => {
            of_message(flow)
        }
    };
    let lease = flow.lease.as_ref();
    let key = flow.identity().map(|identity| identity.key.to_string());
    of_event(flow, described)
        .with(STATUS, status.as_u16())
        .with("semel.route", route.name.clone())
        .with("semel.source", flow.source.word())
        .with("semel.outcome", disposition.word())
        .with_known("semel.key", key)
        .with_known("semel.fence", lease.map(|lease| lease.fence.0))
        .with_known("semel.attempt", lease.map(|lease| u64::from(lease.attempt)))
        .with_known("semel.slot_wait_ms", flow.slot_waited.map(millis))
        .with_known("semel.letter", flow.letter.map(|letter| letter.to_string()))
}

fn millis(duration: Duration) -> u64 {
    duration.as_millis().try_into().unwrap_or(u64::MAX)
}

fn of_message(flow: &Flow) -> Attributes {
    let transport = &flow.transport;
    let (payload, body) = (flow.payload_bytes, flow.request.body().len());
    let id = transport
        .message_id
        .as_ref()
        .or(transport.task_name.as_ref());
    Attributes::default()
        .with("messaging.system", system(flow.source))
        .with("messaging.operation.name", PROCESS)
        .with("messaging.operation.type", PROCESS)
        .with_known("messaging.destination.name", destination(flow))
        .with_known(
            "messaging.destination.subscription.name",
            subscription(flow),
        )
        .with_known("messaging.message.id", id.cloned())
        .with("messaging.message.body.size", payload)
        .with_known(
            "messaging.message.envelope.size",
            (body != payload).then_some(body),
        )
        .with_known(
            "messaging.gcp_pubsub.message.delivery_attempt",
            transport.delivery_attempt,
        )
        .with_known(
            "messaging.gcp_pubsub.message.ordering_key",
            flow.ordering_key().cloned(),
        )
        .with_known("semel.task.retry_count", transport.retry_count)
}

fn of_request(flow: &Flow) -> Attributes {
    Attributes::default()
        .with(METHOD, flow.request.method().to_string())
        .with("http.route", flow.route.settings.path.to_string())
        .with("http.request.body.size", flow.request.body().len())
}

fn of_event(flow: &Flow, described: Attributes) -> Attributes {
    let of = |name: &str| flow.event.get(name).cloned();
    described
        .with_known("cloudevents.event_id", of("id"))
        .with_known("cloudevents.event_source", of("source"))
        .with_known("cloudevents.event_type", of("type"))
        .with_known("cloudevents.event_subject", of("subject"))
        .with_known("cloudevents.event_spec_version", of("specversion"))
}

/// What the call of a handler says. The query stays out: it may carry a credential.
pub(super) fn of_call(
    request: &Request<Bytes>,
    upstream: &Upstream,
    run: RunContext<'_>,
) -> Attributes {
    let base = &upstream.base;
    let host = base.host().unwrap_or_default().to_owned();
    let scheme = base.scheme_str().unwrap_or("http");
    let port = base
        .port_u16()
        .unwrap_or(if scheme == "https" { 443 } else { 80 });
    let authority = base.authority().map_or("", |authority| authority.as_str());
    let path = request.uri().path();
    Attributes::default()
        .with(METHOD, request.method().to_string())
        .with("url.full", format!("{scheme}://{authority}{path}"))
        .with("server.address", host)
        .with("server.port", port)
        .with_known("semel.fence", run.fence())
        .with_known("semel.attempt", run.attempt())
}

/// The name of a handler's call: its method, as the conventions have it where no template of the path is known.
pub(super) fn call_name(described: &Attributes) -> Cow<'static, str> {
    let method = described.0.iter().find(|(name, _)| *name == METHOD);
    match method {
        Some((_, Value::Text(method))) => method.clone(),
        Some((_, Value::Count(_))) | None => Cow::Borrowed("HTTP"),
    }
}

pub(super) fn with_error(described: Attributes, error: Option<&Cow<'static, str>>) -> Attributes {
    described.with_known(ERROR_TYPE, error.cloned().map(Value::Text))
}

/// A client that asks waits for a server; everybody else leaves a message.
pub(super) const fn kind(flow: &Flow) -> SpanKind {
    match flow.source {
        Source::Api => SpanKind::Server,
        Source::CloudTasks | Source::PubSub | Source::CloudEvents | Source::Webhook(_) => {
            SpanKind::Consumer
        }
    }
}

/// `process` and the destination; for API clients the method and the route's path.
pub(super) fn name(flow: &Flow) -> String {
    if flow.source == Source::Api {
        return format!("{} {}", flow.request.method(), flow.route.settings.path);
    }
    let destination = subscription(flow).or_else(|| destination(flow));
    destination.map_or_else(|| PROCESS.into(), |name| format!("{PROCESS} {name}"))
}

/// Cloud Tasks and webhooks have no name in the conventions, which allow others.
const fn system(source: Source) -> &'static str {
    match source {
        Source::PubSub => "gcp_pubsub",
        Source::CloudTasks => "gcp_cloud_tasks",
        Source::Api | Source::CloudEvents | Source::Webhook(_) => source.word(),
    }
}

/// Where the message was sent to: a queue. The topic of a push is not known. Events and webhooks are sent to the route.
fn destination(flow: &Flow) -> Option<String> {
    match flow.source {
        Source::CloudTasks => flow.transport.queue.clone(),
        Source::PubSub | Source::Api => None,
        Source::CloudEvents | Source::Webhook(_) => Some(flow.route.settings.name.clone()),
    }
}

/// The short name of the subscription.
fn subscription(flow: &Flow) -> Option<String> {
    let whole = flow.transport.subscription.as_deref()?;
    whole.rsplit('/').next().map(str::to_owned)
}

/// Whether the delivery did not come to what its sender wanted. A duplicate that heard so is no error.
pub(super) fn is_error(disposition: &Disposition) -> bool {
    match disposition {
        Disposition::Replayed(_)
        | Disposition::Running { .. }
        | Disposition::Busy { .. }
        | Disposition::NotYet { .. }
        | Disposition::Letter(Undelivered::FailedBefore(_)) => false,
        Disposition::Ran(recorded) => recorded.ending == Ending::Failed,
        Disposition::Unrecorded(_)
        | Disposition::Unread
        | Disposition::Retryable(_)
        | Disposition::Full { .. }
        | Disposition::Stale
        | Disposition::Parked
        | Disposition::Mismatched
        | Disposition::Invalid(_)
        | Disposition::Fault(_)
        | Disposition::FaultNotLanded(_)
        | Disposition::Store(_)
        | Disposition::NoRoom
        | Disposition::Letter(_)
        | Disposition::NotKept(..) => true,
    }
}
