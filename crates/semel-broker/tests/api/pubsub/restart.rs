use super::*;

/// A broker in a directory, with the topic and a subscription that has these settings.
async fn begin(directory: &Path, settings: Value) -> Setup {
    let setup = Setup::in_directory(directory).await;
    setup.topic(TOPIC, json!({})).await;
    setup.subscribe(SUBSCRIPTION, settings).await.unwrap();
    setup
}

impl Setup {
    async fn restarted(self, directory: &Path) -> Self {
        self.0.stop().await;
        Self::in_directory(directory).await
    }
}

#[tokio::test]
async fn a_restart_keeps_what_was_accepted_and_forgets_what_was_acknowledged() {
    let home = tempfile::tempdir().unwrap();
    let setup = begin(home.path(), json!({ "ackDeadlineSeconds": 33 })).await;
    let published = setup.publish(&["a", "b", "c"]).await;
    let received = setup.pull(SUBSCRIPTION).await;
    setup.ack(&received[1..2]).await.unwrap();

    let setup = setup.restarted(home.path()).await;
    assert_eq!(setup.subscription().await["ackDeadlineSeconds"], 33);
    let again = setup.pull(SUBSCRIPTION).await;
    assert_eq!(ids(&again), [published[0].clone(), published[2].clone()]);
    // An ack id of the life before still acknowledges.
    setup.ack(&received[..1]).await.unwrap();
    setup.ack(&again[1..]).await.unwrap();
    setup.idle(true).await;
    let fresh = setup.publish(&["d"]).await;
    assert!(!published.contains(&fresh[0]));
}

#[tokio::test]
async fn a_restart_goes_on_pushing_and_counting_attempts() {
    let home = tempfile::tempdir().unwrap();
    let handler = Handler::start().await;
    handler.answer_next(&[500, 500, 500]);
    let push = json!({ "pushConfig": { "pushEndpoint": handler.url } });
    let setup = begin(home.path(), merged(push, dead_letters(TOPIC, 100))).await;
    setup.publish(&["a"]).await;
    handler.wait_for(3).await;
    setup
        .until_results(|all| all.iter().filter(|it| *it == "answered").count() == 3)
        .await;

    let setup = setup.restarted(home.path()).await;
    let last = handler.wait_for(4).await.pop().unwrap();
    let json: Value = serde_json::from_slice(&last.body).unwrap();
    assert_eq!(json["deliveryAttempt"], 4);
    setup.idle(false).await;
}

#[tokio::test]
async fn retained_messages_and_snapshots_survive() {
    let home = tempfile::tempdir().unwrap();
    let setup = begin(home.path(), json!({ "retainAckedMessages": true })).await;
    setup.publish(&["a"]).await;
    let snapshot = "projects/p/snapshots/before";
    let request = json!({ "subscription": SUBSCRIPTION });
    setup
        .put(&format!("/v1/{snapshot}"), request)
        .await
        .unwrap();
    let received = setup.pull(SUBSCRIPTION).await;
    setup.ack(&received).await.unwrap();

    let setup = setup.restarted(home.path()).await;
    assert!(setup.pull(SUBSCRIPTION).await.is_empty());
    for target in [
        json!({ "time": "1970-01-01T00:00:00Z" }),
        json!({ "snapshot": snapshot }),
    ] {
        setup.tell("seek", target).await.unwrap();
        assert_eq!(ids(&setup.pull(SUBSCRIPTION).await), ids(&received));
    }
}

#[tokio::test]
async fn a_detached_subscription_stays_detached() {
    let home = tempfile::tempdir().unwrap();
    let setup = begin(home.path(), json!({})).await;
    setup.tell("detach", json!({})).await.unwrap();

    let setup = setup.restarted(home.path()).await;
    setup.publish(&["a"]).await;
    assert!(setup.busy(true).await.is_empty());
    assert!(setup.try_pull(SUBSCRIPTION, true).await.is_err());
}
