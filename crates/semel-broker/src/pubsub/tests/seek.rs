use super::*;
use crate::clock::Time;
use crate::proto::pubsub::seek_request::Target;
use tonic::Code;

const SNAPSHOT: &str = "projects/p/snapshots/before";

impl Bed {
    async fn seek(&self, target: Target) -> Result<(), Status> {
        let request = wire::SeekRequest {
            subscription: SUBSCRIPTION.into(),
            target: Some(target),
        };
        self.pubsub.seek(Request::new(request)).await?;
        Ok(())
    }

    async fn seek_time(&self, to: Time) {
        self.seek(Target::Time(to.timestamp())).await.unwrap();
    }

    async fn snapshot(&self) -> wire::Snapshot {
        let request = wire::CreateSnapshotRequest {
            name: SNAPSHOT.into(),
            subscription: SUBSCRIPTION.into(),
            ..Default::default()
        };
        let made = self.pubsub.create_snapshot(Request::new(request)).await;
        made.unwrap().into_inner()
    }

    async fn take_all(&self) -> Vec<String> {
        let received = self.pull(SUBSCRIPTION).await;
        self.ack(&received).await.unwrap();
        ids(&received)
    }
}

#[tokio::test]
async fn retained_messages_come_back_with_their_ids() {
    let bed = Bed::with(&[], |it| it.retain_acked_messages = true).await;
    let first = bed.publish(&["a"]).await;
    bed.advance(60);
    let between = bed.context.clock.now().minus(Duration::from_secs(30));
    let second = bed.publish(&["b"]).await;
    assert_eq!(bed.take_all().await.len(), 2);
    bed.idle(true).await;
    bed.seek_time(between).await;
    assert_eq!(bed.take_all().await, second);
    bed.seek_time(Time(0)).await;
    assert_eq!(bed.take_all().await, [first, second].concat());
}

#[tokio::test]
async fn a_seek_to_the_future_acknowledges_everything() {
    let bed = Bed::with(&[], |_| {}).await;
    bed.publish(&["a", "b"]).await;
    bed.seek_time(bed.context.clock.now().plus(Duration::from_secs(60)))
        .await;
    bed.idle(true).await;
    bed.seek_time(Time(0)).await;
    assert!(bed.pull(SUBSCRIPTION).await.is_empty());
}

#[tokio::test]
async fn a_seek_to_a_snapshot_restores_it_and_what_came_after() {
    let bed = Bed::with(&[], |_| {}).await;
    let old = bed.publish(&["old"]).await;
    assert_eq!(bed.take_all().await, old);
    let open = bed.publish(&["open"]).await;
    let made = bed.snapshot().await;
    assert_eq!(made.topic, TOPIC);
    assert_eq!(bed.take_all().await, open);
    let later = bed.publish(&["later"]).await;
    assert_eq!(bed.take_all().await, later);
    bed.idle(true).await;
    let expected = [open, later].concat();
    for _ in 0..2 {
        bed.seek(Target::Snapshot(SNAPSHOT.into())).await.unwrap();
        assert_eq!(bed.take_all().await, expected);
    }
}

#[tokio::test]
async fn a_snapshot_expires_and_can_be_deleted() {
    let bed = Bed::with(&[], |_| {}).await;
    bed.snapshot().await;
    let list = wire::ListTopicSnapshotsRequest {
        topic: TOPIC.into(),
        ..Default::default()
    };
    let listed = bed
        .pubsub
        .list_topic_snapshots(Request::new(list.clone()))
        .await;
    assert_eq!(listed.unwrap().into_inner().snapshots, [SNAPSHOT]);
    bed.advance(8 * 24 * 3600);
    let refused = bed
        .seek(Target::Snapshot(SNAPSHOT.into()))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    let listed = bed.pubsub.list_topic_snapshots(Request::new(list)).await;
    assert!(listed.unwrap().into_inner().snapshots.is_empty());
    bed.snapshot().await;
    let delete = wire::DeleteSnapshotRequest {
        snapshot: SNAPSHOT.into(),
    };
    bed.pubsub
        .delete_snapshot(Request::new(delete))
        .await
        .unwrap();
    let get = wire::GetSnapshotRequest {
        snapshot: SNAPSHOT.into(),
    };
    let refused = bed
        .pubsub
        .get_snapshot(Request::new(get))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
}

#[tokio::test]
async fn a_topic_that_retains_serves_seeks_of_any_subscription() {
    let bed = Bed::new(&[]).await;
    let update = wire::UpdateTopicRequest {
        topic: Some(wire::Topic {
            name: TOPIC.into(),
            message_retention_duration: span(3600),
            ..Default::default()
        }),
        update_mask: Some(prost_types::FieldMask {
            paths: vec!["message_retention_duration".into()],
        }),
    };
    bed.pubsub.update_topic(Request::new(update)).await.unwrap();
    let before = bed.publish(&["before"]).await;
    let made = bed.subscribe(SUBSCRIPTION, |_| {}).await.unwrap();
    assert_eq!(made.topic_message_retention_duration, span(3600));
    assert!(bed.pull(SUBSCRIPTION).await.is_empty());
    bed.seek_time(Time(0)).await;
    assert_eq!(bed.take_all().await, before);
    bed.advance(3600);
    let after = bed.publish(&["after"]).await;
    bed.seek_time(Time(0)).await;
    assert_eq!(bed.take_all().await, after);
}

