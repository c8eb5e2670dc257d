use super::*;

#[tokio::test]
async fn a_message_is_received_until_it_is_acknowledged() {
    let test = TestTopic::with(json!({})).await;
    let published = test.publish(&["a", "b"]).await;
    let first = test.pull(SUBSCRIPTION).await;
    assert_eq!(texts(&first), ["a", "b"]);
    assert_eq!(ids(&first), published);
    assert!(first[0]["deliveryAttempt"].is_null());
    assert!(test.pull(SUBSCRIPTION).await.is_empty());
    test.advance(11).await;
    let again = test.wait_pull(SUBSCRIPTION).await;
    assert_eq!(ids(&again), published);
    test.ack(&again[..1]).await.unwrap();
    test.modify(&again[1..], 0).await.unwrap();
    let third = test.pull(SUBSCRIPTION).await;
    assert_eq!(texts(&third), ["b"]);
    test.ack(&third).await.unwrap();
    test.idle(true).await;
    let ends = [
        "timed-out",
        "timed-out",
        "acknowledged",
        "refused",
        "acknowledged",
    ];
    assert_eq!(test.results().await, ends);
    assert!(test.history().await.iter().all(|it| it["target"] == "pull"));
}

#[tokio::test]
async fn a_pull_waits_for_the_first_message() {
    let test = TestTopic::with(json!({})).await;
    let publish = async {
        tokio::task::yield_now().await;
        test.publish(&["a"]).await
    };
    let (pulled, _) = tokio::join!(test.wait_pull(SUBSCRIPTION), publish);
    assert_eq!(texts(&pulled), ["a"]);
}

#[tokio::test]
async fn every_subscription_gets_its_copy_if_it_wants_it() {
    let test = TestTopic::with(json!({})).await;
    let eu = "projects/p/subscriptions/eu-only";
    let filter = json!({ "filter": "attributes.region = \"eu\"" });
    test.subscribe(eu, filter).await.unwrap();
    let message =
        |region: &str| json!({ "data": base64(region), "attributes": { "region": region } });
    let messages = json!([message("eu"), message("us")]);
    test.publish_messages(messages).await.unwrap();
    assert_eq!(texts(&test.pull(SUBSCRIPTION).await), ["eu", "us"]);
    assert_eq!(texts(&test.pull(eu).await), ["eu"]);
}

#[tokio::test]
async fn messages_of_one_key_come_in_order() {
    let test = TestTopic::with(json!({ "enableMessageOrdering": true })).await;
    test.publish_keyed(&["a1", "a2"], "a").await;
    test.publish_keyed(&["b1"], "b").await;
    let first = test.pull(SUBSCRIPTION).await;
    assert_eq!(texts(&first), ["a1", "a2", "b1"]);
    test.publish_keyed(&["a3"], "a").await;
    assert!(test.pull(SUBSCRIPTION).await.is_empty());
    test.modify(&first[..1], 0).await.unwrap();
    // It comes back after the first, also when it is acknowledged in between.
    test.ack(&first[1..2]).await.unwrap();
    let again = test.pull(SUBSCRIPTION).await;
    assert_eq!(texts(&again), ["a1", "a2", "a3"]);
}

#[tokio::test]
async fn with_exactly_once_a_stale_ack_id_fails_and_is_named() {
    let test = TestTopic::with(json!({ "enableExactlyOnceDelivery": true })).await;
    test.publish(&["a"]).await;
    let first = test.pull(SUBSCRIPTION).await;
    test.advance(11).await;
    let second = test.wait_pull(SUBSCRIPTION).await;
    let refused = test.ack(&first).await.unwrap_err();
    assert_eq!(refused.status, "INVALID_ARGUMENT");
    let named = &refused.details[0]["metadata"][&ack_ids(&first)[0]];
    assert_eq!(named, "PERMANENT_FAILURE_INVALID_ACK_ID");
    let refused = test.modify(&first, 30).await.unwrap_err();
    assert_eq!(refused.status, "INVALID_ARGUMENT");
    test.ack(&second).await.unwrap();
    test.idle(true).await;
}

#[tokio::test]
async fn a_malformed_ack_id_is_refused() {
    let test = TestTopic::with(json!({})).await;
    for ids in [json!(["nonsense"]), json!([])] {
        let refused = test.tell("acknowledge", json!({ "ackIds": ids })).await;
        assert_eq!(refused.unwrap_err().status, "INVALID_ARGUMENT", "{ids}");
    }
}

#[tokio::test]
async fn a_message_refused_too_often_goes_to_the_dead_letter_topic() {
    let dead = "projects/p/topics/dead";
    let test = TestTopic::with(dead_letters(dead, 5)).await;
    test.topic(dead, json!({})).await;
    let letters = "projects/p/subscriptions/letters";
    ok(test.subscribe(letters, json!({ "topic": dead }))).await;
    let published = test.publish(&["poison"]).await;
    for attempt in 1..=5 {
        let received = test.wait_pull(SUBSCRIPTION).await;
        assert_eq!(received[0]["deliveryAttempt"], attempt);
        test.modify(&received, 0).await.unwrap();
    }
    let letter = test.wait_pull(letters).await;
    assert_eq!(texts(&letter), ["poison"]);
    assert_ne!(ids(&letter), published);
    let attributes = &letter[0]["message"]["attributes"];
    let says = |name: &str| attributes[format!("CloudPubSubDeadLetterSource{name}")].as_str();
    assert_eq!(says("DeliveryCount"), Some("5"));
    assert_eq!(says("Subscription"), Some("billing"));
    assert_eq!(says("SubscriptionProject"), Some("p"));
    assert!(says("TopicPublishTime").unwrap().ends_with("+00:00"));
    assert!(test.pull(SUBSCRIPTION).await.is_empty());
    assert_eq!(test.busy(true).await, [letters]);
}

#[tokio::test]
async fn without_its_dead_letter_topic_a_message_stays() {
    let test = TestTopic::with(dead_letters("projects/p/topics/none", 5)).await;
    test.publish(&["a"]).await;
    for _ in 0..7 {
        let received = test.wait_pull(SUBSCRIPTION).await;
        test.modify(&received, 0).await.unwrap();
    }
    let received = test.wait_pull(SUBSCRIPTION).await;
    assert_eq!(received[0]["deliveryAttempt"], 8);
}

#[tokio::test]
async fn a_retry_policy_pauses_and_old_messages_are_dropped() {
    let test = TestTopic::with(json!({
        "retryPolicy": { "minimumBackoff": "30s", "maximumBackoff": "600s" },
        "messageRetentionDuration": "600s",
    }))
    .await;
    test.publish(&["a"]).await;
    let first = test.pull(SUBSCRIPTION).await;
    test.modify(&first, 0).await.unwrap();
    test.advance(20).await;
    assert!(test.pull(SUBSCRIPTION).await.is_empty());
    test.advance(10).await;
    assert_eq!(test.wait_pull(SUBSCRIPTION).await.len(), 1);
    test.advance(600).await;
    assert!(test.pull(SUBSCRIPTION).await.is_empty());
}
