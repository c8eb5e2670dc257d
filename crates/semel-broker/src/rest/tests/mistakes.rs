use super::*;
use serde_json::json;

const TASKS: &str = "/v2/projects/p/locations/l/queues/q/tasks";
const QUEUES: &str = "/v2/projects/p/locations/l/queues";

/// The error of one or more mistakes: where each is, and what it says.
fn encoded(mistakes: &[(&str, &str)]) -> Value {
    let messages: Vec<_> = mistakes.iter().map(|(_, says)| *says).collect();
    let violations = mistakes.iter().map(|(field, says)| match *field {
        "" => json!({"description": says}),
        field => json!({"field": field, "description": says}),
    });
    json!({"error": {
        "code": 400,
        "message": messages.join("\n"),
        "status": "INVALID_ARGUMENT",
        "details": [{
            "@type": "type.googleapis.com/google.rpc.BadRequest",
            "fieldViolations": violations.collect::<Vec<_>>(),
        }],
    }})
}

async fn refuses(method: &str, path: &str, body: &str, mistakes: &[(&str, &str)]) {
    let rest = TestRest::new();
    let answer = rest.ask(method, path, body.to_owned()).await;
    assert_eq!(answer.status, 400, "{path} {body}");
    assert_eq!(answer.json(), encoded(mistakes), "{path} {body}");
    assert_eq!(rest.asked(), "", "{path} {body}");
}

