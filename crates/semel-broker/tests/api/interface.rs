//! What is not served is refused, over gRPC as over REST, and said to whoever asks what was.

use crate::support::Broker;
use crate::support::grpc::by_grpc;
use serde_json::{Value, json};

const TOPIC: &str = "projects/p/topics/orders";

const INVALID_ARGUMENT: &str = "3";
const UNIMPLEMENTED: &str = "12";

/// A request whose second field is a topic with its name and one more.
fn topic_with(number: u32, value: &str) -> Vec<u8> {
    let mut topic = Vec::new();
    prost::encoding::string::encode(1, &TOPIC.to_owned(), &mut topic);
    prost::encoding::string::encode(number, &value.to_owned(), &mut topic);
    topic
}

#[tokio::test]
async fn every_method_answers_or_is_refused_by_both_transports() {
    let broker = Broker::start(&[]).await;
    let interface = broker.get("/_semel/interface").await.unwrap();
    let mut counted = (0, 0);
    for service in interface["services"].as_array().unwrap() {
        let name = service["name"].as_str().unwrap();
        for method in service["methods"].as_array().unwrap() {
            let path = format!("/{name}/{}", method["name"].as_str().unwrap());
            let (code, message) = by_grpc(&broker, &path, b"").await;
            let refused = message.contains("not%20served%20here");
            if method["standing"] == "refused" {
                assert_eq!(code, UNIMPLEMENTED, "{path}: {message}");
                assert!(refused, "{path}: {message}");
                counted.0 += 1;
            } else {
                assert!(!refused && code != UNIMPLEMENTED, "{path}: {message}");
                counted.1 += 1;
            }
        }
    }
    assert!(counted.0 > 3 && counted.1 > 35, "{counted:?}");
    broker.stop().await;
}

#[tokio::test]
async fn a_field_that_is_not_served_is_refused_and_remembered() {
    let broker = Broker::start(&[]).await;
    let create = "/google.pubsub.v1.Publisher/CreateTopic";
    let (code, message) = by_grpc(&broker, create, &topic_with(5, "a-key")).await;
    assert_eq!(code, UNIMPLEMENTED);
    assert!(
        message.starts_with("Topic.kms_key_name%20is%20not%20served%20here"),
        "{message}"
    );
    // A number that no version of the interface had when this was written.
    let (code, message) = by_grpc(&broker, create, &topic_with(999, "news")).await;
    assert_eq!(code, UNIMPLEMENTED, "{message}");
    let refused = broker
        .put(&format!("/v1/{TOPIC}"), json!({ "kmsKeyName": "a-key" }))
        .await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.status, "UNIMPLEMENTED");
    assert!(
        refused
            .message
            .starts_with("Topic.kms_key_name is not served here")
    );
    assert_eq!(refused.details[0]["reason"], "NOT_SERVED_HERE");
    assert_eq!(
        broker
            .get(&format!("/v1/{TOPIC}"))
            .await
            .unwrap_err()
            .status,
        "NOT_FOUND"
    );

    let remembered = broker.get("/_semel/refusals").await.unwrap();
    let remembered = remembered["refusals"].as_array().unwrap();
    let count = |name: &str| {
        let refusal = remembered.iter().find(|it| it["name"] == name).unwrap();
        assert_eq!(refusal["method"], "google.pubsub.v1.Publisher.CreateTopic");
        refusal["count"].as_u64().unwrap()
    };
    assert_eq!(count("google.pubsub.v1.Topic.kms_key_name"), 2);
    assert_eq!(count("google.pubsub.v1.Topic.999"), 1);
    broker.delete("/_semel/refusals").await.unwrap();
    let forgotten = broker.get("/_semel/refusals").await.unwrap();
    assert_eq!(forgotten["refusals"], json!([]));
    broker.stop().await;
}

