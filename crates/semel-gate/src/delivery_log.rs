//! One log line per delivery: enough to follow one task across its retries.
//!
//! The key is a digest; bodies, raw keys and credentials are not here.

use crate::delivery::{Arrived, Transport};
use crate::effect::Heard;
use crate::metrics::Metrics;
use crate::naming::Identity;
use crate::reply::meaning::says_success;
use crate::reply::{NotKept, Told};
use crate::settings::{Route, Source};
use http::StatusCode;
use semel::Ended;
use semel::letter::LetterId;
use semel::record::{Ending, Fence, Lease, State};
use semel::work::FailureKind;
use std::time::Duration;
use tokio::time::Instant;

/// What is known of one delivery so far.
#[derive(Debug)]
pub(crate) struct Line {
    route: String,
    source: Source,
    begun: Instant,
    pub(crate) transport: Transport,
    pub(crate) named: Option<Identity>,
    pub(crate) letter: Option<LetterId>,
    trace: Option<String>,
    lease: Option<Lease>,
    upstream: Option<Duration>,
    /// How long it waited for a slot, if it had to.
    pub(crate) slot: Option<Duration>,
    outcome: &'static str,
}

/// Headers that tell one arrival of a sender from its next one; the others only say where it comes from.
const IDENTIFYING_HEADERS: [&str; 4] = [
    "x-cloudtasks-taskname",
    "x-appengine-taskname",
    "x-goog-pubsub-message-id",
    "ce-id",
];

/// Headers in which senders name an arrival. What stands in a body is part of the body.
const NAMING_HEADERS: [&str; 8] = [
    "x-cloudtasks-queuename",
    "x-cloudtasks-taskname",
    "x-appengine-queuename",
    "x-appengine-taskname",
    "x-goog-pubsub-subscription-name",
    "x-goog-pubsub-message-id",
    "ce-source",
    "ce-id",
];

// === impl Line ===

impl Line {
    pub(crate) fn begin(route: &Route, source: Source) -> Self {
        Self {
            route: route.name.clone(),
            source,
            begun: Instant::now(),
            transport: Transport::default(),
            named: None,
            letter: None,
            trace: None,
            lease: None,
            upstream: None,
            slot: None,
            outcome: "invalid",
        }
    }

    /// The trace id out of a trace context.
    pub(crate) fn trace(&mut self, traceparent: &str) {
        self.trace = traceparent.split('-').nth(1).map(str::to_owned);
    }

    pub(crate) fn heard(&mut self, heard: &Heard) {
        self.lease.clone_from(&heard.lease);
        self.upstream = heard.upstream;
    }

    /// The fence of the run that this delivery made.
    pub(crate) fn fence(&self) -> Option<Fence> {
        self.lease.as_ref().map(|lease| lease.fence)
    }

    pub(crate) fn tell(&mut self, told: &Told) {
        self.outcome = word(told);
        if let Told::Store(error) = told {
            tracing::warn!(route = self.route, %error, "the store did not take a claim");
        }
    }

    /// Whether the sender named this arrival, in a header or in what could be read of its body. If not,
    /// two that look the same may be two.
    pub(crate) fn is_identified(&self, arrived: &Arrived) -> bool {
        let mut values = IDENTIFYING_HEADERS
            .iter()
            .flat_map(|name| arrived.headers.get_all(*name));
        let read = [&self.transport.message_id, &self.transport.task_name];
        values.any(|value| !value.is_empty()) || read.into_iter().any(Option::is_some)
    }

    /// All that stays the same when a delivery without a key comes again, beside its body: two that
    /// differ here are two letters.
    pub(crate) fn arrival(&self, arrived: &Arrived) -> String {
        let path = arrived.uri.path_and_query();
        let path = path.map_or("/", |path| path.as_str());
        let mut arrival = format!("{} {} {} {path}", self.route, self.source, arrived.method);
        for (name, value) in &arrived.headers {
            let names_it = NAMING_HEADERS.iter().any(|header| name == header);
            if names_it {
                arrival.push_str(&format!("\n{name}: {value:?}"));
            }
        }
        arrival
    }

    /// Writes the line and counts the delivery.
    pub(crate) fn end(self, metrics: &Metrics, status: StatusCode) {
        let elapsed = self.begun.elapsed();
        metrics.delivery(&self.route, self.outcome, elapsed, self.upstream);
        if let Some(waited) = self.slot {
            metrics.slot_waited(&self.route, waited);
        }
        let transport = &self.transport;
        tracing::info!(
            target: "delivery",
            route = self.route,
            source = self.source.word(),
            outcome = self.outcome,
            status = status.as_u16(),
            key = self.named.map(|named| named.key.to_string()),
            fence = self.lease.as_ref().map(|lease| lease.fence.0),
            attempt = self.lease.as_ref().map(|lease| lease.attempt),
            elapsed_ms = millis(elapsed),
            upstream_ms = self.upstream.map(millis),
            slot_ms = self.slot.map(millis),
            queue = transport.queue,
            task_name = transport.task_name,
            retry_count = transport.retry_count,
            execution_count = transport.execution_count,
            previous_response = transport.previous_response,
            subscription = transport.subscription,
            message_id = transport.message_id,
            ordering_key = transport.ordering_key,
            delivery_attempt = transport.delivery_attempt,
            trace_id = self.trace,
            letter = self.letter.map(|letter| letter.to_string()),
            "delivery"
        );
    }
}

/// Rounded to microseconds, so that lines stay short.
fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

/// The word for what became of a delivery, in log lines and metrics.
pub(crate) fn word(told: &Told) -> &'static str {
    match told {
        Told::Invalid(_) => "invalid",
        Told::Store(_) => "store_unavailable",
        Told::NoRoom => "no_room",
        Told::NotKept(NotKept::Unsettled) => "unsettled",
        Told::NotKept(NotKept::Full) => "letters_full",
        Told::Ended(ended, _) => match ended {
            Ended::Ran(recorded) => match recorded.ending {
                Ending::Succeeded => "ran",
                Ending::Failed => "failed",
            },
            Ended::Replayed(_) => "replayed",
            Ended::Unrecorded(_) => "unrecorded",
            Ended::Unread => "unread",
            Ended::Failed(failed) if failed.state == State::Parked => "parked",
            Ended::Failed(failed)
                if failed.failure.kind == FailureKind::Retryable
                    && says_success(&failed.failure) =>
            {
                "answered_without_completing"
            }
            Ended::Failed(_) => "retryable",
            Ended::Busy { .. } => "busy",
            Ended::NotYet { .. } => "not_yet",
            Ended::Full { .. } => "full",
            Ended::Parked => "parked",
            Ended::Mismatched => "mismatched",
            Ended::Stale => "stale",
        },
    }
}
