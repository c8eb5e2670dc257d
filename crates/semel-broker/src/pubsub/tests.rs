//! What only the registry and storage show.

use super::PubSub;
use super::registry::Registry;
use crate::admin::Service;
use crate::clock::{Time, proto_span};
use crate::context::Context;
use crate::history::HistoryFilter;
use crate::proto::pubsub as wire;
use crate::proto::pubsub::seek_request::Target;
use crate::storage::{Storage, Table};
use prost::Message;
use std::sync::Arc;
use std::time::Duration;

const TOPIC: &str = "projects/p/topics/orders";
const SUBSCRIPTION: &str = "projects/p/subscriptions/billing";
const SNAPSHOT: &str = "projects/p/snapshots/before";
const MINUTE: Duration = Duration::from_secs(60);

/// A service with one topic.
struct TestPubSub {
    context: Arc<Context>,
    pubsub: PubSub,
}

// === impl TestPubSub ===

impl TestPubSub {
    async fn new(storage: Storage, retention: Option<Duration>) -> Self {
        let context = Context::in_test(storage, &[]);
        let pubsub = PubSub::open(Arc::clone(&context)).unwrap();
        let test = Self { context, pubsub };
        test.topic(TOPIC, retention).await;
        test
    }

    /// With a subscription, as `change` wants it.
    async fn with(change: impl FnOnce(&mut wire::Subscription)) -> Self {
        let test = Self::new(Storage::in_memory(), None).await;
        let mut subscription = wire::Subscription {
            name: SUBSCRIPTION.into(),
            topic: TOPIC.into(),
            ..Default::default()
        };
        change(&mut subscription);
        let created = test.registry().create_subscription(subscription).await;
        created.unwrap();
        test
    }

    fn registry(&self) -> Arc<Registry> {
        self.pubsub.registry()
    }

    async fn topic(&self, name: &str, retention: Option<Duration>) {
        let topic = wire::Topic {
            name: name.into(),
            message_retention_duration: retention.map(proto_span),
            ..Default::default()
        };
        self.registry().create_topic(topic).await.unwrap();
    }

    async fn publish(&self, count: usize) {
        let message = wire::PubsubMessage {
            data: "x".into(),
            ..Default::default()
        };
        let request = wire::PublishRequest {
            topic: TOPIC.into(),
            messages: vec![message; count],
        };
        self.registry().publish(request).await.unwrap();
    }

    async fn pull(&self) -> usize {
        let request = wire::PullRequest {
            subscription: SUBSCRIPTION.into(),
            return_immediately: true,
            max_messages: 100,
        };
        let pulled = self.registry().pull(request).await.unwrap();
        pulled.received_messages.len()
    }

    async fn seek(&self, target: Target) {
        let request = wire::SeekRequest {
            subscription: SUBSCRIPTION.into(),
            target: Some(target),
        };
        self.registry().seek(request).await.unwrap();
    }

    fn messages(&self, backlog: u64) -> usize {
        let storage = &self.context.storage;
        let rows = storage.scan(Table::Messages, &backlog.to_be_bytes(), None, 1000);
        rows.unwrap().len()
    }

    /// Whether the first delivery is over.
    fn is_over(&self) -> bool {
        let one = HistoryFilter {
            limit: 1,
            ..HistoryFilter::default()
        };
        self.context.history.list(&one).0[0].took_us.is_some()
    }
}

#[tokio::test]
async fn what_is_too_old_leaves_by_itself() {
    let retention = Some(proto_span(10 * MINUTE));
    let test = TestPubSub::with(|it| it.message_retention_duration = retention).await;
    test.publish(1).await;
    test.context.clock.advance(10 * MINUTE);
    let subscription = test.registry().subscription(SUBSCRIPTION).unwrap();
    let number = subscription.state().number;
    let gone = async {
        while !test.pubsub.busy(true, 1).is_empty() || test.messages(number) > 0 {
            tokio::task::yield_now().await;
        }
    };
    let gone = tokio::time::timeout(Duration::from_secs(10), gone).await;
    gone.expect("it stays in storage");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sequences_are_reserved_in_storage_before_they_are_used() {
    let home = tempfile::tempdir().unwrap();
    let storage = Storage::open(home.path()).unwrap();
    let test = Arc::new(TestPubSub::new(storage, None).await);
    let publishers = (0..20).map(|_| {
        let test = Arc::clone(&test);
        tokio::spawn(async move {
            for _ in 0..20 {
                test.publish(100).await;
            }
        })
    });
    for publisher in publishers.collect::<Vec<_>>() {
        publisher.await.unwrap();
    }
    let row = test.context.storage.get(Table::Topics, TOPIC.as_bytes());
    let row = wire::StoredTopic::decode(row.unwrap().unwrap()).unwrap();
    let topic = test.registry().topic(TOPIC).unwrap();
    let state = topic.state();
    assert_eq!(row.reserved, state.reserved);
    assert!(state.next <= row.reserved);
}

#[tokio::test]
async fn a_topic_throws_away_faster_than_it_gets() {
    let test = TestPubSub::new(Storage::in_memory(), Some(10 * MINUTE)).await;
    let topic = test.registry().topic(TOPIC).unwrap();
    let backlog = topic.state().backlog.unwrap();
    for _ in 0..3 {
        test.publish(100).await;
        test.context.clock.advance(11 * MINUTE);
    }
    assert_eq!(test.messages(backlog), 100);
}

#[tokio::test]
async fn a_message_that_was_sought_is_not_dead_lettered_afterwards() {
    let dead = "projects/p/topics/dead";
    let test = TestPubSub::with(|it| {
        it.dead_letter_policy = Some(wire::DeadLetterPolicy {
            dead_letter_topic: dead.into(),
            max_delivery_attempts: 5,
        });
    })
    .await;
    test.topic(dead, None).await;
    test.publish(1).await;
    let subscription = test.registry().subscription(SUBSCRIPTION).unwrap();
    let sequence = subscription.state().backlog.last().unwrap();
    // The worker meant to dead-letter it, and the seek to its snapshot came first.
    test.registry()
        .dead_letter(&subscription, &[sequence])
        .await;
    assert_eq!(test.pull().await, 1);
}

#[tokio::test]
async fn a_delivery_is_over_when_its_backlog_is() {
    for end in 0..5 {
        let test = TestPubSub::with(|it| it.retain_acked_messages = true).await;
        let snapshot = wire::CreateSnapshotRequest {
            name: SNAPSHOT.into(),
            subscription: SUBSCRIPTION.into(),
            ..Default::default()
        };
        test.registry().create_snapshot(snapshot).await.unwrap();
        test.publish(1).await;
        assert_eq!(test.pull().await, 1);
        assert!(!test.is_over());
        let (registry, subscription) = (test.registry(), SUBSCRIPTION.to_owned());
        let later: Time = test.context.clock.now().plus(MINUTE);
        match end {
            0 => {
                let request = wire::DeleteSubscriptionRequest { subscription };
                registry.delete_subscription(request).await.unwrap();
            }
            1 => {
                let request = wire::DetachSubscriptionRequest { subscription };
                registry.detach_subscription(request).await.unwrap();
            }
            2 => test.pubsub.reset().await.unwrap(),
            3 => test.seek(Target::Time(later.timestamp())).await,
            _ => test.seek(Target::Snapshot(SNAPSHOT.into())).await,
        }
        assert!(test.is_over(), "{end}");
    }
}
