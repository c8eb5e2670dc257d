use super::*;
use crate::support::{claims, settings};
use http::Request;
use semel_broker::Settings;

const EMAIL: &str = "sa@p.iam.gserviceaccount.com";

fn oidc(audience: &str) -> Value {
    json!({ "serviceAccountEmail": EMAIL, "audience": audience })
}

fn header(key: &str, value: &str) -> Value {
    json!({ "header": { "key": key, "value": value } })
}

/// Leads to the handler.
fn here(test: &TestQueue) -> Value {
    let (host, port) = test
        .handler
        .url
        .trim_start_matches("http://")
        .split_once(':')
        .unwrap();
    json!({
        "scheme": "HTTP",
        "host": host,
        "port": port,
        "pathOverride": { "path": "/overridden" },
        "queryOverride": { "queryParams": "q=1" },
        "uriOverrideEnforceMode": "ALWAYS",
    })
}

async fn set(test: &TestQueue, target: Value) -> ApiResult {
    test.patch(QUEUE, json!({ "httpTarget": target })).await
}

#[tokio::test]
async fn a_queues_target_is_applied_to_tasks_that_exist_already() {
    let test = TestQueue::new(&[]).await;
    test.tell_queue("pause").await;
    let request = json!({
        "url": "https://example.com/work",
        "headers": { "X-Custom": "task", "Content-Type": "text/plain" },
        "body": "aGk=",
    });
    test.create(test.task_of("t", request)).await.unwrap();
    let target = json!({
        "uriOverride": here(&test),
        "httpMethod": "PUT",
        "headerOverrides": [header("x-custom", "queue"), header("X-Other", "queue")],
        "oidcToken": oidc("https://example.com/audience"),
    });
    set(&test, target).await.unwrap();
    test.tell_queue("resume").await;
    let seen = &test.handler.wait_for(1).await[0];
    assert_eq!(
        (seen.method.as_str(), seen.path.as_str()),
        ("PUT", "/overridden?q=1")
    );
    assert_eq!(seen.header("x-custom"), "queue");
    assert_eq!(seen.header("x-other"), "queue");
    assert_eq!(seen.header("content-type"), "text/plain");
    assert!(seen.header("authorization").starts_with("Bearer "));
    test.idle(false).await;
}

#[tokio::test]
async fn a_body_cannot_go_with_a_method_that_carries_none() {
    let test = TestQueue::new(&[]).await;
    set(&test, json!({ "httpMethod": "GET" })).await.unwrap();
    let created = ok(test.create(test.task_of("t", json!({ "body": "aGk=" })))).await;
    assert_eq!(created["httpRequest"]["httpMethod"], "POST");
    test.until_results(|results| !results.is_empty()).await;
    test.tell_queue("pause").await;
    test.idle(false).await;
    assert!(test.handler.seen().is_empty());
    assert_eq!(test.last_status("t").await, NO_CONNECTION);
    test.tell_queue("resume").await;
    test.create(test.task("without-body")).await.unwrap();
    let seen = test.handler.wait_for(1).await;
    assert_eq!(seen[0].method, "GET");
}

#[tokio::test]
async fn a_new_task_takes_its_queues_token() {
    let test = TestQueue::new(&[]).await;
    set(&test, json!({ "oidcToken": oidc("") })).await.unwrap();
    test.tell_queue("pause").await;
    let url = "https://example.com/work?query";
    let task = |token: Value| test.task_of("", json!({ "url": url, "oidcToken": token }));
    let created = test.create(task(oidc("other"))).await.unwrap();
    assert_eq!(created["httpRequest"]["oidcToken"], oidc(url));
    let message = "service_account_email must be set.";
    invalid(test.create(task(json!({}))).await, message);
}

