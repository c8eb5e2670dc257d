//! One log line per delivery: enough to follow one task across its retries.
//!
//! The key is a digest; bodies, raw keys and credentials are not here.

use crate::disposition::Disposition;
use crate::flow::Flow;
use http::StatusCode;
use std::time::Duration;

/// Writes the line of a delivery whose flow has ended: with this status, after so long. It is a warning with its reason
/// where a person should look.
pub(crate) fn write(flow: &Flow, disposition: &Disposition, status: StatusCode, elapsed: Duration) {
    let transport = &flow.transport;
    let reason = disposition.warning();
    // The level of a line is a constant, and the fields are the same.
    macro_rules! line {
        ($level:ident) => {
            tracing::$level!(
                target: "delivery",
                route = flow.route.settings.name,
                source = flow.source.word(),
                outcome = disposition.word(),
                reason,
                method = flow.request.method().as_str(),
                status = status.as_u16(),
                key = flow.identity().map(|identity| identity.key.to_string()),
                fence = flow.lease.as_ref().map(|lease| lease.fence.0),
                attempt = flow.lease.as_ref().map(|lease| lease.attempt),
                elapsed_ms = millis(elapsed),
                upstream_ms = flow.handler_took.map(millis),
                slot_ms = flow.slot_waited.map(millis),
                queue = transport.queue,
                task_name = transport.task_name,
                retry_count = transport.retry_count,
                execution_count = transport.execution_count,
                previous_response = transport.previous_response,
                subscription = transport.subscription,
                message_id = transport.message_id,
                ordering_key = flow.ordering_key(),
                delivery_attempt = transport.delivery_attempt,
                trace_id = flow.trace.trace_id(),
                span_id = flow.trace.span_id(),
                letter = flow.letter.map(|letter| letter.to_string()),
                "delivery"
            )
        };
    }
    if reason.is_some() {
        line!(warn);
    } else {
        line!(info);
    }
}

/// Writes how a run ended whose sender heard before that it goes on.
pub(crate) fn write_end(flow: &Flow, outcome: &'static str, elapsed: Duration) {
    tracing::info!(
        target: "run",
        route = flow.route.settings.name,
        source = flow.source.word(),
        outcome,
        key = flow.identity().map(|identity| identity.key.to_string()),
        fence = flow.lease.as_ref().map(|lease| lease.fence.0),
        attempt = flow.lease.as_ref().map(|lease| lease.attempt),
        elapsed_ms = millis(elapsed),
        upstream_ms = flow.handler_took.map(millis),
        task_name = flow.transport.task_name,
        message_id = flow.transport.message_id,
        trace_id = flow.trace.trace_id(),
        letter = flow.letter.map(|letter| letter.to_string()),
        "a run has ended after its sender heard that it goes on"
    );
}

/// Writes the line of a delivery whose sender is not believed, for this reason.
pub(crate) fn write_unverified(route: &str, reason: &'static str, status: StatusCode) {
    tracing::warn!(
        target: "delivery",
        route,
        outcome = "unverified",
        reason,
        status = status.as_u16(),
        "delivery"
    );
}

/// Writes the line of a request without a key, which was forwarded unprotected.
pub(crate) fn write_unprotected(route: &str, status: StatusCode) {
    tracing::warn!(
        target: "delivery",
        route,
        outcome = "unprotected",
        status = status.as_u16(),
        "delivery"
    );
}

/// Rounded to microseconds, so that lines stay short.
fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}
