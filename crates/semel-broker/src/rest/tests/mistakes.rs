use super::*;
use crate::table::rows;
use serde_json::json;

const TASKS: &str = "/v2/projects/p/locations/l/queues/q/tasks";
const QUEUES: &str = "/v2/projects/p/locations/l/queues";

/// A body, the field it is wrong at, and what is said.
const WRONG_TYPES: &str = r#"
    {"task":{"name":5}} | task.name | (TYPE_STRING), 5
    {"responseView":"NOPE"} | response_view | (type.googleapis.com/google.cloud.tasks.v2.Task.View), "NOPE"
    {"task":5} | task | (type.googleapis.com/google.cloud.tasks.v2.Task), 5
    {"task":{"dispatchCount":1.5}} | task.dispatch_count | (TYPE_INT32), 1.5
    {"task":{"dispatchCount":3000000000}} | task.dispatch_count | (TYPE_INT32), 3000000000
    {"task":{"httpRequest":{"body":"*"}}} | task.http_request.body | (TYPE_BYTES), Base64 decoding failed for "*"
    {"task":{"httpRequest":{"headers":{"A":1}}}} | task.http_request.headers[0].value | (TYPE_STRING), 1
    {"task":{"httpRequest":{},"appEngineHttpRequest":{}}} | task | (oneof), oneof field 'message_type' is already set. Cannot set 'httpRequest'
    {"task":{"dispatchDeadline":"1"}} | task.dispatch_deadline | (type.googleapis.com/google.protobuf.Duration), Field 'dispatchDeadline', Illegal duration format; duration must end with 's'
    {"task":{"scheduleTime":"2026-01-01T00:00:00"}} | task.schedule_time | (type.googleapis.com/google.protobuf.Timestamp), Field 'scheduleTime', Illegal timestamp format; timestamps must end with 'Z' or have a valid timezone offset.
    {"task":{"scheduleTime":"2026-13-01T00:00:00Z"}} | task.schedule_time | (type.googleapis.com/google.protobuf.Timestamp), Field 'scheduleTime', Invalid time format: 2026-13-01T00:00:00Z
"#;

const WRONG_SHAPES: &str = r#"
    [] | | "": Root element must be a message.
    7 | | "": Root element must be a message.
    {"task":[]} | | "task": Proto field is not repeating, cannot start list.
    {"task":{"name":{}}} | task | "name" at 'task': Starting an object on a scalar field.
"#;

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
    let unknown = |what: &str| {
        format!("Invalid JSON payload received. Unknown name {what}: Cannot find field.")
    };
    let root = unknown(r#""bogus""#);
    refuses("POST", TASKS, r#"{"bogus":1}"#, &[("", &root)]).await;
    let at = "task.http_request";
    let bogus = unknown(r#""bogus" at 'task.http_request'"#);
    let other = unknown(r#""other" at 'task.http_request'"#);
    let body = r#"{"task":{"httpRequest":{"bogus":1,"other":2}}}"#;
    refuses("POST", TASKS, body, &[(at, &bogus), (at, &other)]).await;
    let queue = unknown(r#""x" at 'queue'"#);
    refuses("POST", QUEUES, r#"{"x":1}"#, &[("queue", &queue)]).await;
    let item = unknown(r#""x" at 'messages[1]'"#);
    let (path, body) = (
        "/v1/projects/p/topics/t:publish",
        r#"{"messages":[{},{"x":1}]}"#,
    );
    refuses("POST", path, body, &[("messages[1]", &item)]).await;
}

#[tokio::test]
async fn wrong_types_are_named() {
    for [body, field, what] in rows(WRONG_TYPES) {
        let says = format!("Invalid value at '{field}' {what}");
        refuses("POST", TASKS, body, &[(field, &says)]).await;
    }
}

#[tokio::test]
async fn wrong_shapes_are_named() {
    for [body, field, says] in rows(WRONG_SHAPES) {
        let says = format!("Invalid JSON payload received. Unknown name {says}");
        refuses("POST", TASKS, body, &[(field, &says)]).await;
    }
}

#[tokio::test]
async fn wrong_queries_are_named() {
    let bogus = r#"Invalid JSON payload received. Unknown name "bogus": Cannot bind query parameter. Field 'bogus' could not be found in request message."#;
    let ask = |query: &str| format!("{QUEUES}?{query}");
    refuses("GET", &ask("bogus=1"), "", &[("", bogus)]).await;
    let page = r#"Invalid value at 'page_size' (TYPE_INT32), "abc""#;
    refuses("GET", &ask("pageSize=abc"), "", &[("page_size", page)]).await;
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
