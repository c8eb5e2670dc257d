use super::*;
use crate::table::rows;

const QUEUE: &str = "projects/p/locations/l/queues/q";

/// A method, a path and a body, and the beginning of what the service hears. `$Q` is a queue's name, `$T` a
/// topic's, `$S` a subscription's, `$N` a snapshot's.
const TASKS: &str = r#"
    GET | projects/p/locations/l/queues | | list_queues ListQueuesRequest { parent: "projects/p/locations/l"
    GET | $Q | | get_queue GetQueueRequest { name: "$Q"
    POST | projects/p/locations/l/queues | {"name":"x"} | create_queue CreateQueueRequest { parent: "projects/p/locations/l", queue: Some(Queue { name: "x"
    PATCH | $Q | {"name":"elsewhere"} | update_queue UpdateQueueRequest { queue: Some(Queue { name: "$Q"
    DELETE | $Q | | delete_queue DeleteQueueRequest { name: "$Q"
    POST | $Q:purge | {} | purge_queue PurgeQueueRequest { name: "$Q"
    POST | $Q:pause | | pause_queue PauseQueueRequest { name: "$Q"
    POST | $Q:resume | {} | resume_queue ResumeQueueRequest { name: "$Q"
    GET | $Q/tasks | | list_tasks ListTasksRequest { parent: "$Q"
    GET | $Q/tasks/t | | get_task GetTaskRequest { name: "$Q/tasks/t"
    POST | $Q/tasks | {"task":{"name":"x"},"parent":"elsewhere"} | create_task CreateTaskRequest { parent: "$Q", task: Some(Task { name: "x"
    DELETE | $Q/tasks/t | | delete_task DeleteTaskRequest { name: "$Q/tasks/t"
    POST | $Q/tasks/t:run | {} | run_task RunTaskRequest { name: "$Q/tasks/t"
"#;

const PUBSUB: &str = r#"
    PUT | $T | {} | create_topic Topic { name: "$T"
    GET | $T | | get_topic GetTopicRequest { topic: "$T"
    PATCH | $T | {"topic":{"labels":{"a":"b"}},"updateMask":"labels"} | update_topic UpdateTopicRequest { topic: Some(Topic { name: "$T", labels: {"a": "b"}
    DELETE | $T | | delete_topic DeleteTopicRequest { topic: "$T"
    GET | projects/p/topics | | list_topics ListTopicsRequest { project: "projects/p"
    POST | $T:publish | {"messages":[{"data":"aGk="}]} | publish PublishRequest { topic: "$T", messages: [PubsubMessage { data: b"hi"
    GET | $T/subscriptions | | list_topic_subscriptions ListTopicSubscriptionsRequest { topic: "$T"
    GET | $T/snapshots | | list_topic_snapshots ListTopicSnapshotsRequest { topic: "$T"
    POST | $S:detach | {} | detach_subscription DetachSubscriptionRequest { subscription: "$S"
    PUT | $S | {"topic":"t"} | create_subscription Subscription { name: "$S", topic: "t"
    GET | $S | | get_subscription GetSubscriptionRequest { subscription: "$S"
    PATCH | $S | {} | update_subscription UpdateSubscriptionRequest { subscription: Some(Subscription { name: "$S"
    DELETE | $S | | delete_subscription DeleteSubscriptionRequest { subscription: "$S"
    GET | projects/p/subscriptions | | list_subscriptions ListSubscriptionsRequest { project: "projects/p"
    POST | $S:pull | {"maxMessages":1} | pull PullRequest { subscription: "$S", return_immediately: false, max_messages: 1
    POST | $S:acknowledge | {"ackIds":["a","b"]} | acknowledge AcknowledgeRequest { subscription: "$S", ack_ids: ["a", "b"]
    POST | $S:modifyAckDeadline | {"ackIds":["a"],"ackDeadlineSeconds":9} | modify_ack_deadline ModifyAckDeadlineRequest { subscription: "$S", ack_deadline_seconds: 9
    POST | $S:modifyPushConfig | {"pushConfig":{}} | modify_push_config ModifyPushConfigRequest { subscription: "$S", push_config: Some(
    POST | $S:seek | {"snapshot":"n"} | seek SeekRequest { subscription: "$S", target: Some(Snapshot("n"
    PUT | $N | {"subscription":"s"} | create_snapshot CreateSnapshotRequest { name: "$N", subscription: "s"
    GET | $N | | get_snapshot GetSnapshotRequest { snapshot: "$N"
    PATCH | $N | {} | update_snapshot UpdateSnapshotRequest { snapshot: Some(Snapshot { name: "$N"
    DELETE | $N | | delete_snapshot DeleteSnapshotRequest { snapshot: "$N"
    GET | projects/p/snapshots | | list_snapshots ListSnapshotsRequest { project: "projects/p"
"#;

fn whole(text: &str) -> String {
    text.replace("$Q", QUEUE)
        .replace("$T", "projects/p/topics/t")
        .replace("$S", "projects/p/subscriptions/s")
        .replace("$N", "projects/p/snapshots/n")
}

async fn each_is_heard(prefix: &str, table: &'static str) {
    let rest = TestRest::new();
    for [method, path, body, heard] in rows(table) {
        let path = format!("{prefix}{}", whole(path));
        let answer = rest.ask(method, &path, body).await;
        assert_eq!(answer.status, 200, "{method} {path}: {}", answer.text);
        assert_eq!(
            answer.headers["content-type"],
            "application/json; charset=UTF-8"
        );
        let (asked, heard) = (rest.asked(), whole(heard));
        assert!(asked.starts_with(&heard), "{asked}, not {heard}");
    }
}

#[tokio::test]
async fn cloud_tasks_is_served_with_and_without_its_version() {
    each_is_heard("/v2/", TASKS).await;
    each_is_heard("/", TASKS).await;
}

#[tokio::test]
async fn pubsub_is_served() {
    each_is_heard("/v1/", PUBSUB).await;
}

#[tokio::test]
async fn any_request_can_be_buffered() {
    let rest = TestRest::new();
    for (method, path, id) in [
        ("POST", "tasks:buffer", "None"),
        ("PUT", "tasks/7:buffer", "Some(\"7\")"),
    ] {
        let request = Request::builder()
            .method(method)
            .uri(format!("/v2/{QUEUE}/{path}"));
        let request = request
            .header("x-kind", "any")
            .header("content-type", "text/plain");
        let answer = rest.send(request.body("not {json".into()).unwrap()).await;
        assert_eq!(answer.json(), serde_json::json!({"task": {}}));
        let heard = format!("buffer (\"{QUEUE}\", {id}, {method}, \"any\", b\"not {{json\")");
        assert_eq!(rest.asked(), heard);
    }
}

#[tokio::test]
async fn what_is_not_mapped_is_not_found() {
    let rest = TestRest::new();
    for (method, path) in [
        ("GET", "/v2/bogus"),
        ("GET", "/v2/projects/p/locations/l/queues/q:pause"),
        ("GET", "/v2/projects/p/locations/l/operations"),
        ("POST", "/v2/projects/p/locations/l/queues/q:explode"),
        ("POST", "/v3/projects/p/locations/l/queues"),
        ("GET", "/projects/p/topics/a&b"),
        ("GET", "/"),
    ] {
        let answer = rest.ask(method, path, "").await;
        assert_eq!(answer.status, 404, "{method} {path}");
        assert!(
            answer.headers["content-type"]
                .to_str()
                .unwrap()
                .starts_with("text/html")
        );
        assert!(answer.text.contains("was not found on this server."));
        assert!(!answer.text.contains("a&b"), "{}", answer.text);
        assert_eq!(rest.asked(), "");
    }
}

#[tokio::test]
async fn an_unknown_grpc_method_is_unimplemented() {
    let request = Request::post("/google.longrunning.Operations/GetOperation");
    let request = request.header("content-type", "application/grpc");
    let answer = TestRest::new()
        .send(request.body(Body::empty()).unwrap())
        .await;
    assert_eq!(answer.headers["grpc-status"], "12");
}
