//! Requests that are refused before they are deliveries: by path, method, size, encoding or overload. Each is counted by
//! reason, and logged with its sender's ids.

use crate::gate::Gate;
use crate::invisible::is_invisible;
use crate::reply::problem::Problem;
use crate::upstream::{Reply, full};
use http::HeaderMap;
use http::request::Parts;
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// Log lines per reason and second; the others of that second are counted.
const LINES_MAX: u32 = 10;
const SECOND: Duration = Duration::from_secs(1);

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

/// The lines of the current second, by reason.
#[derive(Debug, Default)]
pub(crate) struct TurnedAwayLog(Mutex<HashMap<&'static str, Second>>);

#[derive(Debug)]
struct Second {
    begun: Instant,
    lines: u32,
    left_out: u64,
}

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

// === impl TurnedAwayLog ===

impl TurnedAwayLog {
    /// Returns how many lines were left out since the last one, if a line is due.
    fn line(&self, reason: &'static str) -> Option<u64> {
        let now = Instant::now();
        let mut seconds = self.0.lock().expect("no holder of this lock panics");
        let second = seconds.entry(reason).or_insert(Second {
            begun: now,
            lines: 0,
            left_out: 0,
        });
        if now - second.begun >= SECOND {
            second.begun = now;
            second.lines = 0;
        }
        if second.lines == LINES_MAX {
            second.left_out += 1;
            return None;
        }
        second.lines += 1;
        Some(std::mem::take(&mut second.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn ten_lines_a_second_are_written_and_the_others_counted() {
        let log = TurnedAwayLog::default();
        let lines: Vec<_> = (0..25).map(|_| log.line("unknown-path")).collect();
        assert_eq!(lines.iter().flatten().count(), 10);
        assert_eq!(log.line("other-method"), Some(0));
        tokio::time::advance(SECOND).await;
        assert_eq!(log.line("unknown-path"), Some(15));
        assert_eq!(log.line("unknown-path"), Some(0));
    }
}