#[tokio::test]
async fn a_token_names_its_audience() {
    let test = TestQueue::new(&[]).await;
    let task = test.task_of("t", json!({ "oidcToken": oidc("") }));
    test.create(task).await.unwrap();
    let claims = claims(&test.handler.wait_for(1).await[0]);
    assert_eq!(claims["aud"], format!("{}/work", test.handler.url));
    assert_eq!(claims["email"], EMAIL);
}

#[tokio::test]
async fn wrong_targets_are_refused_as_recorded() {
    let test = TestQueue::new(&[]).await;
    let uri = |uri: Value| json!({ "uriOverride": uri });
    let host = |host: &str| uri(json!({ "host": host }));
    let reserved = [
        header("User-Agent", "v"),
        header("X-Ok", "v"),
        header("Host", "v"),
    ];
    for (target, problem) in [
        (host(""), ". Invalid Host."),
        (host("http://example.net"), ". Invalid Host."),
        (host("example.net:80"), ". Invalid Host."),
        (host("example.net/path"), ". Invalid Host."),
        (
            uri(json!({ "port": -1 })),
            ". Port number should be a positive integer.",
        ),
        (uri(json!({ "scheme": 99 })), ". "),
        (uri(json!({})), ". Invalid uri_override."),
        (
            json!({ "headerOverrides": reserved }),
            ".headers. Header name cannot be empty or start with reserved prefixes. Invalid headers found: User-Agent, Host",
        ),
    ] {
        let message = format!("Error in parsing HttpTarget{problem}");
        invalid(set(&test, target).await, &message);
    }
    let custom = header("X-Custom", "a\r\nb");
    let set = ok(set(&test, json!({ "headerOverrides": [{}, custom] }))).await;
    assert_eq!(set["httpTarget"]["headerOverrides"], json!([custom]));
}

#[tokio::test]
async fn a_buffered_request_becomes_a_task() {
    let test = TestQueue::new(&[]).await;
    let buffer = async |path: &str| {
        let request = Request::post(format!("{path}:buffer"))
            .header("x-custom", "v")
            .header("authorization", "Bearer mine");
        let response = test.send(request, "hi").await;
        let json: Value = serde_json::from_str(&response.text).unwrap();
        (response.status.as_u16(), json)
    };
    let (tasks, named) = (&format!("{QUEUE}/tasks"), &format!("{QUEUE}/tasks/t"));
    let (_, refused) = buffer(tasks).await;
    assert_eq!(refused["error"]["status"], "FAILED_PRECONDITION");
    ok(set(&test, json!({ "uriOverride": here(&test) }))).await;
    let (_, created) = buffer(named).await;
    assert_eq!(created["task"]["name"], format!("{QUEUE_NAME}/tasks/t"));
    let seen = test.handler.wait_for(1).await;
    assert_eq!(
        (seen[0].path.as_str(), &*seen[0].body),
        ("/overridden?q=1", &b"hi"[..])
    );
    assert_eq!(seen[0].header("x-custom"), "v");
    assert!(!seen[0].headers.contains_key("authorization"));
    test.idle(false).await;
    assert_eq!(buffer(named).await.1["error"]["message"], USED_UP);
    let (_, generated) = buffer(tasks).await;
    assert!(short(&generated["task"]).parse::<u64>().is_ok());
    let (status, unknown) = buffer(&format!("{PARENT}/queues/x/tasks")).await;
    assert_eq!(
        (status, &unknown["error"]["message"]),
        (404, &json!(NO_QUEUE))
    );
}

#[tokio::test]
async fn a_task_without_an_address_goes_where_functions_are() {
    let functions = Handler::start().await;
    let settings = Settings {
        functions_url: Some(functions.url.parse().unwrap()),
        ..settings()
    };
    let test = TestQueue::of(Broker::with(settings).await, json!({})).await;
    let created = test.create(json!({ "httpRequest": {} })).await.unwrap();
    let url = format!("{}/p/l/q", functions.url);
    assert_eq!(created["httpRequest"]["url"], url);
    let seen = functions.wait_for(1).await;
    assert_eq!(seen[0].path, "/p/l/q");
}
