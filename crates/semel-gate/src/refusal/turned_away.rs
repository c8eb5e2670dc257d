//! Requests that are refused before they are deliveries: by path, method, size, encoding or overload. Each is counted by
//! reason, and logged with its sender's ids.

use crate::gate::Gate;
use crate::invisible::is_invisible;
use crate::reply::problem::Problem;
use crate::upstream::{Reply, full};
use http::HeaderMap;
use http::request::Parts;

/// Length of a path or an id in the log, in characters.
const SHOWN_CHARS_MAX: usize = 200;

/// Headers in which senders name what they deliver.
const IDS: [&str; 11] = [
    "x-cloudtasks-queuename",
    "x-cloudtasks-taskname",
    "x-cloudtasks-taskretrycount",
    "x-goog-pubsub-subscription-name",
    "x-goog-pubsub-message-id",
    "ce-source",
    "ce-id",
    "x-github-delivery",
    "x-shopify-webhook-id",
    "webhook-id",
    "idempotency-key",
];

/// Counts, logs and answers a refused request.
pub(crate) fn turn_away(gate: &Gate, head: &Parts, problem: &Problem) -> Reply {
    let reason = problem.code();
    gate.metrics.senders.turned_away(reason);
    if let Some(left_out) = gate.turned_away_log.line(reason) {
        tracing::warn!(
            target: "delivery",
            outcome = "turned-away",
            reason,
            method = head.method.as_str(),
            path = shown(head.uri.path()),
            status = problem.status().as_u16(),
            ids = ids(&head.headers),
            left_out = (left_out > 0).then_some(left_out),
            "delivery"
        );
    }
    problem.reply().map(full)
}

/// Returns the names that senders gave in headers, without what a log line cannot show.
fn ids(headers: &HeaderMap) -> Option<String> {
    let id = |name: &&str| {
        let value = headers.get(*name)?.to_str().ok()?;
        Some(format!("{name}={}", shown(value)))
    };
    let ids: Vec<_> = IDS.iter().filter_map(id).collect();
    (!ids.is_empty()).then(|| ids.join(" "))
}

fn shown(text: &str) -> String {
    let visible = text.chars().filter(|c| !is_invisible(*c));
    visible.take(SHOWN_CHARS_MAX).collect()
}
