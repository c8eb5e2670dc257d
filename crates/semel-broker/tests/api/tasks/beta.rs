use super::*;

const PARENT: &str = "/v2beta3/projects/p/locations/l";
const NAME: &str = "projects/p/locations/l/queues/q";

#[tokio::test]
async fn a_queue_of_v2beta3_is_one_of_v2() {
    let broker = Broker::start(&[]).await;
    let routing = json!({ "host": "127.0.0.1:9" });
    let queue = json!({
        "name": NAME,
        "type": "PUSH",
        "appEngineHttpQueue": { "appEngineRoutingOverride": routing },
        "retryConfig": { "maxAttempts": 7 },
    });
    let created = broker
        .post(&format!("{PARENT}/queues"), queue)
        .await
        .unwrap();
    assert_eq!(
        (&created["type"], &created["state"]),
        (&json!("PUSH"), &json!("RUNNING"))
    );
    assert_eq!(
        created["appEngineHttpQueue"]["appEngineRoutingOverride"],
        routing
    );
    let v2 = broker.get(&format!("/v2/{NAME}")).await.unwrap();
    assert_eq!(v2["appEngineRoutingOverride"], routing);
    assert_eq!(v2["retryConfig"]["maxAttempts"], 7);
    let mask = "app_engine_http_queue.app_engine_routing_override,type";
    let path = format!("/v2beta3/{NAME}?updateMask={mask}");
    let updated = broker
        .patch(&path, json!({ "type": "PUSH" }))
        .await
        .unwrap();
    assert!(updated["appEngineHttpQueue"].is_null(), "{updated}");
    assert_eq!(updated["retryConfig"]["maxAttempts"], 7);
    for verb in ["pause", "resume", "purge"] {
        ok(broker.post(&format!("/v2beta3/{NAME}:{verb}"), json!({}))).await;
    }
    let list = broker.get(&format!("{PARENT}/queues")).await.unwrap();
    assert_eq!(list["queues"].as_array().unwrap().len(), 1);
    ok(broker.delete(&format!("/v2beta3/{NAME}"))).await;
    assert_eq!(
        broker.get(&format!("/v2/{NAME}")).await.unwrap_err().status,
        "NOT_FOUND"
    );
    broker.stop().await;
}

#[tokio::test]
async fn a_task_of_v2beta3_is_delivered_and_shown() {
    let broker = Broker::start(&[]).await;
    ok(broker.post(&format!("{PARENT}/queues"), json!({ "name": NAME }))).await;
    let handler = Handler::start().await;
    let request = json!({ "url": handler.url, "body": "aGk=", "headers": { "a": "b" } });
    let path = format!("/v2beta3/{NAME}/tasks");
    let later = json!({
        "name": format!("{NAME}/tasks/later"), "scheduleTime": "2099-01-01T00:00:00Z", "httpRequest": request,
    });
    let far = broker
        .post(&path, json!({ "task": later }))
        .await
        .unwrap_err();
    assert!(far.message.contains("too far in the future"), "{far:?}");
    let task = json!({ "name": format!("{NAME}/tasks/now"), "httpRequest": request });
    let created = broker
        .post(&path, json!({ "task": task, "responseView": "FULL" }))
        .await
        .unwrap();
    assert_eq!(created["httpRequest"]["body"], "aGk=");
    assert_eq!(created["view"], "FULL");
    let seen = handler.wait_for(1).await;
    assert_eq!(seen[0].header("x-cloudtasks-taskname"), "now");
    broker.stop().await;
}

#[tokio::test]
async fn what_only_v2beta3_has_is_refused() {
    let broker = Broker::start(&[]).await;
    let path = format!("{PARENT}/queues");
    for more in [
        json!({ "type": "PULL" }),
        json!({ "taskTtl": "3600s" }),
        json!({ "tombstoneTtl": "3600s" }),
    ] {
        let mut queue = more;
        queue["name"] = json!(NAME);
        let refused = broker.post(&path, queue.clone()).await.unwrap_err();
        assert_eq!(refused.status, "UNIMPLEMENTED", "{queue}: {refused:?}");
        assert!(refused.message.contains("is not served here"));
    }
    ok(broker.post(&path, json!({ "name": NAME }))).await;
    let pull = json!({ "task": { "pullMessage": { "payload": "aGk=" } } });
    let refused = broker
        .post(&format!("/v2beta3/{NAME}/tasks"), pull)
        .await
        .unwrap_err();
    assert_eq!(refused.status, "UNIMPLEMENTED");
    let mask = format!("/v2beta3/{NAME}?updateMask=task_ttl");
    let refused = broker.patch(&mask, json!({})).await.unwrap_err();
    assert_eq!(refused.status, "UNIMPLEMENTED");
    // What is elsewhere in v2 is nothing here.
    let mask = format!("/v2beta3/{NAME}?updateMask=app_engine_routing_override");
    let refused = broker.patch(&mask, json!({})).await.unwrap_err();
    assert_eq!(refused.message, "Invalid mask: app_engine_routing_override");
    let mask = format!("/v2beta3/{NAME}?updateMask=appEngineHttpQueue.appEngineRoutingOverride");
    ok(broker.patch(&mask, json!({}))).await;
    let refused = broker
        .get(&format!("/v2beta3/{NAME}?readMask=stats"))
        .await
        .unwrap_err();
    assert_eq!(refused.status, "UNIMPLEMENTED");
    broker.stop().await;
}
