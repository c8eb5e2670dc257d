//! Deliveries as each sender makes them.

use super::Ask;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Who delivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    Api,
    Task,
    Push,
    Event,
}

pub(crate) const SENDERS: [Sender; 4] = [Sender::Api, Sender::Task, Sender::Push, Sender::Event];
pub(crate) const BROKERS: [Sender; 3] = [Sender::Task, Sender::Push, Sender::Event];

pub(crate) const SUBSCRIPTION: &str = "projects/shop/subscriptions/orders";

// === impl Sender ===

impl Sender {
    /// A delivery of this payload, under this name.
    pub(crate) fn sends(self, name: &str, payload: &str) -> Ask {
        let ask = Ask::post("/work");
        match self {
            Self::Api => ask
                .header("Idempotency-Key", name)
                .header("X-Caller", "alice")
                .body(payload.to_owned()),
            Self::Task => ask
                .header("X-CloudTasks-QueueName", "orders")
                .header("X-CloudTasks-TaskName", name)
                .body(payload.to_owned()),
            Self::Push => ask
                .header("Content-Type", "application/json")
                .body(envelope(name, payload, &serde_json::json!({}))),
            Self::Event => ask
                .header("ce-id", name)
                .header("ce-source", "/orders")
                .header("ce-type", "order.placed")
                .header("ce-specversion", "1.0")
                .body(payload.to_owned()),
        }
    }
}

/// A wrapped push.
pub(crate) fn envelope(id: &str, data: &str, attributes: &serde_json::Value) -> String {
    serde_json::json!({
        "message": { "data": STANDARD.encode(data), "messageId": id, "attributes": attributes },
        "subscription": SUBSCRIPTION,
        "deliveryAttempt": 3,
    })
    .to_string()
}
