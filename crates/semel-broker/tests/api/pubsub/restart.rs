use super::*;

/// A broker in a directory, with the topic and a subscription that has these settings.
async fn begin(directory: &Path, settings: Value) -> TestTopic {
    let test = TestTopic::in_directory(directory).await;
    test.topic(TOPIC, json!({})).await;
    test.subscribe(SUBSCRIPTION, settings).await.unwrap();
    test
}

impl TestTopic {
    async fn restarted(self, directory: &Path) -> Self {
        self.0.stop().await;
        Self::in_directory(directory).await
    }
}

#[tokio::test]
async fn a_restart_keeps_what_was_accepted_and_forgets_what_was_acknowledged() {
    let home = tempfile::tempdir().unwrap();
    let test = begin(home.path(), json!({ "ackDeadlineSeconds": 33 })).await;
    let published = test.publish(&["a", "b", "c"]).await;
    let received = test.pull(SUBSCRIPTION).await;
    test.ack(&received[1..2]).await.unwrap();

    let test = test.restarted(home.path()).await;
    assert_eq!(test.subscription().await["ackDeadlineSeconds"], 33);
    let again = test.pull(SUBSCRIPTION).await;
    assert_eq!(ids(&again), [published[0].clone(), published[2].clone()]);
    // An ack id of the life before still acknowledges.
    test.ack(&received[..1]).await.unwrap();
    test.ack(&again[1..]).await.unwrap();
    test.idle(true).await;
    let fresh = test.publish(&["d"]).await;
    assert!(!published.contains(&fresh[0]));
}

#[tokio::test]
async fn a_restart_goes_on_pushing_and_counting_attempts() {
    let home = tempfile::tempdir().unwrap();
    let handler = Handler::start().await;
    handler.answer_next(&[500, 500, 500]);
    let push = json!({ "pushConfig": { "pushEndpoint": handler.url } });
    let test = begin(home.path(), merged(push, dead_letters(TOPIC, 100))).await;
    test.publish(&["a"]).await;
    handler.wait_for(3).await;
    test.until_results(|all| all.iter().filter(|it| *it == "answered").count() == 3)
        .await;

    let test = test.restarted(home.path()).await;
    let last = handler.wait_for(4).await.pop().unwrap();
    let json: Value = serde_json::from_slice(&last.body).unwrap();
    assert_eq!(json["deliveryAttempt"], 4);
    test.idle(false).await;
}

#[tokio::test]
async fn retained_messages_and_snapshots_survive() {
    let home = tempfile::tempdir().unwrap();
    let test = begin(home.path(), json!({ "retainAckedMessages": true })).await;
    test.publish(&["a"]).await;
    let snapshot = "projects/p/snapshots/before";
    let request = json!({ "subscription": SUBSCRIPTION });
    test.put(&format!("/v1/{snapshot}"), request).await.unwrap();
    let received = test.pull(SUBSCRIPTION).await;
    test.ack(&received).await.unwrap();

    let test = test.restarted(home.path()).await;
    assert!(test.pull(SUBSCRIPTION).await.is_empty());
    for target in [
        json!({ "time": "1970-01-01T00:00:00Z" }),
        json!({ "snapshot": snapshot }),
    ] {
        test.tell("seek", target).await.unwrap();
        assert_eq!(ids(&test.pull(SUBSCRIPTION).await), ids(&received));
    }
}

#[tokio::test]
async fn a_detached_subscription_stays_detached() {
    let home = tempfile::tempdir().unwrap();
    let test = begin(home.path(), json!({})).await;
    test.tell("detach", json!({})).await.unwrap();

    let test = test.restarted(home.path()).await;
    test.publish(&["a"]).await;
    assert!(test.busy(true).await.is_empty());
    assert!(test.try_pull(SUBSCRIPTION, true).await.is_err());
}
