//! What only the registry and storage show.

use super::PubSub;
use super::registry::Registry;
use crate::admin::Service;
use crate::context::Context;
use crate::history::HistoryFilter;
use crate::proto::pubsub as wire;
use crate::storage::{Batch, Storage, Table};
use prost::Message;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tonic::Status;

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
    async fn new(storage: Storage) -> Self {
        Self::with_topic(storage, json!({ "name": TOPIC })).await
    }

    async fn with_topic(storage: Storage, topic: Value) -> Self {
        let context = Context::in_test(storage, &[]);
        let pubsub = PubSub::open(Arc::clone(&context)).unwrap();
        let test = Self { context, pubsub };
        test.call("CreateTopic", topic).await;
        test
    }

    /// With a subscription that has this setting.
    async fn with(setting: &str, value: Value) -> Self {
        let test = Self::new(Storage::in_memory()).await;
        let subscription = json!({ "name": SUBSCRIPTION, "topic": TOPIC, setting: value });
        test.call("CreateSubscription", subscription).await;
        test
    }

    async fn call(&self, method: &str, request: Value) -> Value {
        self.try_call(method, request).await.unwrap()
    }

    async fn try_call(&self, method: &str, request: Value) -> Result<Value, Status> {
        let methods = self.pubsub.methods();
        let mut methods = methods.iter();
        let methods = methods.find(|it| it.unary.iter().any(|it| it.descriptor.name() == method));
        methods.unwrap().call(method, request).await
    }

    fn registry(&self) -> Arc<Registry> {
        self.pubsub.registry()
    }

    async fn publish(&self, count: usize) {
        let messages = vec![json!({ "data": "eA==" }); count];
        let request = json!({ "topic": TOPIC, "messages": messages });
        self.call("Publish", request).await;
    }

    /// The message of the refusal, if it is one.
    async fn publish_data(&self, data: &str) -> Result<(), String> {
        let request = json!({ "topic": TOPIC, "messages": [{ "data": data }] });
        let published = self.try_call("Publish", request).await;
        published
            .map(drop)
            .map_err(|status| status.message().to_owned())
    }

    async fn pull(&self) -> usize {
        let request =
            json!({ "subscription": SUBSCRIPTION, "returnImmediately": true, "maxMessages": 100 });
        let pulled = self.call("Pull", request).await;
        pulled["receivedMessages"].as_array().map_or(0, Vec::len)
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
    let test = TestPubSub::with("messageRetentionDuration", json!("600s")).await;
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
    let test = Arc::new(TestPubSub::new(storage).await);
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
    let topic = json!({ "name": TOPIC, "messageRetentionDuration": "600s" });
    let test = TestPubSub::with_topic(Storage::in_memory(), topic).await;
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
    let policy = json!({ "deadLetterTopic": dead, "maxDeliveryAttempts": 5 });
    let test = TestPubSub::with("deadLetterPolicy", policy).await;
    test.call("CreateTopic", json!({ "name": dead })).await;
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
    let subscription = json!({ "subscription": SUBSCRIPTION });
    let to = |name: &str, place: &str| json!({ "subscription": SUBSCRIPTION, name: place });
    for (end, request) in [
        ("DeleteSubscription", subscription.clone()),
        ("DetachSubscription", subscription),
        ("Seek", to("time", "2999-01-01T00:00:00Z")),
        ("Seek", to("snapshot", SNAPSHOT)),
        ("reset", Value::Null),
    ] {
        let test = TestPubSub::with("retainAckedMessages", json!(true)).await;
        test.call("CreateSnapshot", to("name", SNAPSHOT)).await;
        test.publish(1).await;
        assert_eq!(test.pull().await, 1);
        assert!(!test.is_over());
        match end {
            "reset" => test.pubsub.reset().await.unwrap(),
            method => drop(test.call(method, request).await),
        }
        assert!(test.is_over(), "{end}");
    }
}

#[tokio::test]
async fn a_revision_that_this_build_refuses_is_named_where_it_is_needed() {
    let name = "projects/p/schemas/state";
    let revision = |id: &str, definition: &str| wire::Schema {
        name: name.into(),
        r#type: wire::schema::Type::Avro.into(),
        definition: definition.into(),
        revision_id: id.into(),
        ..wire::Schema::default()
    };
    let stored = wire::StoredSchema {
        revisions: vec![revision("0a", "\"later\""), revision("0b", "\"int\"")],
        order: vec!["0a".into(), "0b".into()],
    };
    let storage = Storage::in_memory();
    let mut batch = Batch::default();
    batch.put(Table::Schemas, name.as_bytes(), stored.encode_to_vec());
    storage.commit(batch).await.unwrap();
    let settings = json!({ "schema": name, "encoding": "JSON" });
    let topic = json!({ "name": TOPIC, "schemaSettings": settings });
    let test = TestPubSub::with_topic(storage, topic).await;
    test.publish_data("MQ==").await.unwrap();
    let refused = test.publish_data("eA==").await.unwrap_err();
    let why = "this build cannot read revision 0a (no type is called later): delete it";
    assert!(refused.contains(why), "{refused}");
    let gone = json!({ "name": format!("{name}@0a") });
    test.call("DeleteSchemaRevision", gone).await;
    let refused = test.publish_data("eA==").await.unwrap_err();
    assert!(!refused.contains("this build"), "{refused}");
}
