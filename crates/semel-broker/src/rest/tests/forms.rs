use super::*;
use crate::clock::Time;
use crate::proto;
use crate::proto::tasks::{HttpMethod, HttpRequest, Queue, Task, task};
use crate::status::{detail, detailed, error_info};
use serde_json::json;
use tonic::{Code, Status};

const TASKS: &str = "/v2/projects/p/locations/l/queues/q/tasks";
const QUEUE: &str = "/v2/projects/p/locations/l/queues/q";

fn full_queue() -> Queue {
    let queue = json!({
        "name": "projects/p/locations/l/queues/q",
        "rateLimits": {
            "maxDispatchesPerSecond": 500.0, "maxBurstSize": 100, "maxConcurrentDispatches": 1000,
        },
        "retryConfig": { "maxAttempts": -1, "minBackoff": "0.1s", "maxBackoff": "3600s" },
        "state": "RUNNING",
        "httpTarget": { "uriOverride": { "port": 8080 } },
    });
    proto::from_json(proto::QUEUE, queue)
}

#[tokio::test]
async fn answers_are_written_as_google_writes_them() {
    let rest = TestRest::new();
    rest.echo.answers(Ok(&full_queue()));
    let answer = rest.ask("GET", QUEUE, "").await;
    let expected = r#"{
  "name": "projects/p/locations/l/queues/q",
  "rateLimits": {
    "maxDispatchesPerSecond": 500,
    "maxBurstSize": 100,
    "maxConcurrentDispatches": 1000
  },
  "retryConfig": {
    "maxAttempts": -1,
    "minBackoff": "0.100s",
    "maxBackoff": "3600s"
  },
  "state": "RUNNING",
  "httpTarget": {
    "uriOverride": {
      "port": "8080"
    }
  }
}
"#;
    assert_eq!(answer.text, expected);
    rest.echo.answers(Ok(&full_queue()));
    let compact = rest
        .ask("GET", &format!("{QUEUE}?prettyPrint=false&key=abc"), "")
        .await;
    assert!(
        compact
            .text
            .ends_with(r#""state":"RUNNING","httpTarget":{"uriOverride":{"port":"8080"}}}"#)
    );
    assert_eq!(compact.json(), answer.json());
    assert_eq!(rest.ask("DELETE", QUEUE, "").await.text, "{}\n");
}

#[tokio::test]
async fn enums_are_answered_as_they_are_asked_for() {
    let rest = TestRest::new();
    for (query, state) in [
        ("", json!("RUNNING")),
        ("?alt=json", json!("RUNNING")),
        ("?$alt=json;enum-encoding=int", json!(1)),
        ("?%24alt=json%3Benum-encoding%3Dint", json!(1)),
    ] {
        rest.echo.answers(Ok(&full_queue()));
        let answer = rest.ask("GET", &format!("{QUEUE}{query}"), "").await;
        assert_eq!(answer.json()["state"], state, "{query}");
    }
}

