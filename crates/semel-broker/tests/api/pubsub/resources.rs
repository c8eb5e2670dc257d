use super::*;
use crate::support::{invalid, refused};

#[tokio::test]
async fn what_is_not_there_and_what_is_there_already_is_said_in_productions_words() {
    let test = TestTopic::with(json!({})).await;
    let missing = test.get("/v1/projects/p/topics/none").await;
    refused(missing, "NOT_FOUND", "Resource not found (resource=none).");
    let again = test.subscribe(SUBSCRIPTION, json!({})).await;
    let message = "Resource already exists in the project (resource=billing).";
    refused(again, "ALREADY_EXISTS", message);
    let nowhere = json!({ "topic": "projects/p/topics/none" });
    let nowhere = test
        .subscribe("projects/p/subscriptions/other", nowhere)
        .await;
    assert_eq!(nowhere.unwrap_err().status, "NOT_FOUND");
    let unnamed = test
        .subscribe("projects/p/subscriptions/a", json!({}))
        .await;
    let message = "Invalid resource name given (name=projects/p/subscriptions/a). Refer to \
                   https://cloud.google.com/pubsub/docs/admin#resource_names for more information.";
    invalid(unnamed, message);
}

#[tokio::test]
async fn a_subscription_is_completed_with_the_defaults() {
    let settings = merged(
        dead_letters("projects/p/topics/dead", 0),
        json!({ "retryPolicy": {} }),
    );
    let test = TestTopic::with(settings).await;
    let expected = json!({
        "name": SUBSCRIPTION,
        "topic": TOPIC,
        "pushConfig": {},
        "ackDeadlineSeconds": 10,
        "messageRetentionDuration": "604800s",
        "expirationPolicy": { "ttl": "2678400s" },
        "deadLetterPolicy": { "deadLetterTopic": "projects/p/topics/dead", "maxDeliveryAttempts": 5 },
        "retryPolicy": { "minimumBackoff": "10s", "maximumBackoff": "600s" },
        "state": "ACTIVE",
    });
    assert_eq!(test.subscription().await, expected);
}

#[tokio::test]
async fn settings_out_of_range_are_refused() {
    let test = TestTopic::new(&[]).await;
    let push = json!({ "pushEndpoint": "http://127.0.0.1:1/" });
    for wrong in [
        json!({ "ackDeadlineSeconds": 9 }),
        json!({ "ackDeadlineSeconds": 601 }),
        json!({ "messageRetentionDuration": "599s" }),
        json!({ "messageRetentionDuration": format!("{}s", 32 * 86_400) }),
        json!({ "filter": "region = eu" }),
        dead_letters("projects/p/topics/dead", 4),
        json!({ "retryPolicy": { "minimumBackoff": "20s", "maximumBackoff": "10s" } }),
        json!({ "pushConfig": { "pushEndpoint": "not a url" } }),
        json!({ "enableExactlyOnceDelivery": true, "pushConfig": push }),
    ] {
        let answer = test.subscribe(SUBSCRIPTION, wrong.clone()).await;
        assert_eq!(answer.unwrap_err().status, "INVALID_ARGUMENT", "{wrong}");
    }
}