#[tokio::test]
async fn what_is_the_same_as_nothing_is_taken() {
    let broker = Broker::start(&[]).await;
    let create = "/google.pubsub.v1.Publisher/CreateTopic";
    let (code, message) = by_grpc(&broker, create, &topic_with(5, "")).await;
    assert_eq!(code, "0", "{message}");
    let body = json!({ "kmsKeyName": "", "messageTransforms": [], "tags": {}, "ingestionDataSourceSettings": null });
    broker
        .put("/v1/projects/p/topics/other", body)
        .await
        .unwrap();
    broker.stop().await;
}

#[tokio::test]
async fn updates_are_refused_by_value_and_by_mask() {
    let broker = Broker::start(&[]).await;
    broker
        .put(&format!("/v1/{TOPIC}"), json!({}))
        .await
        .unwrap();
    let subscription = "/v1/projects/p/subscriptions/orders";
    broker
        .put(subscription, json!({ "topic": TOPIC }))
        .await
        .unwrap();
    for (path, body) in [
        (
            format!("/v1/{TOPIC}"),
            json!({ "topic": { "messageTransforms": [{}] }, "updateMask": "labels" }),
        ),
        (
            format!("/v1/{TOPIC}"),
            json!({ "topic": {}, "updateMask": "ingestionDataSourceSettings.awsKinesis" }),
        ),
        (
            subscription.to_owned(),
            json!({ "subscription": { "bigqueryConfig": { "table": "t" } }, "updateMask": "bigqueryConfig" }),
        ),
        (
            subscription.to_owned(),
            json!({ "subscription": {}, "updateMask": "cloud_storage_config" }),
        ),
    ] {
        let refused = broker.patch(&path, body.clone()).await.unwrap_err();
        assert_eq!(refused.status, "UNIMPLEMENTED", "{body}: {refused:?}");
        assert!(
            refused.message.contains("is not served here"),
            "{refused:?}"
        );
    }
    broker.stop().await;
}

#[tokio::test]
async fn parameters_of_the_query_are_read_or_refused() {
    let broker = Broker::start(&[]).await;
    for (parameter, status, words) in [
        (
            "tags.key=x",
            "UNIMPLEMENTED",
            "Topic.tags is not served here",
        ),
        (
            "kmsKeyName=x",
            "UNIMPLEMENTED",
            "Topic.kms_key_name is not served here",
        ),
        (
            "ingestion_data_source_settings.aws.stream=x",
            "UNIMPLEMENTED",
            "Topic.ingestion_data_source_settings is not served here",
        ),
        (
            "labels.key=x",
            "INVALID_ARGUMENT",
            "'labels' is a message type",
        ),
        ("labels=x", "INVALID_ARGUMENT", "Invalid value at 'labels'"),
        ("name.more=x", "INVALID_ARGUMENT", "could not be found"),
        ("news=x", "INVALID_ARGUMENT", "could not be found"),
        (
            "schemaSettings.news=x",
            "INVALID_ARGUMENT",
            "could not be found",
        ),
    ] {
        let path = format!("/v1/{TOPIC}?{parameter}");
        let refused = broker.put(&path, json!({})).await.unwrap_err();
        assert_eq!(refused.status, status, "{parameter}: {refused:?}");
        assert!(refused.message.contains(words), "{refused:?}");
    }
    let body = json!({ "messageStoragePolicy": { "news": 1 } });
    broker.put(&format!("/v1/{TOPIC}"), body).await.unwrap_err();
    let policy = "messageStoragePolicy.allowedPersistenceRegions=europe-west1";
    let path = format!("/v1/{TOPIC}?{policy}&tags.key=&kmsKeyName=");
    let made = broker.put(&path, json!({})).await.unwrap();
    let regions = &made["messageStoragePolicy"]["allowedPersistenceRegions"];
    assert_eq!(regions, &json!(["europe-west1"]));

    let remembered = broker.get("/_semel/refusals").await.unwrap();
    let names = remembered["refusals"].as_array().unwrap().iter();
    let names: Vec<_> = names.map(|it| it["name"].as_str().unwrap()).collect();
    for name in [
        "Topic.name.more",
        "Topic.news",
        "SchemaSettings.news",
        "MessageStoragePolicy.news",
        "Topic.tags",
    ] {
        assert!(
            names.contains(&&*format!("google.pubsub.v1.{name}")),
            "{names:?}"
        );
    }
    broker.stop().await;
}