#[tokio::test]
async fn enums_are_read_by_name_and_number() {
    let rest = TestRest::new();
    for method in [r#""PUT""#, "4", r#""4""#] {
        for name in ["httpMethod", "http_method"] {
            let body =
                format!(r#"{{"task":{{"httpRequest":{{"{name}":{method}}}}},"responseView":2}}"#);
            assert_eq!(rest.ask("POST", TASKS, body).await.status, 200);
            let asked = rest.asked();
            assert!(
                asked.contains("http_method: Put") && asked.contains("response_view: Full"),
                "{asked}"
            );
        }
    }
    for query in [
        "responseView=FULL",
        "response_view=2&pageSize=7&$.xgafv=2&fields=tasks",
    ] {
        rest.ask("GET", &format!("{TASKS}?{query}"), "").await;
        assert!(rest.asked().contains("response_view: Full"), "{query}");
    }
}

#[tokio::test]
async fn a_task_is_read_whole_and_written_whole() {
    let rest = TestRest::new();
    let kinds = ["aGk/_w==", "aGk/_w", "aGk__w=="].map(|it| it.replace('_', "/"));
    let url_safe = "aGk__w".to_owned();
    for body in kinds.iter().chain([&url_safe]) {
        let asked = json!({"task": {
            "httpRequest": {"url": "http://h/", "body": body, "headers": {"A": "b", "C": ""}},
            "scheduleTime": "2026-11-16T06:10:00.123456+02:00",
            "dispatchDeadline": "30.5s",
        }});
        assert_eq!(rest.ask("POST", TASKS, asked.to_string()).await.status, 200);
        let heard = rest.asked();
        for part in [
            r#"url: "http://h/""#,
            r#"body: b"hi?\xff""#,
            r#""A": "b""#,
            r#""C": """#,
            "seconds: 1794802200, nanos: 123456000",
            "seconds: 30, nanos: 500000000",
        ] {
            assert!(heard.contains(part), "{part}: {heard}");
        }
    }
    let request = HttpRequest {
        http_method: HttpMethod::Put.into(),
        headers: [("A".to_owned(), "\"b\"\n".to_owned())].into(),
        body: bytes::Bytes::from_static(b"hi?\xff"),
        ..HttpRequest::default()
    };
    let task = Task {
        name: "n".into(),
        message_type: Some(task::MessageType::HttpRequest(Box::new(request))),
        schedule_time: Some(Time(1_794_802_200_123_456).timestamp()),
        dispatch_count: 1,
        ..Task::default()
    };
    rest.echo.answers(Ok(&task));
    let answer = rest.ask("GET", &format!("{TASKS}/t"), "").await;
    let expected = json!({
        "name": "n",
        "httpRequest": {"httpMethod": "PUT", "headers": {"A": "\"b\"\n"}, "body": "aGk//w=="},
        "scheduleTime": "2026-11-16T04:10:00.123456Z",
        "dispatchCount": 1,
    });
    assert_eq!(answer.json(), expected);
}

#[tokio::test]
async fn masks_are_read_in_either_spelling_and_an_empty_one_is_one() {
    let rest = TestRest::new();
    for (query, mask) in [
        ("", "update_mask: None"),
        ("?updateMask=", "update_mask: Some(FieldMask { paths: [] })"),
        (
            "?updateMask=rateLimits.maxBurstSize,retry_config",
            r#"paths: ["rate_limits.max_burst_size", "retry_config"]"#,
        ),
        ("?update_mask=state%2Cname", r#"paths: ["state", "name"]"#),
        (
            "?updateMask.paths=a&updateMask.paths=b",
            r#"paths: ["a", "b"]"#,
        ),
    ] {
        rest.ask("PATCH", &format!("{QUEUE}{query}"), "{}").await;
        let asked = rest.asked();
        assert!(asked.contains(mask), "{query}: {asked}");
    }
    let body = r#"{"topic":{},"updateMask":"messageRetentionDuration"}"#;
    rest.ask("PATCH", "/v1/projects/p/topics/t", body).await;
    assert!(
        rest.asked()
            .contains(r#"paths: ["message_retention_duration"]"#)
    );
}

#[tokio::test]
async fn a_status_becomes_an_error_with_its_details() {
    let rest = TestRest::new();
    let info = error_info("R", "d", [("k", "v")]);
    let details = vec![info, detail("Unheard", &Task::default())];
    let status = detailed(Code::NotFound, "Queue does not exist.", details);
    rest.echo.answers(Err::<&Queue, _>(status));
    let answer = rest.ask("GET", QUEUE, "").await;
    assert_eq!(answer.status, 404);
    let expected = json!({"error": {
        "code": 404, "message": "Queue does not exist.", "status": "NOT_FOUND",
        "details": [{
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": "R", "domain": "d", "metadata": {"k": "v"},
        }],
    }});
    assert_eq!(answer.json(), expected);
}

#[tokio::test]
async fn each_code_has_its_http_status() {
    let rest = TestRest::new();
    for (code, http, name) in [
        (1, 499, "CANCELLED"),
        (2, 500, "UNKNOWN"),
        (3, 400, "INVALID_ARGUMENT"),
        (4, 504, "DEADLINE_EXCEEDED"),
        (5, 404, "NOT_FOUND"),
        (6, 409, "ALREADY_EXISTS"),
        (7, 403, "PERMISSION_DENIED"),
        (8, 429, "RESOURCE_EXHAUSTED"),
        (9, 400, "FAILED_PRECONDITION"),
        (10, 409, "ABORTED"),
        (11, 400, "OUT_OF_RANGE"),
        (12, 501, "UNIMPLEMENTED"),
        (13, 500, "INTERNAL"),
        (14, 503, "UNAVAILABLE"),
        (15, 500, "DATA_LOSS"),
        (16, 401, "UNAUTHENTICATED"),
    ] {
        rest.echo
            .answers(Err::<&Queue, _>(Status::new(Code::from_i32(code), "why")));
        let answer = rest.ask("GET", QUEUE, "").await;
        assert_eq!(answer.status.as_u16(), http);
        let expected = json!({"error": {"code": http, "message": "why", "status": name}});
        assert_eq!(answer.json(), expected);
    }
}