#[tokio::test]
async fn a_seek_to_the_snapshot_of_another_subscription_keeps_the_filter() {
    let bed = Bed::with(&[], |_| {}).await;
    let eu = "projects/p/subscriptions/eu-only";
    let filter = |it: &mut wire::Subscription| it.filter = "attributes:eu".into();
    bed.subscribe(eu, filter).await.unwrap();
    bed.publish(&["everywhere"]).await;
    bed.snapshot().await;
    let request = wire::SeekRequest {
        subscription: eu.into(),
        target: Some(Target::Snapshot(SNAPSHOT.into())),
    };
    bed.pubsub.seek(Request::new(request)).await.unwrap();
    assert!(bed.pull(eu).await.is_empty());
}

#[tokio::test]
async fn what_is_retained_is_still_there_after_a_seek_to_a_snapshot() {
    let bed = Bed::with(&[], |it| it.retain_acked_messages = true).await;
    let before = bed.publish(&["a"]).await;
    assert_eq!(bed.take_all().await, before);
    bed.snapshot().await;
    let after = bed.publish(&["b"]).await;
    bed.seek(Target::Snapshot(SNAPSHOT.into())).await.unwrap();
    assert_eq!(bed.take_all().await, after);
    bed.seek_time(Time(0)).await;
    assert_eq!(bed.take_all().await, [before, after].concat());
}

async fn retaining_topic(seconds: i64) -> Bed {
    let context = Context::for_test(&[]);
    let pubsub = PubSub::open(Arc::clone(&context)).unwrap();
    let topic = wire::Topic {
        name: TOPIC.into(),
        message_retention_duration: span(seconds),
        ..Default::default()
    };
    pubsub.create_topic(Request::new(topic)).await.unwrap();
    Bed { context, pubsub }
}

#[tokio::test]
async fn what_the_topic_retains_is_there_for_longer_than_a_subscription_would_keep_it() {
    let bed = retaining_topic(24 * 3600).await;
    let short = |it: &mut wire::Subscription| it.message_retention_duration = span(600);
    bed.subscribe(SUBSCRIPTION, short).await.unwrap();
    let published = bed.publish(&["a"]).await;
    assert_eq!(bed.take_all().await, published);
    bed.advance(3600);
    bed.seek_time(Time(0)).await;
    assert_eq!(bed.take_all().await, published);
    // The topic changes its mind, and nobody has it any more.
    let request = wire::UpdateTopicRequest {
        topic: Some(wire::Topic {
            name: TOPIC.into(),
            ..Default::default()
        }),
        update_mask: Some(prost_types::FieldMask {
            paths: vec!["message_retention_duration".into()],
        }),
    };
    bed.publish(&["b"]).await;
    bed.advance(3600);
    assert_eq!(bed.pubsub.busy(true), [SUBSCRIPTION]);
    bed.pubsub
        .update_topic(Request::new(request))
        .await
        .unwrap();
    bed.idle(true).await;
}

#[tokio::test]
async fn a_topic_throws_away_faster_than_it_gets() {
    let bed = retaining_topic(600).await;
    let topic = bed.pubsub.registry.topic(TOPIC).unwrap();
    let kept = topic.state().backlog.unwrap().to_be_bytes();
    let texts = ["x"; 100];
    for _ in 0..3 {
        bed.publish(&texts).await;
        bed.advance(601);
    }
    let storage = &bed.context.storage;
    let rows = storage.scan(crate::storage::Table::Messages, &kept, None, 1000);
    assert_eq!(rows.unwrap().len(), 100);
}

#[tokio::test]
async fn a_message_that_was_sought_is_not_buried_afterwards() {
    let dead = "projects/p/topics/dead";
    let bed = Bed::with(&[], |it| {
        it.dead_letter_policy = Some(wire::DeadLetterPolicy {
            dead_letter_topic: dead.into(),
            max_delivery_attempts: 5,
        });
    })
    .await;
    bed.topic(dead).await;
    bed.publish(&["a"]).await;
    let registry = &bed.pubsub.registry;
    let subscription = registry.subscription(SUBSCRIPTION).unwrap();
    let sequence = subscription.state().backlog.last().unwrap();
    // The worker meant to dead-letter it, and the seek to its snapshot came first.
    registry.dead_letter(&subscription, &[sequence]).await;
    assert_eq!(texts(&bed.pull(SUBSCRIPTION).await), ["a"]);
}

#[tokio::test]
async fn a_delivery_is_over_when_its_backlog_is() {
    for end in 0..5 {
        let bed = Bed::with(&[], |it| it.retain_acked_messages = true).await;
        bed.snapshot().await;
        bed.publish(&["a"]).await;
        bed.pull(SUBSCRIPTION).await;
        assert_eq!(bed.history()[0].took_us, None);
        let name = SUBSCRIPTION.to_owned();
        let registry = Arc::clone(&bed.pubsub.registry);
        let later = bed.context.clock.now().plus(Duration::from_secs(60));
        match end {
            0 => registry.delete_subscription(name).await.unwrap(),
            1 => registry.detach(name).await.unwrap(),
            2 => bed.pubsub.reset().await.unwrap(),
            3 => bed.seek_time(later).await,
            _ => bed.seek(Target::Snapshot(SNAPSHOT.into())).await.unwrap(),
        }
        assert!(bed.history()[0].took_us.is_some(), "{end}");
    }
}
