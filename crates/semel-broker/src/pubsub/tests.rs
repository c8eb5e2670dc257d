//! What only the registry and storage show.

use super::PubSub;
use super::registry::Registry;
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
struct Setup {
    context: Arc<Context>,
    pubsub: PubSub,
}

// === impl Setup ===

impl Setup {
    async fn new(storage: Storage, retention: Option<Duration>) -> Self {
        let context = Context::in_test(storage, &[]);
        let pubsub = PubSub::open(Arc::clone(&context)).unwrap();
        let setup = Self { context, pubsub };
        setup.topic(TOPIC, retention).await;
        setup
    }

    /// With a subscription, as `change` wants it.
    async fn with(change: impl FnOnce(&mut wire::Subscription)) -> Self {
        let setup = Self::new(Storage::in_memory(), None).await;
        let mut subscription = wire::Subscription {
            name: SUBSCRIPTION.into(),
            topic: TOPIC.into(),
            ..Default::default()
        };
        change(&mut subscription);
        let created = setup.registry().create_subscription(subscription).await;
        created.unwrap();
        setup
    }

    fn registry(&self) -> Arc<Registry> {
        Arc::clone(&self.pubsub.registry)
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
    let setup = Setup::with(|it| it.message_retention_duration = retention).await;
    setup.publish(1).await;
    setup.context.clock.advance(10 * MINUTE);
    let subscription = setup.registry().subscription(SUBSCRIPTION).unwrap();
    let number = subscription.state().number;
    let gone = async {
        while !setup.pubsub.busy(true).is_empty() || setup.messages(number) > 0 {
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
    let setup = Arc::new(Setup::new(storage, None).await);
    let publishers = (0..20).map(|_| {
        let setup = Arc::clone(&setup);
        tokio::spawn(async move {
            for _ in 0..20 {
                setup.publish(100).await;
            }
        })
    });
    for publisher in publishers.collect::<Vec<_>>() {
        publisher.await.unwrap();
    }
    let row = setup.context.storage.get(Table::Topics, TOPIC.as_bytes());
    let row = wire::StoredTopic::decode(row.unwrap().unwrap()).unwrap();
    let topic = setup.registry().topic(TOPIC).unwrap();
    let state = topic.state();
    assert_eq!(row.reserved, state.reserved);
    assert!(state.next <= row.reserved);
}

#[tokio::test]
async fn a_topic_throws_away_faster_than_it_gets() {
    let setup = Setup::new(Storage::in_memory(), Some(10 * MINUTE)).await;
    let topic = setup.registry().topic(TOPIC).unwrap();
    let backlog = topic.state().backlog.unwrap();
    for _ in 0..3 {
        setup.publish(100).await;
        setup.context.clock.advance(11 * MINUTE);
    }
    assert_eq!(setup.messages(backlog), 100);
}

#[tokio::test]
async fn a_message_that_was_sought_is_not_dead_lettered_afterwards() {
    let dead = "projects/p/topics/dead";
    let setup = Setup::with(|it| {
        it.dead_letter_policy = Some(wire::DeadLetterPolicy {
            dead_letter_topic: dead.into(),
            max_delivery_attempts: 5,
        });
    })
    .await;
    setup.topic(dead, None).await;
    setup.publish(1).await;
    let subscription = setup.registry().subscription(SUBSCRIPTION).unwrap();
    let sequence = subscription.state().backlog.last().unwrap();
    // The worker meant to dead-letter it, and the seek to its snapshot came first.
    setup
        .registry()
        .dead_letter(&subscription, &[sequence])
        .await;
    assert_eq!(setup.pull().await, 1);
}

#[tokio::test]
async fn a_delivery_is_over_when_its_backlog_is() {
    for end in 0..5 {
        let setup = Setup::with(|it| it.retain_acked_messages = true).await;
        let snapshot = wire::CreateSnapshotRequest {
            name: SNAPSHOT.into(),
            subscription: SUBSCRIPTION.into(),
            ..Default::default()
        };
        setup.registry().create_snapshot(snapshot).await.unwrap();
        setup.publish(1).await;
        assert_eq!(setup.pull().await, 1);
        assert!(!setup.is_over());
        let (registry, name) = (setup.registry(), SUBSCRIPTION.to_owned());
        let later: Time = setup.context.clock.now().plus(MINUTE);
        match end {
            0 => registry.delete_subscription(name).await.unwrap(),
            1 => registry.detach(name).await.unwrap(),
            2 => setup.pubsub.reset().await.unwrap(),
            3 => setup.seek(Target::Time(later.timestamp())).await,
            _ => setup.seek(Target::Snapshot(SNAPSHOT.into())).await,
        }
        assert!(setup.is_over(), "{end}");
    }
}
