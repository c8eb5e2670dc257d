use super::*;
use crate::support::{Seen, claims};

fn envelope(seen: &Seen) -> Value {
    serde_json::from_slice(&seen.body).unwrap()
}

#[tokio::test]
async fn a_message_is_pushed_until_it_is_accepted() {
    let (test, handler) = TestTopic::pushing(&[], json!({})).await;
    handler.answer_next(&[503, 203, 302, 204]);
    let published = test.publish(&["hello"]).await;
    let seen = handler.wait_for(4).await;
    test.idle(false).await;
    assert_eq!(handler.seen().len(), 4);
    let json = envelope(&seen[0]);
    assert_eq!(json["message"]["data"], "aGVsbG8=");
    assert_eq!(json["message"]["messageId"], published[0]);
    assert_eq!(json["subscription"], SUBSCRIPTION);
    assert!(json["deliveryAttempt"].is_null());
    assert_eq!(seen[0].path, "/push?a=1");
    assert_eq!(seen[0].header("content-type"), "application/json");
    assert!(seen[0].header("user-agent").starts_with("APIs-Google"));
    assert!(seen.iter().all(|it| it.body == seen[0].body));
    let history = test.history().await;
    let attempts: Vec<_> = history
        .iter()
        .map(|it| it["attempt"].as_i64().unwrap())
        .collect();
    assert_eq!(attempts, [1, 2, 3, 4]);
    let last = &history[3];
    assert_eq!(last["status"], 204);
    assert_eq!(last["success"], true);
}

#[tokio::test]
async fn a_handler_that_is_late_is_asked_again() {
    let (test, handler) = TestTopic::pushing(&[], dead_letters(TOPIC, 5)).await;
    handler.hold();
    test.publish(&["a"]).await;
    handler.wait_for(1).await;
    test.advance(11).await;
    test.until_results(|all| all.first().is_some_and(|it| it == "timed-out"))
        .await;
    test.advance(1).await;
    let seen = handler.wait_for(2).await;
    assert_eq!(envelope(&seen[1])["deliveryAttempt"], 2);
    handler.let_go();
    test.idle(false).await;
}

#[tokio::test]
async fn a_retry_policy_pauses_longer_than_the_push_backoff() {
    let retry = json!({ "retryPolicy": { "minimumBackoff": "100s", "maximumBackoff": "600s" } });
    let (test, handler) = TestTopic::pushing(&[], retry).await;
    handler.answer_next(&[500]);
    test.publish(&["a"]).await;
    test.until_any("answered").await;
    let before = test.now_us().await;
    test.advance(90).await;
    assert_eq!(handler.seen().len(), 1);
    test.advance(11).await;
    handler.wait_for(2).await;
    test.idle(false).await;
    let second = test.history().await[1]["at_us"].as_i64().unwrap();
    assert!(second - before >= 99_000_000);
}

#[tokio::test]
async fn messages_of_one_key_are_pushed_one_at_a_time() {
    let (test, handler) = TestTopic::pushing(&[], json!({ "enableMessageOrdering": true })).await;
    handler.hold();
    test.publish_keyed(&["a1", "a2", "a3"], "a").await;
    test.publish_keyed(&["b1"], "b").await;
    handler.wait_for(2).await;
    assert_eq!(test.results().await, ["running", "running"]);
    handler.let_go();
    test.idle(false).await;
    let messages = handler.seen().iter().map(envelope).collect::<Vec<_>>();
    let of_a = messages
        .iter()
        .filter(|it| it["message"]["orderingKey"] == "a");
    let data: Vec<_> = of_a
        .map(|it| it["message"]["data"].as_str().unwrap())
        .collect();
    assert_eq!(data, ["YTE=", "YTI=", "YTM="]);
}

#[tokio::test]
async fn a_push_carries_a_token_for_its_endpoint() {
    let handler = Handler::start().await;
    let test = TestTopic::new(&[]).await;
    let email = "who@p.iam.gserviceaccount.com";
    let push = json!({
        "pushEndpoint": handler.url,
        "oidcToken": { "serviceAccountEmail": email },
        "noWrapper": { "writeMetadata": true },
    });
    ok(test.subscribe(SUBSCRIPTION, json!({ "pushConfig": push }))).await;
    let published = test.publish(&["raw"]).await;
    let seen = handler.wait_for(1).await.remove(0);
    assert_eq!(seen.body, "raw");
    assert_eq!(seen.header("x-goog-pubsub-message-id"), published[0]);
    let claims = claims(&seen);
    assert_eq!(claims["aud"], handler.url);
    assert_eq!(claims["email"], email);
    test.idle(false).await;
}

#[tokio::test]
async fn a_subscription_may_change_from_pull_to_push_and_back() {
    let handler = Handler::start().await;
    let test = TestTopic::with(json!({})).await;
    test.publish(&["a"]).await;
    let push = json!({ "pushConfig": { "pushEndpoint": handler.url } });
    test.tell("modifyPushConfig", push).await.unwrap();
    handler.wait_for(1).await;
    test.idle(false).await;
    ok(test.tell("modifyPushConfig", json!({ "pushConfig": {} }))).await;
    test.publish(&["b"]).await;
    assert_eq!(texts(&test.pull(SUBSCRIPTION).await), ["b"]);
    assert_eq!(handler.seen().len(), 1);
}

#[tokio::test]
async fn many_messages_are_all_pushed() {
    let (test, handler) = TestTopic::pushing(&[], json!({})).await;
    test.publish(&["x"; 300]).await;
    handler.wait_for(300).await;
    test.idle(false).await;
    assert_eq!(handler.seen().len(), 300);
}
