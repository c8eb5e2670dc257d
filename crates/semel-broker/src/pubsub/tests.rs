//! The service as its clients see it, without a network in between; pushes go to a real handler.

mod admin;
mod faults;
mod pull;
mod push;
mod restart;
mod seek;
mod stream;

use super::PubSub;
use crate::context::Context;
use crate::history::{Dispatch, HistoryFilter};
use crate::proto::pubsub as wire;
use crate::proto::pubsub::publisher_server::Publisher;
use crate::proto::pubsub::subscriber_server::Subscriber;
use std::sync::Arc;
use std::time::Duration;
use tonic::{Request, Status};

const TOPIC: &str = "projects/p/topics/orders";
const SUBSCRIPTION: &str = "projects/p/subscriptions/billing";

/// A service with one topic.
struct Bed {
    context: Arc<Context>,
    pubsub: PubSub,
}

// === impl Bed ===

impl Bed {
    async fn new(faults: &[&str]) -> Self {
        let context = Context::for_test(faults);
        let pubsub = PubSub::open(Arc::clone(&context)).unwrap();
        let bed = Self { context, pubsub };
        bed.topic(TOPIC).await;
        bed
    }

    /// With the usual subscription, as `change` wants it.
    async fn with(faults: &[&str], change: impl FnOnce(&mut wire::Subscription)) -> Self {
        let bed = Self::new(faults).await;
        bed.subscribe(SUBSCRIPTION, change).await.unwrap();
        bed
    }

    async fn topic(&self, name: &str) {
        let topic = wire::Topic {
            name: name.into(),
            ..Default::default()
        };
        self.pubsub.create_topic(Request::new(topic)).await.unwrap();
    }

    async fn subscribe(
        &self,
        name: &str,
        change: impl FnOnce(&mut wire::Subscription),
    ) -> Result<wire::Subscription, Status> {
        let mut subscription = wire::Subscription {
            name: name.into(),
            topic: TOPIC.into(),
            ..Default::default()
        };
        change(&mut subscription);
        let made = self.pubsub.create_subscription(Request::new(subscription));
        made.await.map(tonic::Response::into_inner)
    }

    async fn publish(&self, texts: &[&str]) -> Vec<String> {
        self.publish_keyed(texts, "").await
    }

    async fn publish_keyed(&self, texts: &[&str], key: &str) -> Vec<String> {
        let messages = texts.iter().map(|text| wire::PubsubMessage {
            data: (*text).to_owned().into(),
            ordering_key: key.into(),
            ..Default::default()
        });
        self.publish_messages(messages.collect()).await.unwrap()
    }

    async fn publish_messages(
        &self,
        messages: Vec<wire::PubsubMessage>,
    ) -> Result<Vec<String>, Status> {
        let request = wire::PublishRequest {
            topic: TOPIC.into(),
            messages,
        };
        let published = self.pubsub.publish(Request::new(request)).await?;
        Ok(published.into_inner().message_ids)
    }

    /// What is there right now.
    async fn pull(&self, name: &str) -> Vec<wire::ReceivedMessage> {
        self.try_pull(name, true).await.unwrap()
    }

    async fn try_pull(
        &self,
        name: &str,
        at_once: bool,
    ) -> Result<Vec<wire::ReceivedMessage>, Status> {
        let request = wire::PullRequest {
            subscription: name.into(),
            return_immediately: at_once,
            max_messages: 100,
        };
        let pulled = self.pubsub.pull(Request::new(request)).await?;
        Ok(pulled.into_inner().received_messages)
    }

    async fn ack(&self, received: &[wire::ReceivedMessage]) -> Result<(), Status> {
        let request = wire::AcknowledgeRequest {
            subscription: SUBSCRIPTION.into(),
            ack_ids: ack_ids(received),
        };
        self.pubsub.acknowledge(Request::new(request)).await?;
        Ok(())
    }

    async fn modify(&self, received: &[wire::ReceivedMessage], seconds: i32) -> Result<(), Status> {
        let request = wire::ModifyAckDeadlineRequest {
            subscription: SUBSCRIPTION.into(),
            ack_deadline_seconds: seconds,
            ack_ids: ack_ids(received),
        };
        self.pubsub
            .modify_ack_deadline(Request::new(request))
            .await?;
        Ok(())
    }

    fn advance(&self, seconds: u64) {
        self.context.clock.advance(Duration::from_secs(seconds));
    }

    /// Pulls as soon as there is something, for at most ten seconds.
    async fn wait_pull(&self, name: &str) -> Vec<wire::ReceivedMessage> {
        let pulled = self.try_pull(name, false);
        let pulled = tokio::time::timeout(Duration::from_secs(10), pulled).await;
        pulled.expect("nothing came").unwrap()
    }

    /// Waits until nothing is left to be delivered or acknowledged, for at most ten seconds.
    async fn idle(&self, include_pull: bool) {
        let mut changed = self.pubsub.changed();
        let idle = async {
            while !self.pubsub.busy(include_pull).is_empty() {
                changed.changed().await.unwrap();
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(10), idle).await;
        waited.expect("it stays busy");
    }

    fn history(&self) -> Vec<Dispatch> {
        let wanted = HistoryFilter {
            limit: 1000,
            ..Default::default()
        };
        self.context.history.list(&wanted).0
    }

    /// Waits until a delivery has this end; nothing else is to change it.
    async fn wait_history(&self, seen: impl Fn(&[Dispatch]) -> bool) -> Vec<Dispatch> {
        let mut changed = self.pubsub.changed();
        let waited = async {
            while !seen(&self.history()) {
                changed.changed().await.unwrap();
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(10), waited).await;
        assert!(waited.is_ok(), "{:?}", self.history());
        self.history()
    }
}

fn ack_ids(received: &[wire::ReceivedMessage]) -> Vec<String> {
    received.iter().map(|it| it.ack_id.clone()).collect()
}

fn texts(received: &[wire::ReceivedMessage]) -> Vec<String> {
    let text = |it: &wire::ReceivedMessage| {
        let data = it.message.as_ref().unwrap().data.to_vec();
        String::from_utf8(data).unwrap()
    };
    received.iter().map(text).collect()
}

fn ids(received: &[wire::ReceivedMessage]) -> Vec<String> {
    let id = |it: &wire::ReceivedMessage| it.message.as_ref().unwrap().message_id.clone();
    received.iter().map(id).collect()
}

fn span(seconds: i64) -> Option<prost_types::Duration> {
    Some(prost_types::Duration { seconds, nanos: 0 })
}