#[tokio::test]
async fn labels_that_google_refuses_are_refused_and_named() {
    let test = TestTopic::with(json!({})).await;
    let bad = json!({ "Env": "x" });
    let topic = "/v1/projects/p/topics/labelled";
    let snapshot = "/v1/projects/p/snapshots/labelled";
    let of = |kind: &str, name: &str| json!({ kind: { "name": name, "labels": bad }, "updateMask": "labels" });
    let named = json!({ "subscription": SUBSCRIPTION });
    ok(test.put("/v1/projects/p/snapshots/plain", named)).await;
    let path = |name: &str| format!("/v1/{name}");
    for answer in [
        test.put(topic, json!({ "labels": bad })).await,
        test.patch(&path(TOPIC), of("topic", TOPIC)).await,
        test.subscribe("projects/p/subscriptions/other", json!({ "labels": bad }))
            .await,
        test.patch(&path(SUBSCRIPTION), of("subscription", SUBSCRIPTION))
            .await,
        test.put(
            snapshot,
            json!({ "subscription": SUBSCRIPTION, "labels": bad }),
        )
        .await,
        test.patch(
            "/v1/projects/p/snapshots/plain",
            of("snapshot", "projects/p/snapshots/plain"),
        )
        .await,
    ] {
        let refused = answer.unwrap_err();
        assert_eq!(refused.status, "INVALID_ARGUMENT", "{refused:?}");
        assert!(
            refused.message.contains("labels.key=\"Env\""),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn messages_beyond_the_limits_are_refused() {
    let test = TestTopic::new(&[]).await;
    let message = |bytes: usize| json!({ "data": base64(&"x".repeat(bytes)) });
    let attributes = |count: usize, key: usize, value: usize| {
        let pair = |n: usize| (format!("{n:0key$}"), json!("v".repeat(value)));
        json!({ "attributes": (0..count).map(pair).collect::<serde_json::Map<_, _>>() })
    };
    let keyed = merged(message(1), json!({ "orderingKey": "k".repeat(1025) }));
    for (why, messages) in [
        ("none", vec![]),
        ("empty", vec![message(0)]),
        ("large", vec![message(10_000_001)]),
        ("many", vec![message(1); 1001]),
        ("attributes", vec![attributes(101, 1, 1)]),
        ("key", vec![attributes(1, 257, 1)]),
        ("value", vec![attributes(1, 1, 1025)]),
        ("ordering key", vec![keyed]),
    ] {
        let answer = test.publish_messages(json!(messages)).await;
        assert_eq!(answer.unwrap_err().status, "INVALID_ARGUMENT", "{why}");
    }
    let most = json!([attributes(100, 256, 1024), message(9_000_000)]);
    let published = test.publish_messages(most).await.unwrap();
    assert_eq!(published["messageIds"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn an_update_changes_what_its_mask_names() {
    let test = TestTopic::with(json!({})).await;
    let change = async |mask: &str| {
        let settings = json!({ "ackDeadlineSeconds": 77, "labels": { "a": "b" } });
        let request = json!({ "subscription": settings, "updateMask": mask });
        test.patch(&format!("/v1/{SUBSCRIPTION}"), request).await
    };
    let changed = change("ackDeadlineSeconds").await.unwrap();
    assert_eq!(changed["ackDeadlineSeconds"], 77);
    assert!(changed["labels"].is_null());
    for mask in ["filter", ""] {
        let answer = change(mask).await;
        assert_eq!(answer.unwrap_err().status, "INVALID_ARGUMENT", "{mask}");
    }
}

#[tokio::test]
async fn lists_come_in_pages() {
    let test = TestTopic::new(&[]).await;
    for n in 0..5 {
        test.topic(&format!("projects/p/topics/page{n}"), json!({}))
            .await;
        let name = format!("projects/p/subscriptions/page{n}");
        test.subscribe(&name, json!({})).await.unwrap();
    }
    let mut token = String::new();
    let mut names = 0;
    loop {
        let path = format!("/v1/projects/p/topics?pageSize=4&pageToken={token}");
        let page = test.get(&path).await.unwrap();
        names += page["topics"].as_array().unwrap().len();
        match page["nextPageToken"].as_str() {
            Some(next) => token = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(names, 6);
    let page = ok(test.get(&format!("/v1/{TOPIC}/subscriptions?pageSize=2"))).await;
    assert_eq!(page["subscriptions"].as_array().unwrap().len(), 2);
    assert!(page["nextPageToken"].is_string());
    let none = test.get("/v1/projects/q/subscriptions").await.unwrap();
    assert_eq!(none, json!({}));
}

#[tokio::test]
async fn a_deleted_topic_leaves_its_subscriptions_what_they_have() {
    let test = TestTopic::with(json!({})).await;
    test.publish(&["a"]).await;
    test.delete(&format!("/v1/{TOPIC}")).await.unwrap();
    assert_eq!(test.subscription().await["topic"], "_deleted-topic_");
    assert_eq!(texts(&test.pull(SUBSCRIPTION).await), ["a"]);
    // A topic of the same name is another one.
    test.topic(TOPIC, json!({})).await;
    test.publish(&["b"]).await;
    assert!(test.pull(SUBSCRIPTION).await.is_empty());
}

#[tokio::test]
async fn a_detached_subscription_has_nothing_and_gets_nothing() {
    let test = TestTopic::with(json!({})).await;
    test.publish(&["a"]).await;
    test.tell("detach", json!({})).await.unwrap();
    let refused = test.try_pull(SUBSCRIPTION, true).await.unwrap_err();
    assert_eq!(refused.status, "FAILED_PRECONDITION");
    test.publish(&["b"]).await;
    assert!(test.busy(true).await.is_empty());
}

#[tokio::test]
async fn a_reset_leaves_nothing() {
    let test = TestTopic::with(json!({})).await;
    test.publish(&["a"]).await;
    assert_eq!(test.busy(true).await, [SUBSCRIPTION]);
    assert!(test.busy(false).await.is_empty());
    test.post("/_semel/reset", Value::Null).await.unwrap();
    assert!(test.busy(true).await.is_empty());
    let refused = test.try_pull(SUBSCRIPTION, true).await.unwrap_err();
    assert_eq!(refused.status, "NOT_FOUND");
    test.topic(TOPIC, json!({})).await;
    test.subscribe(SUBSCRIPTION, json!({})).await.unwrap();
    assert!(test.pull(SUBSCRIPTION).await.is_empty());
}

#[tokio::test]
async fn what_only_answers_have_cannot_be_set() {
    let test = TestTopic::new(&[]).await;
    let path = "/v1/projects/p/topics/other";
    let made = ok(test.put(path, json!({ "satisfiesPzs": true }))).await;
    assert!(made["satisfiesPzs"].is_null(), "{made}");
}
