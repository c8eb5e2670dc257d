//! A delivery as one line: `task A-1 · delivered 2 × · effect 1 ×`.

use crate::table::member;
use serde_json::Value;
use std::collections::{HashMap, VecDeque};

/// How many pieces of work are counted; the oldest are given up first.
const WORKS_MAX: usize = 10_000;

/// How often each piece of work was delivered, and took effect.
#[derive(Debug, Default)]
pub(super) struct Counted {
    works: HashMap<String, Count>,
    /// Oldest first.
    order: VecDeque<String>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    delivered: u64,
    effects: u64,
}

// === impl Counted ===

impl Counted {
    /// Counts a delivery, and gives its line.
    pub(super) fn line(&mut self, delivery: &Value) -> String {
        let Count { delivered, effects } = self.count(delivery);
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

    fn count(&mut self, delivery: &Value) -> Count {
        let key = member(delivery, "key");
        let mut alone = Count::default();
        // What has no key is one of its kind.
        let count = match delivery.get("key").filter(|key| key.is_string()) {
            None => &mut alone,
            Some(_) => {
                if !self.works.contains_key(&key) {
                    self.order.push_back(key.clone());
                }
                if self.order.len() > WORKS_MAX
                    && let Some(oldest) = self.order.pop_front()
                {
                    self.works.remove(&oldest);
                }
                self.works.entry(key).or_default()
            }
        };
        let is = |name: &str| delivery.get(name).and_then(Value::as_bool) == Some(true);
        count.delivered += u64::from(!is("end"));
        match member(delivery, "outcome").as_str() {
            "ran" | "unrecorded" => count.effects += 1,
            // It took effect before anybody watched.
            "replayed" if succeeded(delivery) => count.effects = count.effects.max(1),
            _ => {}
        }
        *count
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
        let mut line = |about, outcome, status| counted.line(&delivery(about, outcome, status));
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
    fn no_more_works_are_counted_than_there_is_room_for() {
        let mut counted = Counted::default();
        for number in 0..WORKS_MAX + 10 {
            counted.line(&delivery(&format!("id {number}"), "ran", 200));
        }
        assert_eq!(
            (counted.works.len(), counted.order.len()),
            (WORKS_MAX, WORKS_MAX)
        );
    }
}
