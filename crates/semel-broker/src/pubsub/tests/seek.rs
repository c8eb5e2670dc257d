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
    let between = bed.world.clock.now().minus(Duration::from_secs(30));
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
    bed.seek_time(bed.world.clock.now().plus(Duration::from_secs(60)))
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
