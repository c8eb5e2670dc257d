//! Policies and places: what is set is shown, and nobody is refused.

use crate::support::{Broker, ok};
use serde_json::{Value, json};

const QUEUE: &str = "/v2/projects/p/locations/l/queues/q";
const TOPIC: &str = "/v1/projects/p/topics/orders";

async fn set(broker: &Broker, resource: &str, policy: &Value) -> Value {
    let path = format!("{resource}:setIamPolicy");
    broker
        .post(&path, json!({ "policy": policy }))
        .await
        .unwrap()
}

#[tokio::test]
async fn a_policy_is_shown_as_it_was_set_and_goes_with_its_resource() {
    let broker = Broker::start(&[]).await;
    let queue = json!({ "name": QUEUE.trim_start_matches("/v2/") });
    broker
        .post("/v2/projects/p/locations/l/queues", queue)
        .await
        .unwrap();
    broker.put(TOPIC, json!({})).await.unwrap();
    let bindings = json!([{ "role": "roles/pubsub.publisher", "members": ["user:a@example.com"] }]);
    for resource in [QUEUE, TOPIC] {
        let policy = json!({ "version": 1, "bindings": bindings });
        let set_once = set(&broker, resource, &policy).await;
        assert_eq!(set_once["bindings"], bindings, "{resource}");
        let get = match resource {
            TOPIC => broker.get(&format!("{resource}:getIamPolicy")).await,
            _ => {
                broker
                    .post(&format!("{resource}:getIamPolicy"), json!({}))
                    .await
            }
        };
        assert_eq!(get.unwrap(), set_once);
        // Who read it before somebody else changed it is told so.
        set(&broker, resource, &json!({ "etag": set_once["etag"] })).await;
        let late = json!({ "policy": { "etag": set_once["etag"], "bindings": bindings } });
        let late = broker.post(&format!("{resource}:setIamPolicy"), late).await;
        assert_eq!(late.unwrap_err().status, "ABORTED");
        let permissions = json!({ "permissions": ["pubsub.topics.publish", "x.y.z"] });
        let path = format!("{resource}:testIamPermissions");
        let tested = broker.post(&path, permissions.clone()).await.unwrap();
        assert_eq!(tested, permissions);
        let missing = format!("{resource}-missing:testIamPermissions");
        assert_eq!(ok(broker.post(&missing, permissions)).await, json!({}));
        let several = json!({ "permissions": ["pubsub.topics.*"] });
        let refused = broker.post(&path, several).await.unwrap_err();
        assert_eq!(refused.status, "INVALID_ARGUMENT");
    }
    let nonsense = "/v1/projects/p/topics/1:testIamPermissions";
    let refused = broker.post(nonsense, json!({})).await.unwrap_err();
    assert_eq!(refused.status, "INVALID_ARGUMENT");
    set(&broker, TOPIC, &json!({ "bindings": bindings })).await;
    broker.delete(TOPIC).await.unwrap();
    let gone = broker.get(&format!("{TOPIC}:getIamPolicy")).await;
    assert_eq!(gone.unwrap_err().status, "NOT_FOUND");
    broker.put(TOPIC, json!({})).await.unwrap();
    let fresh = broker.get(&format!("{TOPIC}:getIamPolicy")).await.unwrap();
    assert!(fresh["bindings"].is_null(), "{fresh}");
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_those_who_set_a_policy_by_one_tag_one_succeeds() {
    let directory = tempfile::tempdir().unwrap();
    let broker = Broker::in_directory(directory.path()).await;
    let queue = json!({ "name": QUEUE.trim_start_matches("/v2/") });
    ok(broker.post("/v2/projects/p/locations/l/queues", queue)).await;
    let path = format!("{QUEUE}:setIamPolicy");
    let tag = set(&broker, QUEUE, &json!({ "version": 1 })).await["etag"].clone();
    let attempt = async |role: u32| {
        let bindings = json!([{ "role": format!("roles/{role}"), "members": ["user:a"] }]);
        let policy = json!({ "policy": { "etag": tag, "bindings": bindings } });
        broker.post(&path, policy).await
    };
    let (a, b, c, d, e, f, g, h) = tokio::join!(
        attempt(1),
        attempt(2),
        attempt(3),
        attempt(4),
        attempt(5),
        attempt(6),
        attempt(7),
        attempt(8),
    );
    let all = [a, b, c, d, e, f, g, h];
    assert_eq!(all.iter().filter(|it| it.is_ok()).count(), 1);
    broker.stop().await;
}

#[tokio::test]
async fn what_a_policy_cannot_hold_is_refused() {
    let broker = Broker::start(&[]).await;
    broker.put(TOPIC, json!({})).await.unwrap();
    for body in [
        json!({ "policy": { "auditConfigs": [{ "service": "x" }] } }),
        json!({ "policy": {}, "updateMask": "auditConfigs" }),
    ] {
        let refused = broker
            .post(&format!("{TOPIC}:setIamPolicy"), body)
            .await
            .unwrap_err();
        assert_eq!(refused.status, "UNIMPLEMENTED", "{refused:?}");
    }
    broker.stop().await;
}

#[tokio::test]
async fn of_a_policy_only_what_a_mask_names_is_set() {
    let broker = Broker::start(&[]).await;
    ok(broker.put(TOPIC, json!({}))).await;
    let binding = |role: &str| json!([{ "role": role, "members": ["user:a"] }]);
    let whole = json!({ "version": 3, "bindings": binding("roles/one") });
    let set_once = set(&broker, TOPIC, &whole).await;
    let masked = async |mask: &str, policy: Value| {
        let body = json!({ "policy": policy, "updateMask": mask });
        broker.post(&format!("{TOPIC}:setIamPolicy"), body).await
    };
    let two = json!({ "version": 1, "bindings": binding("roles/two"), "etag": set_once["etag"] });
    let got = ok(masked("bindings,etag", two.clone())).await;
    assert_eq!(
        (&got["version"], &got["bindings"]),
        (&json!(3), &binding("roles/two"))
    );
    assert_eq!(
        masked("bindings,etag", two).await.unwrap_err().status,
        "ABORTED"
    );
    let got = ok(masked("version", json!({ "version": 1 }))).await;
    assert_eq!(
        (&got["version"], &got["bindings"]),
        (&json!(1), &binding("roles/two"))
    );
    let unknown = masked("news", json!({})).await.unwrap_err();
    assert_eq!(unknown.status, "INVALID_ARGUMENT");
    broker.stop().await;
}

#[tokio::test]
async fn places_are_those_of_the_queues() {
    let broker = Broker::start(&[]).await;
    let queue = json!({ "name": "projects/p/locations/europe-west3/queues/q" });
    broker
        .post("/v2/projects/p/locations/europe-west3/queues", queue)
        .await
        .unwrap();
    let list = broker.get("/v2/projects/p/locations").await.unwrap();
    let ids: Vec<_> = list["locations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["locationId"])
        .collect();
    assert_eq!(ids, ["europe-west3", "us-central1"]);
    assert!(list["nextPageToken"].is_null());
    let path = "/v2/projects/p/locations?pageSize=1";
    let first = ok(broker.get(path)).await;
    assert_eq!(first["locations"].as_array().unwrap().len(), 1);
    let token = first["nextPageToken"].as_str().unwrap();
    let second = ok(broker.get(&format!("{path}&pageToken={token}"))).await;
    assert_eq!(second["locations"][0]["locationId"], "us-central1");
    assert!(second["nextPageToken"].is_null());
    let bogus = broker.get(&format!("{path}&pageToken=x")).await;
    assert_eq!(bogus.unwrap_err().status, "INVALID_ARGUMENT");
    let one = broker
        .get("/v2/projects/p/locations/asia-east1")
        .await
        .unwrap();
    assert_eq!(one["name"], "projects/p/locations/asia-east1");
    assert_eq!(one["labels"]["cloud.googleapis.com/region"], "asia-east1");
    broker.stop().await;
}