#[tokio::test]
async fn unknown_fields_are_named_all_together() {
    let root = r#"Invalid JSON payload received. Unknown name "bogus": Cannot find field."#;
    refuses("POST", TASKS, r#"{"bogus":1}"#, &[("", root)]).await;
    let at = "task.http_request";
    let bogus = r#"Invalid JSON payload received. Unknown name "bogus" at 'task.http_request': Cannot find field."#;
    let other = r#"Invalid JSON payload received. Unknown name "other" at 'task.http_request': Cannot find field."#;
    let body = r#"{"task":{"httpRequest":{"bogus":1,"other":2}}}"#;
    refuses("POST", TASKS, body, &[(at, bogus), (at, other)]).await;
    let queue = r#"Invalid JSON payload received. Unknown name "x" at 'queue': Cannot find field."#;
    refuses("POST", QUEUES, r#"{"x":1}"#, &[("queue", queue)]).await;
    let item =
        r#"Invalid JSON payload received. Unknown name "x" at 'messages[1]': Cannot find field."#;
    let body = r#"{"messages":[{},{"x":1}]}"#;
    refuses(
        "POST",
        "/v1/projects/p/topics/t:publish",
        body,
        &[("messages[1]", item)],
    )
    .await;
}

#[tokio::test]
async fn wrong_types_are_named() {
    let mismatch = [
        (r#"{"task":{"name":5}}"#, "task.name", "(TYPE_STRING), 5"),
        (
            r#"{"responseView":"NOPE"}"#,
            "response_view",
            r#"(type.googleapis.com/google.cloud.tasks.v2.Task.View), "NOPE""#,
        ),
        (
            r#"{"task":5}"#,
            "task",
            "(type.googleapis.com/google.cloud.tasks.v2.Task), 5",
        ),
        (
            r#"{"task":{"dispatchCount":1.5}}"#,
            "task.dispatch_count",
            "(TYPE_INT32), 1.5",
        ),
        (
            r#"{"task":{"dispatchCount":3000000000}}"#,
            "task.dispatch_count",
            "(TYPE_INT32), 3000000000",
        ),
        (
            r#"{"task":{"httpRequest":{"body":"*"}}}"#,
            "task.http_request.body",
            r#"(TYPE_BYTES), Base64 decoding failed for "*""#,
        ),
        (
            r#"{"task":{"httpRequest":{"headers":{"A":1}}}}"#,
            "task.http_request.headers[0].value",
            "(TYPE_STRING), 1",
        ),
        (
            r#"{"task":{"httpRequest":{},"appEngineHttpRequest":{}}}"#,
            "task",
            "(oneof), oneof field 'message_type' is already set. Cannot set 'httpRequest'",
        ),
        (
            r#"{"task":{"dispatchDeadline":"1"}}"#,
            "task.dispatch_deadline",
            "(type.googleapis.com/google.protobuf.Duration), Field 'dispatchDeadline', Illegal duration format; duration must end with 's'",
        ),
        (
            r#"{"task":{"scheduleTime":"2026-01-01T00:00:00"}}"#,
            "task.schedule_time",
            "(type.googleapis.com/google.protobuf.Timestamp), Field 'scheduleTime', Illegal timestamp format; timestamps must end with 'Z' or have a valid timezone offset.",
        ),
        (
            r#"{"task":{"scheduleTime":"2026-13-01T00:00:00Z"}}"#,
            "task.schedule_time",
            "(type.googleapis.com/google.protobuf.Timestamp), Field 'scheduleTime', Invalid time format: 2026-13-01T00:00:00Z",
        ),
    ];
    for (body, field, what) in mismatch {
        let says = format!("Invalid value at '{field}' {what}");
        refuses("POST", TASKS, body, &[(field, &says)]).await;
    }
}

#[tokio::test]
async fn wrong_shapes_are_named() {
    let name = "Invalid JSON payload received. Unknown name";
    for (body, field, says) in [
        (
            "[]",
            "",
            format!(r#"{name} "": Root element must be a message."#),
        ),
        (
            "7",
            "",
            format!(r#"{name} "": Root element must be a message."#),
        ),
        (
            r#"{"task":[]}"#,
            "",
            format!(r#"{name} "task": Proto field is not repeating, cannot start list."#),
        ),
        (
            r#"{"task":{"name":{}}}"#,
            "task",
            format!(r#"{name} "name" at 'task': Starting an object on a scalar field."#),
        ),
    ] {
        refuses("POST", TASKS, body, &[(field, &says)]).await;
    }
}

#[tokio::test]
async fn wrong_queries_are_named() {
    let bogus = r#"Invalid JSON payload received. Unknown name "bogus": Cannot bind query parameter. Field 'bogus' could not be found in request message."#;
    refuses("GET", &format!("{QUEUES}?bogus=1"), "", &[("", bogus)]).await;
    let page = r#"Invalid value at 'page_size' (TYPE_INT32), "abc""#;
    refuses(
        "GET",
        &format!("{QUEUES}?pageSize=abc"),
        "",
        &[("page_size", page)],
    )
    .await;
}

#[tokio::test]
async fn malformed_json_is_pointed_at() {
    let rest = TestRest::new();
    for (body, says) in [
        (
            r#"{"task": ?}"#,
            "Invalid JSON payload received. Unexpected token.\n{\"task\": ?}\n         ^",
        ),
        (
            r#"{"task""#,
            "Invalid JSON payload received. Unexpected end of string.\n{\"task\"\n       ^",
        ),
    ] {
        let answer = rest.ask("POST", TASKS, body).await;
        let expected =
            json!({"error": {"code": 400, "message": says, "status": "INVALID_ARGUMENT"}});
        assert_eq!(answer.json(), expected);
    }
}

#[tokio::test]
async fn a_body_has_a_limit() {
    let rest = TestRest::new();
    let body = vec![b' '; super::super::BODY_BYTES_MAX + 1];
    let answer = rest.ask("POST", TASKS, body).await;
    assert_eq!(answer.status, 400);
    let says = "Request payload size exceeds the limit: 16777216 bytes.";
    assert_eq!(answer.json()["error"]["message"], says);
}

#[tokio::test]
async fn null_is_nothing_and_numbers_may_be_texts() {
    let rest = TestRest::new();
    let body =
        r#"{"task":{"name":null,"dispatchCount":"7","responseCount":2.0},"responseView":null}"#;
    assert_eq!(rest.ask("POST", TASKS, body).await.status, 200);
    let asked = rest.asked();
    assert!(
        asked.contains("dispatch_count: 7, response_count: 2"),
        "{asked}"
    );
}
