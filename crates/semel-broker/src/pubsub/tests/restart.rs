use super::*;
use crate::faults::Faults;
use crate::handler::Handler;
use crate::proto::pubsub::seek_request::Target;
use crate::storage::Storage;
use prost_types::Timestamp;
use std::path::Path;

/// A service on a directory; waits for the one before it to let go of it.
async fn open(directory: &Path) -> Bed {
    let storage = loop {
        match Storage::open(directory) {
            Ok(storage) => break storage,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    let faults = Faults::new(1, Vec::new());
    let context = Context::open(storage, "http://127.0.0.1:1".into(), faults, 100).unwrap();
    let context = Arc::new(context);
    let pubsub = PubSub::open(Arc::clone(&context)).unwrap();
    Bed { context, pubsub }
}

#[tokio::test]
async fn a_restart_keeps_what_was_accepted_and_forgets_what_was_acknowledged() {
    let home = tempfile::tempdir().unwrap();
    let bed = open(home.path()).await;
    bed.topic(TOPIC).await;
    let change = |it: &mut wire::Subscription| it.ack_deadline_seconds = 33;
    bed.subscribe(SUBSCRIPTION, change).await.unwrap();
    let published = bed.publish(&["a", "b", "c"]).await;
    let received = bed.pull(SUBSCRIPTION).await;
    bed.ack(&received[1..2]).await.unwrap();
    drop(bed);

    let bed = open(home.path()).await;
    let request = wire::GetSubscriptionRequest {
        subscription: SUBSCRIPTION.into(),
    };
    let shown = bed.pubsub.get_subscription(Request::new(request)).await;
    assert_eq!(shown.unwrap().into_inner().ack_deadline_seconds, 33);
    let again = bed.pull(SUBSCRIPTION).await;
    assert_eq!(ids(&again), [published[0].clone(), published[2].clone()]);
    // An ack id of the life before still acknowledges.
    bed.ack(&received[..1]).await.unwrap();
    bed.ack(&again[1..]).await.unwrap();
    bed.idle(true).await;
    let fresh = bed.publish(&["d"]).await;
    assert!(!published.contains(&fresh[0]));
}

#[tokio::test]
async fn a_restart_goes_on_pushing_and_counting_attempts() {
    let home = tempfile::tempdir().unwrap();
    let handler = Handler::start().await;
    handler.answer_next(&[500, 500, 500]);
    let bed = open(home.path()).await;
    bed.topic(TOPIC).await;
    let change = |it: &mut wire::Subscription| {
        it.push_config.get_or_insert_default().push_endpoint = handler.url.clone();
        it.dead_letter_policy = Some(wire::DeadLetterPolicy {
            dead_letter_topic: TOPIC.into(),
            max_delivery_attempts: 100,
        });
    };
    bed.subscribe(SUBSCRIPTION, change).await.unwrap();
    bed.publish(&["a"]).await;
    handler.wait_for(3).await;
    bed.wait_history(|all| all.iter().filter(|it| it.took_us.is_some()).count() == 3)
        .await;
    drop(bed);

    let bed = open(home.path()).await;
    let last = handler.wait_for(4).await.pop().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&last.body).unwrap();
    assert_eq!(json["deliveryAttempt"], 4);
    bed.idle(false).await;
}

#[tokio::test]
async fn retained_messages_and_snapshots_survive() {
    let home = tempfile::tempdir().unwrap();
    let bed = open(home.path()).await;
    bed.topic(TOPIC).await;
    let change = |it: &mut wire::Subscription| it.retain_acked_messages = true;
    bed.subscribe(SUBSCRIPTION, change).await.unwrap();
    bed.publish(&["a"]).await;
    let snapshot = wire::CreateSnapshotRequest {
        name: "projects/p/snapshots/before".into(),
        subscription: SUBSCRIPTION.into(),
        ..Default::default()
    };
    let made = bed.pubsub.create_snapshot(Request::new(snapshot)).await;
    let snapshot = made.unwrap().into_inner().name;
    let received = bed.pull(SUBSCRIPTION).await;
    bed.ack(&received).await.unwrap();
    drop(bed);

    let bed = open(home.path()).await;
    assert!(bed.pull(SUBSCRIPTION).await.is_empty());
    for target in [
        Target::Time(Timestamp::default()),
        Target::Snapshot(snapshot),
    ] {
        let request = wire::SeekRequest {
            subscription: SUBSCRIPTION.into(),
            target: Some(target),
        };
        bed.pubsub.seek(Request::new(request)).await.unwrap();
        assert_eq!(ids(&bed.pull(SUBSCRIPTION).await), ids(&received));
    }
}

#[tokio::test]
async fn a_detached_subscription_stays_detached() {
    let home = tempfile::tempdir().unwrap();
    let bed = open(home.path()).await;
    bed.topic(TOPIC).await;
    bed.subscribe(SUBSCRIPTION, |_| {}).await.unwrap();
    let request = wire::DetachSubscriptionRequest {
        subscription: SUBSCRIPTION.into(),
    };
    bed.pubsub
        .detach_subscription(Request::new(request))
        .await
        .unwrap();
    drop(bed);

    let bed = open(home.path()).await;
    bed.publish(&["a"]).await;
    assert!(bed.pubsub.busy(true).is_empty());
    assert!(bed.try_pull(SUBSCRIPTION, true).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sequences_are_reserved_on_the_shelf_before_they_are_used() {
    use crate::storage::Table;
    use prost::Message;

    let home = tempfile::tempdir().unwrap();
    let bed = Arc::new(open(home.path()).await);
    bed.topic(TOPIC).await;
    let publishers: Vec<_> = (0..20)
        .map(|_| {
            let bed = Arc::clone(&bed);
            tokio::spawn(async move {
                for _ in 0..20 {
                    bed.publish(&["x"; 100]).await;
                }
            })
        })
        .collect();
    for publisher in publishers {
        publisher.await.unwrap();
    }
    let row = bed.context.storage.get(Table::Topics, TOPIC.as_bytes());
    let row = wire::StoredTopic::decode(row.unwrap().unwrap()).unwrap();
    let topic = bed.pubsub.registry.topic(TOPIC).unwrap();
    let state = topic.state();
    assert_eq!(row.reserved, state.reserved);
    assert!(state.next <= row.reserved);
}
