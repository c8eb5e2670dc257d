use super::*;

const SNAPSHOT: &str = "projects/p/snapshots/before";
const BEGINNING: &str = "1970-01-01T00:00:00Z";

impl Setup {
    async fn seek_time(&self, time: &str) {
        self.tell("seek", json!({ "time": time })).await.unwrap();
    }

    async fn seek_snapshot(&self) -> Answer {
        self.tell("seek", json!({ "snapshot": SNAPSHOT })).await
    }

    async fn snapshot(&self) -> Value {
        let request = json!({ "subscription": SUBSCRIPTION });
        self.put(&format!("/v1/{SNAPSHOT}"), request).await.unwrap()
    }

    /// The broker's time, so many seconds from now.
    async fn time_in(&self, seconds: i64) -> String {
        let moment = self.now_us().await + seconds * 1_000_000;
        jiff::Timestamp::from_microsecond(moment)
            .unwrap()
            .to_string()
    }

    async fn retain(&self, retention: Value) {
        let topic = json!({ "messageRetentionDuration": retention });
        let request = json!({ "topic": topic, "updateMask": "messageRetentionDuration" });
        self.patch(&format!("/v1/{TOPIC}"), request).await.unwrap();
    }
}

#[tokio::test]
async fn retained_messages_come_back_with_their_ids() {
    let setup = Setup::with(json!({ "retainAckedMessages": true })).await;
    let first = setup.publish(&["a"]).await;
    setup.advance(60).await;
    let between = setup.time_in(-30).await;
    let second = setup.publish(&["b"]).await;
    assert_eq!(setup.take_all().await.len(), 2);
    setup.idle(true).await;
    setup.seek_time(&between).await;
    assert_eq!(setup.take_all().await, second);
    setup.seek_time(BEGINNING).await;
    assert_eq!(setup.take_all().await, [first, second].concat());
}

#[tokio::test]
async fn a_seek_to_the_future_acknowledges_everything() {
    let setup = Setup::with(json!({})).await;
    setup.publish(&["a", "b"]).await;
    setup.seek_time(&setup.time_in(60).await).await;
    setup.idle(true).await;
    setup.seek_time(BEGINNING).await;
    assert!(setup.pull(SUBSCRIPTION).await.is_empty());
}

#[tokio::test]
async fn a_seek_to_a_snapshot_restores_it_and_what_came_after() {
    let setup = Setup::with(json!({})).await;
    let old = setup.publish(&["old"]).await;
    assert_eq!(setup.take_all().await, old);
    let open = setup.publish(&["open"]).await;
    assert_eq!(setup.snapshot().await["topic"], TOPIC);
    assert_eq!(setup.take_all().await, open);
    let later = setup.publish(&["later"]).await;
    assert_eq!(setup.take_all().await, later);
    setup.idle(true).await;
    let expected = [open, later].concat();
    for _ in 0..2 {
        setup.seek_snapshot().await.unwrap();
        assert_eq!(setup.take_all().await, expected);
    }
}

#[tokio::test]
async fn a_snapshot_expires_and_can_be_deleted() {
    let setup = Setup::with(json!({})).await;
    setup.snapshot().await;
    let list = || setup.get("/v1/projects/p/topics/orders/snapshots");
    assert_eq!(list().await.unwrap()["snapshots"], json!([SNAPSHOT]));
    setup.advance(8 * 86_400).await;
    assert_eq!(setup.seek_snapshot().await.unwrap_err().status, "NOT_FOUND");
    assert!(list().await.unwrap()["snapshots"].is_null());
    setup.snapshot().await;
    let path = format!("/v1/{SNAPSHOT}");
    setup.delete(&path).await.unwrap();
    assert_eq!(setup.get(&path).await.unwrap_err().status, "NOT_FOUND");
}

#[tokio::test]
async fn a_topic_that_retains_serves_seeks_of_any_subscription() {
    let setup = Setup::new(&[]).await;
    setup.retain(json!("3600s")).await;
    let before = setup.publish(&["before"]).await;
    let made = setup.subscribe(SUBSCRIPTION, json!({})).await.unwrap();
    assert_eq!(made["topicMessageRetentionDuration"], "3600s");
    assert!(setup.pull(SUBSCRIPTION).await.is_empty());
    setup.seek_time(BEGINNING).await;
    assert_eq!(setup.take_all().await, before);
    setup.advance(3600).await;
    let after = setup.publish(&["after"]).await;
    setup.seek_time(BEGINNING).await;
    assert_eq!(setup.take_all().await, after);
}

#[tokio::test]
async fn a_seek_to_the_snapshot_of_another_subscription_keeps_the_filter() {
    let setup = Setup::with(json!({})).await;
    let eu = "projects/p/subscriptions/eu-only";
    setup
        .subscribe(eu, json!({ "filter": "attributes:eu" }))
        .await
        .unwrap();
    setup.publish(&["everywhere"]).await;
    setup.snapshot().await;
    let path = format!("/v1/{eu}:seek");
    setup
        .post(&path, json!({ "snapshot": SNAPSHOT }))
        .await
        .unwrap();
    assert!(setup.pull(eu).await.is_empty());
}

#[tokio::test]
async fn what_is_retained_is_still_there_after_a_seek_to_a_snapshot() {
    let setup = Setup::with(json!({ "retainAckedMessages": true })).await;
    let before = setup.publish(&["a"]).await;
    assert_eq!(setup.take_all().await, before);
    setup.snapshot().await;
    let after = setup.publish(&["b"]).await;
    setup.seek_snapshot().await.unwrap();
    assert_eq!(setup.take_all().await, after);
    setup.seek_time(BEGINNING).await;
    assert_eq!(setup.take_all().await, [before, after].concat());
}

#[tokio::test]
async fn what_the_topic_retains_is_there_for_longer_than_a_subscription_would_keep_it() {
    let setup = Setup::new(&[]).await;
    setup.retain(json!("86400s")).await;
    let short = json!({ "messageRetentionDuration": "600s" });
    setup.subscribe(SUBSCRIPTION, short).await.unwrap();
    let published = setup.publish(&["a"]).await;
    assert_eq!(setup.take_all().await, published);
    setup.advance(3600).await;
    setup.seek_time(BEGINNING).await;
    assert_eq!(setup.take_all().await, published);
    // The topic changes its mind, and nobody has it any more.
    setup.publish(&["b"]).await;
    setup.advance(3600).await;
    assert_eq!(setup.busy(true).await, [SUBSCRIPTION]);
    setup.retain(Value::Null).await;
    setup.idle(true).await;
}
