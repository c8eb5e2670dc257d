use super::*;

#[tokio::test]
async fn a_message_is_received_until_it_is_acknowledged() {
    let setup = Setup::with(json!({})).await;
    let published = setup.publish(&["a", "b"]).await;
    let first = setup.pull(SUBSCRIPTION).await;
    assert_eq!(texts(&first), ["a", "b"]);
    assert_eq!(ids(&first), published);
    assert!(first[0]["deliveryAttempt"].is_null());
    assert!(setup.pull(SUBSCRIPTION).await.is_empty());
    setup.advance(11).await;
    let again = setup.wait_pull(SUBSCRIPTION).await;
    assert_eq!(ids(&again), published);
    setup.ack(&again[..1]).await.unwrap();
    setup.modify(&again[1..], 0).await.unwrap();
    let third = setup.pull(SUBSCRIPTION).await;
    assert_eq!(texts(&third), ["b"]);
    setup.ack(&third).await.unwrap();
    setup.idle(true).await;
    let ends = [
        "timed-out",
        "timed-out",
        "acknowledged",
        "refused",
        "acknowledged",
    ];
    assert_eq!(setup.results().await, ends);
    assert!(
        setup
            .history()
            .await
            .iter()
            .all(|it| it["target"] == "pull")
    );
}

#[tokio::test]
async fn a_pull_waits_for_the_first_message() {
    let setup = Setup::with(json!({})).await;
    let publish = async {
        tokio::task::yield_now().await;
        setup.publish(&["a"]).await
    };
    let (pulled, _) = tokio::join!(setup.wait_pull(SUBSCRIPTION), publish);
    assert_eq!(texts(&pulled), ["a"]);
}

#[tokio::test]
async fn every_subscription_gets_its_copy_if_it_wants_it() {
    let setup = Setup::with(json!({})).await;
    let eu = "projects/p/subscriptions/eu-only";
    let filter = json!({ "filter": "attributes.region = \"eu\"" });
    setup.subscribe(eu, filter).await.unwrap();
    let message =
        |region: &str| json!({ "data": base64(region), "attributes": { "region": region } });
    let messages = json!([message("eu"), message("us")]);
    setup.publish_messages(messages).await.unwrap();
    assert_eq!(texts(&setup.pull(SUBSCRIPTION).await), ["eu", "us"]);
    assert_eq!(texts(&setup.pull(eu).await), ["eu"]);
}

#[tokio::test]
async fn messages_of_one_key_come_in_order() {
    let setup = Setup::with(json!({ "enableMessageOrdering": true })).await;
    setup.publish_keyed(&["a1", "a2"], "a").await;
    setup.publish_keyed(&["b1"], "b").await;
    let first = setup.pull(SUBSCRIPTION).await;
    assert_eq!(texts(&first), ["a1", "a2", "b1"]);
    setup.publish_keyed(&["a3"], "a").await;
    assert!(setup.pull(SUBSCRIPTION).await.is_empty());
    setup.modify(&first[..1], 0).await.unwrap();
    // It comes back after the first, also when it is acknowledged in between.
    setup.ack(&first[1..2]).await.unwrap();
    let again = setup.pull(SUBSCRIPTION).await;
    assert_eq!(texts(&again), ["a1", "a2", "a3"]);
}

#[tokio::test]
async fn with_exactly_once_a_stale_ack_id_fails_and_is_named() {
    let setup = Setup::with(json!({ "enableExactlyOnceDelivery": true })).await;
    setup.publish(&["a"]).await;
    let first = setup.pull(SUBSCRIPTION).await;
    setup.advance(11).await;
    let second = setup.wait_pull(SUBSCRIPTION).await;
    let refused = setup.ack(&first).await.unwrap_err();
    assert_eq!(refused.status, "INVALID_ARGUMENT");
    let named = &refused.details[0]["metadata"][&ack_ids(&first)[0]];
    assert_eq!(named, "PERMANENT_FAILURE_INVALID_ACK_ID");
    let refused = setup.modify(&first, 30).await.unwrap_err();
    assert_eq!(refused.status, "INVALID_ARGUMENT");
    setup.ack(&second).await.unwrap();
    setup.idle(true).await;
}

#[tokio::test]
async fn a_malformed_ack_id_is_refused() {
    let setup = Setup::with(json!({})).await;
    for ids in [json!(["nonsense"]), json!([])] {
        let refused = setup.tell("acknowledge", json!({ "ackIds": ids })).await;
        assert_eq!(refused.unwrap_err().status, "INVALID_ARGUMENT", "{ids}");
    }
}

#[tokio::test]
async fn a_message_refused_too_often_goes_to_the_dead_letter_topic() {
    let dead = "projects/p/topics/dead";
    let setup = Setup::with(dead_letters(dead, 5)).await;
    setup.topic(dead, json!({})).await;
    let letters = "projects/p/subscriptions/letters";
    setup
        .subscribe(letters, json!({ "topic": dead }))
        .await
        .unwrap();
    let published = setup.publish(&["poison"]).await;
    for attempt in 1..=5 {
        let received = setup.wait_pull(SUBSCRIPTION).await;
        assert_eq!(received[0]["deliveryAttempt"], attempt);
        setup.modify(&received, 0).await.unwrap();
    }
    let letter = setup.wait_pull(letters).await;
    assert_eq!(texts(&letter), ["poison"]);
    assert_ne!(ids(&letter), published);
    let attributes = &letter[0]["message"]["attributes"];
    let says = |name: &str| attributes[format!("CloudPubSubDeadLetterSource{name}")].as_str();
    assert_eq!(says("DeliveryCount"), Some("5"));
    assert_eq!(says("Subscription"), Some("billing"));
    assert_eq!(says("SubscriptionProject"), Some("p"));
    assert!(says("TopicPublishTime").unwrap().ends_with("+00:00"));
    assert!(setup.pull(SUBSCRIPTION).await.is_empty());
    assert_eq!(setup.busy(true).await, [letters]);
}

#[tokio::test]
async fn without_its_dead_letter_topic_a_message_stays() {
    let setup = Setup::with(dead_letters("projects/p/topics/none", 5)).await;
    setup.publish(&["a"]).await;
    for _ in 0..7 {
        let received = setup.wait_pull(SUBSCRIPTION).await;
        setup.modify(&received, 0).await.unwrap();
    }
    let received = setup.wait_pull(SUBSCRIPTION).await;
    assert_eq!(received[0]["deliveryAttempt"], 8);
}

#[tokio::test]
async fn a_retry_policy_pauses_and_old_messages_are_dropped() {
    let setup = Setup::with(json!({
        "retryPolicy": { "minimumBackoff": "30s", "maximumBackoff": "600s" },
        "messageRetentionDuration": "600s",
    }))
    .await;
    setup.publish(&["a"]).await;
    let first = setup.pull(SUBSCRIPTION).await;
    setup.modify(&first, 0).await.unwrap();
    setup.advance(20).await;
    assert!(setup.pull(SUBSCRIPTION).await.is_empty());
    setup.advance(10).await;
    assert_eq!(setup.wait_pull(SUBSCRIPTION).await.len(), 1);
    setup.advance(600).await;
    assert!(setup.pull(SUBSCRIPTION).await.is_empty());
}
