//! A delivery as one line: `task A-1 · delivered 2 × · effect 1 ×`.

use crate::table::member;
use serde_json::Value;
use std::collections::{HashMap, VecDeque};

/// How many pieces of work are counted of one gate; the oldest are given up first.
const WORKS_MAX: usize = 10_000;

/// A gate, by its place among those that are watched.
pub(super) type GateNumber = usize;

/// How often each piece of work was delivered, and took effect, at all gates together.
#[derive(Debug, Default)]
pub(super) struct Counted(HashMap<GateNumber, Works>);

/// What one gate has told.
#[derive(Debug, Default)]
struct Works {
    counts: HashMap<String, Count>,
    /// Oldest first.
    order: VecDeque<String>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    delivered: u64,
    ran: u64,
    /// Whether it took effect, perhaps before anybody watched, or at another gate.
    took_effect: bool,
}

// === impl Counted ===

impl Counted {
    /// Forgets what this gate has told: it tells it again.
    pub(super) fn forget(&mut self, gate: GateNumber) {
        self.0.remove(&gate);
    }

    /// Counts a delivery, and gives its line.
    pub(super) fn line(&mut self, gate: GateNumber, delivery: &Value) -> String {
        let count = self.count(gate, delivery);
        let (delivered, effects) = (count.delivered, count.effects());
        let (who, what) = (kind(&member(delivery, "source")), what(delivery));
        let mut line = format!("{who} {what} · delivered {delivered} × · effect {effects} ×");
        let outcome = member(delivery, "outcome");
        if !["ran", "replayed"].contains(&outcome.as_str()) {
            line.push_str(&format!(" · {}", outcome.replace('_', " ")));
            if let Some(status) = delivery.get("status").and_then(Value::as_u64) {
                line.push_str(&format!(" ({status})"));
            }
        }
        if let Some(why) = delivery.get("why").filter(|why| why.is_string()) {
            line.push_str(&format!(": {}", crate::table::text(why)));
        }
        line
    }

    fn count(&mut self, gate: GateNumber, delivery: &Value) -> Count {
        let Some(key) = delivery.get("key").and_then(Value::as_str) else {
            // What has no key is one of its kind.
            return Count::default().with(delivery);
        };
        let works = self.0.entry(gate).or_default();
        works.count(key, delivery);
        let of_gates = self.0.values().filter_map(|works| works.counts.get(key));
        of_gates.fold(Count::default(), |sum, it| sum.and(*it))
    }
}

// === impl Works ===

impl Works {
    fn count(&mut self, key: &str, delivery: &Value) {
        if !self.counts.contains_key(key) {
            self.order.push_back(key.to_owned());
        }
        if self.order.len() > WORKS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.counts.remove(&oldest);
        }
        let count = self.counts.entry(key.to_owned()).or_default();
        *count = count.with(delivery);
    }
}

// === impl Count ===

impl Count {
    fn with(self, delivery: &Value) -> Self {
        let is_end = delivery.get("end").and_then(Value::as_bool) == Some(true);
        let outcome = member(delivery, "outcome");
        let ran = ["ran", "unrecorded"].contains(&outcome.as_str());
        self.and(Self {
            delivered: u64::from(!is_end),
            ran: u64::from(ran),
            took_effect: ran || (outcome == "replayed" && succeeded(delivery)),
        })
    }

    fn and(self, other: Self) -> Self {
        Self {
            delivered: self.delivered + other.delivered,
            ran: self.ran + other.ran,
            took_effect: self.took_effect || other.took_effect,
        }
    }

    fn effects(self) -> u64 {
        self.ran.max(u64::from(self.took_effect))
    }
}

fn succeeded(delivery: &Value) -> bool {
    let status = delivery.get("status").and_then(Value::as_u64);
    let kept = delivery.get("letter").is_some_and(Value::is_string);
    status.is_some_and(|status| status < 400) && !kept
}

/// What people call a delivery of this sender.
fn kind(source: &str) -> &'static str {
    match source {
        "cloud-tasks" => "task",
        "pubsub" => "message",
        "cloudevents" => "event",
        "api" => "request",
        _ => "webhook",
    }
}

/// What tells the work from others, as short as that goes: the value alone where one part says it all.
fn what(delivery: &Value) -> String {
    let about = member(delivery, "about");
    let value = |part: &str| part.split_once(' ').map(|(_, value)| value.to_owned());
    match about.split_once(", ") {
        None if about.is_empty() => member(delivery, "id"),
        None => value(&about).unwrap_or(about),
        Some((first, rest)) => {
            let of_sender = ["queue ", "subscription ", "ce:source "];
            let is_of_sender = of_sender.iter().any(|name| first.starts_with(name));
            let short = value(rest).filter(|_| is_of_sender);
            short.unwrap_or(about)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn delivery(about: &str, outcome: &str, status: u16) -> Value {
        json!({
            "source": "cloud-tasks", "key": format!("v1_{about}"), "about": about, "outcome": outcome, "status": status,
            "end": false, "why": null, "letter": null, "id": "t1",
        })
    }

    #[test]
    fn a_line_counts_deliveries_and_effects() {
        let mut counted = Counted::default();
        let mut line = |about, outcome, status| counted.line(0, &delivery(about, outcome, status));
        assert_eq!(
            line("order_id A-1", "ran", 200),
            "task A-1 · delivered 1 × · effect 1 ×"
        );
        assert_eq!(
            line("order_id A-1", "replayed", 200),
            "task A-1 · delivered 2 × · effect 1 ×"
        );
        assert_eq!(
            line("order_id A-2", "retryable", 503),
            "task A-2 · delivered 1 × · effect 0 × · retryable (503)"
        );
        assert_eq!(
            line("old 7", "replayed", 200),
            "task 7 · delivered 1 × · effect 1 ×"
        );
        let of_queue = line("queue orders, task-name t1", "ran", 200);
        assert!(of_queue.starts_with("task t1 ·"), "{of_queue}");
        let two = line("a 1, b 2", "ran", 200);
        assert!(two.starts_with("task a 1, b 2 ·"), "{two}");
    }

    #[test]
    fn a_line_cannot_be_turned_around() {
        let mut told = delivery("order_id A\u{202e}1", "failed", 422);
        told["why"] = "no\u{200b}thing".into();
        let line = Counted::default().line(0, &told);
        let says = "task A\\u{202e}1 · delivered 1 × · effect 0 × · failed (422): no\\u{200b}thing";
        assert_eq!(line, says);
    }

    #[test]
    fn no_more_works_are_counted_than_there_is_room_for() {
        let mut counted = Counted::default();
        for number in 0..WORKS_MAX + 10 {
            counted.line(0, &delivery(&format!("id {number}"), "ran", 200));
        }
        let works = &counted.0[&0];
        assert_eq!(
            (works.counts.len(), works.order.len()),
            (WORKS_MAX, WORKS_MAX)
        );
    }

    #[test]
    fn a_gate_that_tells_again_is_counted_anew_and_the_others_stay() {
        let mut counted = Counted::default();
        let ends = |line: String, says: &str| assert!(line.ends_with(says), "{line}");
        counted.line(0, &delivery("id 7", "ran", 200));
        let both = counted.line(1, &delivery("id 7", "replayed", 200));
        ends(both, "delivered 2 × · effect 1 ×");
        counted.forget(0);
        ends(
            counted.line(0, &delivery("id 7", "ran", 200)),
            "delivered 2 × · effect 1 ×",
        );
        counted.forget(0);
        ends(
            counted.line(1, &delivery("id 7", "replayed", 200)),
            "delivered 2 × · effect 1 ×",
        );
    }
}
