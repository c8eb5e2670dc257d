//! Pub/Sub over REST, and streaming pull over gRPC; pushes go to a real handler.

mod resources;
mod pull;
mod push;
mod stream;
mod seek;
mod schemas;
mod faults;
mod restart;

use crate::support::{ApiResult, Broker, Handler, base64, merged, ok};
use serde_json::{Value, json};
use std::ops::Deref;
use std::path::Path;

const TOPIC: &str = "projects/p/topics/orders";
const SUBSCRIPTION: &str = "projects/p/subscriptions/billing";

/// A broker with one topic.
struct TestTopic(Broker);

impl Deref for TestTopic {
    type Target = Broker;

    fn deref(&self) -> &Broker {
        &self.0
    }
}

// === impl TestTopic ===

impl TestTopic {
    async fn new(faults: &[&str]) -> Self {
        let test = Self(Broker::start(faults).await);
        test.topic(TOPIC, json!({})).await;
        test
    }

    /// With a subscription that has these settings.
    async fn with(settings: Value) -> Self {
        Self::faulty(&[], settings).await
    }

    async fn faulty(faults: &[&str], settings: Value) -> Self {
        let test = Self::new(faults).await;
        test.subscribe(SUBSCRIPTION, settings).await.unwrap();
        test
    }

    /// With a subscription that pushes to a handler.
    async fn pushing(faults: &[&str], settings: Value) -> (Self, Handler) {
        let handler = Handler::start().await;
        let push = json!({ "pushConfig": { "pushEndpoint": format!("{}/push?a=1", handler.url) } });
        (Self::faulty(faults, merged(push, settings)).await, handler)
    }

    async fn in_directory(directory: &Path) -> Self {
        Self(Broker::in_directory(directory).await)
    }

    async fn topic(&self, name: &str, settings: Value) {
        self.put(&format!("/v1/{name}"), settings).await.unwrap();
    }

    async fn subscribe(&self, name: &str, settings: Value) -> ApiResult {
        let settings = merged(json!({ "topic": TOPIC }), settings);
        self.put(&format!("/v1/{name}"), settings).await
    }

    async fn subscription(&self) -> Value {
        self.get(&format!("/v1/{SUBSCRIPTION}")).await.unwrap()
    }

    /// Does something with the subscription: `seek`, `detach`.
    async fn tell(&self, verb: &str, body: Value) -> ApiResult {
        self.post(&format!("/v1/{SUBSCRIPTION}:{verb}"), body).await
    }

    async fn publish(&self, texts: &[&str]) -> Vec<String> {
        self.publish_keyed(texts, "").await
    }

    async fn publish_keyed(&self, texts: &[&str], key: &str) -> Vec<String> {
        let message = |text: &&str| json!({ "data": base64(text), "orderingKey": key });
        let messages: Vec<Value> = texts.iter().map(message).collect();
        let published = self.publish_messages(json!(messages)).await.unwrap();
        let ids = published["messageIds"].as_array().unwrap();
        ids.iter()
            .map(|id| id.as_str().unwrap().to_owned())
            .collect()
    }

    async fn publish_messages(&self, messages: Value) -> ApiResult {
        let request = json!({ "messages": messages });
        self.post(&format!("/v1/{TOPIC}:publish"), request).await
    }

    /// What is there right now.
    async fn pull(&self, name: &str) -> Vec<Value> {
        self.try_pull(name, true).await.unwrap()
    }

    /// Pulls as soon as there is something.
    async fn wait_pull(&self, name: &str) -> Vec<Value> {
        let received = self.try_pull(name, false).await.unwrap();
        assert!(!received.is_empty(), "nothing came");
        received
    }

    async fn try_pull(
        &self,
        name: &str,
        at_once: bool,
    ) -> Result<Vec<Value>, crate::support::ApiError> {
        let request = json!({ "returnImmediately": at_once, "maxMessages": 100 });
        let pulled = self.post(&format!("/v1/{name}:pull"), request).await?;
        let received = pulled["receivedMessages"].as_array();
        Ok(received.cloned().unwrap_or_default())
    }

    async fn ack(&self, received: &[Value]) -> ApiResult {
        self.tell("acknowledge", json!({ "ackIds": ack_ids(received) }))
            .await
    }

    /// Extends, or refuses with 0 seconds.
    async fn modify(&self, received: &[Value], seconds: i32) -> ApiResult {
        let request = json!({ "ackIds": ack_ids(received), "ackDeadlineSeconds": seconds });
        self.tell("modifyAckDeadline", request).await
    }

    async fn take_all(&self) -> Vec<String> {
        let received = self.pull(SUBSCRIPTION).await;
        if !received.is_empty() {
            self.ack(&received).await.unwrap();
        }
        ids(&received)
    }
}

fn dead_letters(topic: &str, attempts: i32) -> Value {
    json!({ "deadLetterPolicy": { "deadLetterTopic": topic, "maxDeliveryAttempts": attempts } })
}

fn ack_ids(received: &[Value]) -> Vec<String> {
    received
        .iter()
        .map(|it| it["ackId"].as_str().unwrap().to_owned())
        .collect()
}

fn texts(received: &[Value]) -> Vec<String> {
    use base64::Engine;
    let text = |it: &Value| {
        let data = it["message"]["data"].as_str().unwrap();
        let data = base64::engine::general_purpose::STANDARD.decode(data);
        String::from_utf8(data.unwrap()).unwrap()
    };
    received.iter().map(text).collect()
}

fn ids(received: &[Value]) -> Vec<String> {
    let id = |it: &Value| it["message"]["messageId"].as_str().unwrap().to_owned();
    received.iter().map(id).collect()
}