#[tokio::test]
async fn methods_that_are_not_served_have_their_paths() {
    let broker = Broker::start(&[]).await;
    let queue = "projects/p/locations/l/queues/q";
    for path in [
        format!("/v2/{queue}/tasks:batchCreate"),
        format!("/{queue}/tasks:batchDelete"),
        format!("/v2beta2/{queue}/tasks:lease"),
    ] {
        let refused = broker.post(&path, Value::Null).await.unwrap_err();
        assert_eq!(refused.status, "UNIMPLEMENTED", "{path}");
        assert!(
            refused.message.contains("is not served here"),
            "{refused:?}"
        );
    }
    broker.stop().await;
}

#[tokio::test]
async fn refusals_are_short_whatever_they_repeat() {
    let broker = Broker::start(&[]).await;
    let long = "x".repeat(20_000);
    let name = format!("projects/p/topics/{long}");
    let mut request = Vec::new();
    prost::encoding::string::encode(1, &name, &mut request);
    for method in ["GetTopic", "CreateTopic"] {
        let path = format!("/google.pubsub.v1.Publisher/{method}");
        let (code, message) = by_grpc(&broker, &path, &request).await;
        assert_eq!(code, INVALID_ARGUMENT);
        assert!(message.len() < 3000, "{}", message.len());
        assert!(message.contains("bytes%20left%20out"), "{message}");
    }
    let unknown = json!({ long.as_str(): 1 });
    for (path, body) in [
        (&*format!("/v1/{name}"), json!({})),
        (&*format!("/v1/{TOPIC}"), unknown),
    ] {
        let refused = broker.put(path, body).await.unwrap_err();
        assert!(refused.message.len() <= 1000, "{}", refused.message.len());
    }
    broker.stop().await;
}

#[tokio::test]
async fn spans_and_moments_that_json_cannot_tell_are_refused() {
    let broker = Broker::start(&[]).await;
    let span = |seconds: i64| {
        let mut span = Vec::new();
        prost::encoding::int64::encode(1, &seconds, &mut span);
        let mut topic = topic_with(5, "");
        prost::encoding::bytes::encode(8, &span, &mut topic);
        topic
    };
    let create = "/google.pubsub.v1.Publisher/CreateTopic";
    for seconds in [315_576_000_001, i64::MAX, i64::MIN] {
        let (code, message) = by_grpc(&broker, create, &span(seconds)).await;
        assert_eq!(code, INVALID_ARGUMENT);
        assert!(message.contains("message_retention_duration"), "{message}");
    }
    let (code, message) = by_grpc(&broker, create, &span(3600)).await;
    assert_eq!(code, "0", "{message}");
    broker.get(&format!("/v1/{TOPIC}")).await.unwrap();
    broker.stop().await;
}

#[tokio::test]
async fn a_group_does_not_end_the_check() {
    let broker = Broker::start(&[]).await;
    let mut request = Vec::new();
    prost::encoding::string::encode(1, &TOPIC.to_owned(), &mut request);
    // The field 5, empty, as a group; then with a value.
    request.extend([5 << 3 | 3, 5 << 3 | 4]);
    prost::encoding::string::encode(5, &"a-key".to_owned(), &mut request);
    let create = "/google.pubsub.v1.Publisher/CreateTopic";
    let (code, message) = by_grpc(&broker, create, &request).await;
    assert_eq!(code, UNIMPLEMENTED, "{message}");
    broker.stop().await;
}
