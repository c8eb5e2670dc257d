use super::*;

const SNAPSHOT: &str = "projects/p/snapshots/before";
const BEGINNING: &str = "1970-01-01T00:00:00Z";

impl TestTopic {
    async fn seek_time(&self, time: &str) {
        self.tell("seek", json!({ "time": time })).await.unwrap();
    }

    async fn seek_snapshot(&self) -> ApiResult {
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
    let test = TestTopic::with(json!({ "retainAckedMessages": true })).await;
    let first = test.publish(&["a"]).await;
    test.advance(60).await;
    let between = test.time_in(-30).await;
    let second = test.publish(&["b"]).await;
    assert_eq!(test.take_all().await.len(), 2);
    test.idle(true).await;
    test.seek_time(&between).await;
    assert_eq!(test.take_all().await, second);
    test.seek_time(BEGINNING).await;
    assert_eq!(test.take_all().await, [first, second].concat());
}

#[tokio::test]
async fn a_seek_to_the_future_acknowledges_everything() {
    let test = TestTopic::with(json!({})).await;
    test.publish(&["a", "b"]).await;
    test.seek_time(&test.time_in(60).await).await;
    test.idle(true).await;
    test.seek_time(BEGINNING).await;
    assert!(test.pull(SUBSCRIPTION).await.is_empty());
}

#[tokio::test]
async fn a_seek_in_time_takes_leases_back_as_one_to_a_snapshot_does() {
    let test = TestTopic::with(json!({ "ackDeadlineSeconds": 600 })).await;
    let published = test.publish(&["a"]).await;
    test.snapshot().await;
    assert_eq!(test.pull(SUBSCRIPTION).await.len(), 1);
    assert!(test.pull(SUBSCRIPTION).await.is_empty());
    test.seek_time(BEGINNING).await;
    assert_eq!(test.pull(SUBSCRIPTION).await.len(), 1);
    test.seek_snapshot().await.unwrap();
    assert_eq!(test.take_all().await, published);
}

#[tokio::test]
async fn a_seek_to_a_snapshot_restores_it_and_what_came_after() {
    let test = TestTopic::with(json!({})).await;
    let old = test.publish(&["old"]).await;
    assert_eq!(test.take_all().await, old);
    let open = test.publish(&["open"]).await;
    assert_eq!(test.snapshot().await["topic"], TOPIC);
    assert_eq!(test.take_all().await, open);
    let later = test.publish(&["later"]).await;
    assert_eq!(test.take_all().await, later);
    test.idle(true).await;
    let expected = [open, later].concat();
    for _ in 0..2 {
        test.seek_snapshot().await.unwrap();
        assert_eq!(test.take_all().await, expected);
    }
}

#[tokio::test]
async fn a_snapshot_expires_and_can_be_deleted() {
    let test = TestTopic::with(json!({})).await;
    test.snapshot().await;
    let list = || test.get("/v1/projects/p/topics/orders/snapshots");
    assert_eq!(list().await.unwrap()["snapshots"], json!([SNAPSHOT]));
    test.advance(8 * 86_400).await;
    assert_eq!(test.seek_snapshot().await.unwrap_err().status, "NOT_FOUND");
    assert!(list().await.unwrap()["snapshots"].is_null());
    test.snapshot().await;
    let path = format!("/v1/{SNAPSHOT}");
    test.delete(&path).await.unwrap();
    assert_eq!(test.get(&path).await.unwrap_err().status, "NOT_FOUND");
}

#[tokio::test]
async fn a_snapshot_expires_later_than_now_and_within_a_week() {
    let test = TestTopic::with(json!({})).await;
    test.snapshot().await;
    let path = format!("/v1/{SNAPSHOT}");
    let update = async |seconds: i64| {
        let snapshot = json!({ "expireTime": test.time_in(seconds).await });
        let body = json!({ "snapshot": snapshot, "updateMask": "expireTime" });
        test.patch(&path, body).await
    };
    let day = 86_400;
    for seconds in [-1, 7 * day + 60, 365 * day] {
        let refused = update(seconds).await.unwrap_err();
        assert_eq!(refused.status, "INVALID_ARGUMENT", "{seconds}: {refused:?}");
    }
    let unset = json!({ "snapshot": {}, "updateMask": "expireTime" });
    assert!(test.patch(&path, unset).await.is_err());
    let updated = update(day).await.unwrap();
    assert_eq!(test.get(&path).await.unwrap(), updated);
    test.advance(2 * 86_400).await;
    assert_eq!(test.get(&path).await.unwrap_err().status, "NOT_FOUND");
}

#[tokio::test]
async fn a_topic_that_retains_serves_seeks_of_any_subscription() {
    let test = TestTopic::new(&[]).await;
    test.retain(json!("3600s")).await;
    let before = test.publish(&["before"]).await;
    let made = test.subscribe(SUBSCRIPTION, json!({})).await.unwrap();
    assert_eq!(made["topicMessageRetentionDuration"], "3600s");
    assert!(test.pull(SUBSCRIPTION).await.is_empty());
    test.seek_time(BEGINNING).await;
    assert_eq!(test.take_all().await, before);
    test.advance(3600).await;
    let after = test.publish(&["after"]).await;
    test.seek_time(BEGINNING).await;
    assert_eq!(test.take_all().await, after);
}

#[tokio::test]
async fn a_seek_to_the_snapshot_of_another_subscription_keeps_the_filter() {
    let test = TestTopic::with(json!({})).await;
    let eu = "projects/p/subscriptions/eu-only";
    ok(test.subscribe(eu, json!({ "filter": "attributes:eu" }))).await;
    test.publish(&["everywhere"]).await;
    test.snapshot().await;
    let path = format!("/v1/{eu}:seek");
    ok(test.post(&path, json!({ "snapshot": SNAPSHOT }))).await;
    assert!(test.pull(eu).await.is_empty());
}

#[tokio::test]
async fn what_is_retained_is_still_there_after_a_seek_to_a_snapshot() {
    let test = TestTopic::with(json!({ "retainAckedMessages": true })).await;
    let before = test.publish(&["a"]).await;
    assert_eq!(test.take_all().await, before);
    test.snapshot().await;
    let after = test.publish(&["b"]).await;
    test.seek_snapshot().await.unwrap();
    assert_eq!(test.take_all().await, after);
    test.seek_time(BEGINNING).await;
    assert_eq!(test.take_all().await, [before, after].concat());
}

#[tokio::test]
async fn what_the_topic_retains_is_there_for_longer_than_a_subscription_would_keep_it() {
    let test = TestTopic::new(&[]).await;
    test.retain(json!("86400s")).await;
    let short = json!({ "messageRetentionDuration": "600s" });
    test.subscribe(SUBSCRIPTION, short).await.unwrap();
    let published = test.publish(&["a"]).await;
    assert_eq!(test.take_all().await, published);
    test.advance(3600).await;
    test.seek_time(BEGINNING).await;
    assert_eq!(test.take_all().await, published);
    // The topic changes its mind, and nobody has it any more.
    test.publish(&["b"]).await;
    test.advance(3600).await;
    assert_eq!(test.busy(true).await, [SUBSCRIPTION]);
    test.retain(Value::Null).await;
    test.idle(true).await;
}

#[tokio::test]
async fn acknowledgements_of_before_a_seek_do_not_count() {
    let test = TestTopic::new(&[]).await;
    test.retain(json!("3600s")).await;
    test.subscribe(SUBSCRIPTION, json!({})).await.unwrap();
    let published = test.publish(&["a", "b"]).await;
    let received = test.pull(SUBSCRIPTION).await;
    // One is known to the topic only, the other is with its receiver.
    test.ack(&received[..1]).await.unwrap();
    test.seek_time(BEGINNING).await;
    test.ack(&received).await.unwrap();
    assert_eq!(test.take_all().await, published);
    test.idle(true).await;
}
