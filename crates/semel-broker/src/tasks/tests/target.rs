use super::*;
use crate::proto::tasks::http_request::AuthorizationHeader as Token;
use crate::proto::tasks::http_target::{AuthorizationHeader as QueueToken, Header, HeaderOverride};
use crate::proto::tasks::uri_override::{Scheme, UriOverrideEnforceMode};
use crate::proto::tasks::{
    HttpTarget, OidcToken, PathOverride, QueryOverride, UpdateQueueRequest, UriOverride,
};

fn oidc(audience: &str) -> OidcToken {
    OidcToken {
        service_account_email: "sa@p.iam.gserviceaccount.com".into(),
        audience: audience.into(),
    }
}

fn header(key: &str, value: &str) -> HeaderOverride {
    HeaderOverride {
        header: Some(Header {
            key: key.into(),
            value: value.into(),
        }),
    }
}

/// Leads to the handler.
fn here(desk: &Desk) -> UriOverride {
    let url = Url::parse(&desk.handler.url).unwrap();
    UriOverride {
        scheme: Some(Scheme::Http.into()),
        host: url.host_str().map(Into::into),
        port: url.port().map(Into::into),
        path_override: Some(PathOverride {
            path: "/overridden".into(),
        }),
        query_override: Some(QueryOverride {
            query_params: "q=1".into(),
        }),
        uri_override_enforce_mode: UriOverrideEnforceMode::Always.into(),
    }
}

async fn set(desk: &Desk, target: HttpTarget) -> Result<Queue, Status> {
    let request = UpdateQueueRequest {
        queue: Some(Queue {
            name: QUEUE.into(),
            http_target: Some(target),
            ..Queue::default()
        }),
        update_mask: None,
    };
    let set = desk.tasks.update_queue(Request::new(request)).await;
    set.map(tonic::Response::into_inner)
}

#[tokio::test]
async fn a_queues_target_is_laid_over_tasks_that_exist_already() {
    let desk = Desk::open(&[]).await;
    desk.pause().await;
    let headers = [("X-Custom", "task"), ("Content-Type", "text/plain")];
    let request = HttpRequest {
        url: "https://example.com/work".into(),
        headers: headers
            .map(|(name, value)| (name.into(), value.into()))
            .into(),
        body: "hi".into(),
        ..HttpRequest::default()
    };
    desk.create(desk.task_of("t", request)).await.unwrap();
    let target = HttpTarget {
        uri_override: Some(here(&desk)),
        http_method: HttpMethod::Put.into(),
        header_overrides: vec![header("x-custom", "queue"), header("X-Other", "queue")],
        authorization_header: Some(QueueToken::OidcToken(oidc("https://example.com/audience"))),
    };
    set(&desk, target).await.unwrap();
    desk.resume().await;
    let seen = desk.handler.wait_for(1).await;
    let seen = &seen[0];
    assert_eq!(
        (seen.method.as_str(), seen.path.as_str()),
        ("PUT", "/overridden?q=1")
    );
    assert_eq!(seen.header("x-custom"), "queue");
    assert_eq!(seen.header("x-other"), "queue");
    assert_eq!(seen.header("content-type"), "text/plain");
    assert!(seen.header("authorization").starts_with("Bearer "));
    desk.idle().await;
}

#[tokio::test]
async fn a_body_cannot_go_with_a_method_that_carries_none() {
    let desk = Desk::open(&[]).await;
    let target = HttpTarget {
        http_method: HttpMethod::Get.into(),
        ..HttpTarget::default()
    };
    set(&desk, target).await.unwrap();
    let request = HttpRequest {
        body: "hi".into(),
        ..HttpRequest::default()
    };
    let created = desk.create(desk.task_of("t", request)).await.unwrap();
    assert_eq!(sent(&created).http_method(), HttpMethod::Post);
    let history_result =
        || !desk.history().is_empty() && desk.tasks.busy().iter().any(|it| it.contains("next"));
    desk.until("no attempt was made", history_result).await;
    desk.pause().await;
    assert!(desk.handler.seen().is_empty());
    let status = desk
        .get("t")
        .await
        .unwrap()
        .last_attempt
        .unwrap()
        .response_status;
    assert_eq!(status.unwrap().message, "UNKNOWN(2): HTTP status code 0");
    desk.resume().await;
    desk.create(desk.task("without-body")).await.unwrap();
    let seen = desk.handler.wait_for(1).await;
    assert_eq!(seen[0].method, Method::GET);
}

#[tokio::test]
async fn a_new_task_takes_its_queues_token() {
    let desk = Desk::open(&[]).await;
    let target = HttpTarget {
        authorization_header: Some(QueueToken::OidcToken(oidc(""))),
        ..HttpTarget::default()
    };
    set(&desk, target).await.unwrap();
    desk.pause().await;
    let request = HttpRequest {
        url: "https://example.com/work?query".into(),
        authorization_header: Some(Token::OidcToken(oidc("other"))),
        ..HttpRequest::default()
    };
    let created = desk
        .create(desk.task_of("", request.clone()))
        .await
        .unwrap();
    let expected = Token::OidcToken(oidc("https://example.com/work?query"));
    assert_eq!(sent(&created).authorization_header, Some(expected));
    let nobody = HttpRequest {
        authorization_header: Some(Token::OidcToken(OidcToken::default())),
        ..request
    };
    let message = "service_account_email must be set.";
    refused(
        desk.create(desk.task_of("", nobody)).await,
        Code::InvalidArgument,
        message,
    );
}

#[tokio::test]
async fn a_token_names_its_audience() {
    let desk = Desk::open(&[]).await;
    let request = HttpRequest {
        authorization_header: Some(Token::OidcToken(oidc(""))),
        ..HttpRequest::default()
    };
    desk.create(desk.task_of("t", request)).await.unwrap();
    let seen = desk.handler.wait_for(1).await;
    let token = seen[0]
        .header("authorization")
        .strip_prefix("Bearer ")
        .unwrap()
        .to_owned();
    let claims = token.split('.').nth(1).unwrap();
    let claims = base64::Engine::decode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, claims);
    let claims: serde_json::Value = serde_json::from_slice(&claims.unwrap()).unwrap();
    assert_eq!(claims["aud"], format!("{}/work", desk.handler.url));
    assert_eq!(claims["email"], "sa@p.iam.gserviceaccount.com");
}

#[tokio::test]
async fn wrong_targets_are_refused_as_recorded() {
    let desk = Desk::open(&[]).await;
    let with = |uri: UriOverride| HttpTarget {
        uri_override: Some(uri),
        ..HttpTarget::default()
    };
    let host = |host: &str| UriOverride {
        host: Some(host.into()),
        ..UriOverride::default()
    };
    let port = UriOverride {
        port: Some(-1),
        ..UriOverride::default()
    };
    let scheme = UriOverride {
        scheme: Some(99),
        ..UriOverride::default()
    };
    let reserved = HttpTarget {
        header_overrides: vec![
            header("User-Agent", "v"),
            header("X-Ok", "v"),
            header("Host", "v"),
        ],
        ..HttpTarget::default()
    };
    for (target, message) in [
        (with(host("")), "Error in parsing HttpTarget. Invalid Host."),
        (
            with(host("http://example.net")),
            "Error in parsing HttpTarget. Invalid Host.",
        ),
        (
            with(host("example.net:80")),
            "Error in parsing HttpTarget. Invalid Host.",
        ),
        (
            with(host("example.net/path")),
            "Error in parsing HttpTarget. Invalid Host.",
        ),
        (
            with(port),
            "Error in parsing HttpTarget. Port number should be a positive integer.",
        ),
        (with(scheme), "Error in parsing HttpTarget. "),
        (
            with(UriOverride::default()),
            "Error in parsing HttpTarget. Invalid uri_override.",
        ),
        (
            reserved,
            "Error in parsing HttpTarget.headers. Header name cannot be empty or start with reserved prefixes. Invalid headers found: User-Agent, Host",
        ),
    ] {
        refused(set(&desk, target).await, Code::InvalidArgument, message);
    }
    let stored = HttpTarget {
        header_overrides: vec![HeaderOverride::default(), header("X-Custom", "a\r\nb")],
        ..HttpTarget::default()
    };
    let stored = set(&desk, stored).await.unwrap().http_target.unwrap();
    assert_eq!(stored.header_overrides, [header("X-Custom", "a\r\nb")]);
}

#[tokio::test]
async fn a_buffered_request_becomes_a_task() {
    let desk = Desk::open(&[]).await;
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("x-custom", "v"),
        ("authorization", "Bearer mine"),
        ("host", "broker"),
    ] {
        headers.insert(name, value.parse().unwrap());
    }
    let buffer = async |id: Option<&str>| {
        let body = Bytes::from_static(b"hi");
        desk.tasks
            .buffer(QUEUE, id, Method::POST, &headers, body)
            .await
    };
    assert_eq!(
        buffer(None).await.unwrap_err().code(),
        Code::FailedPrecondition
    );
    let target = HttpTarget {
        uri_override: Some(here(&desk)),
        ..HttpTarget::default()
    };
    set(&desk, target).await.unwrap();
    let task = buffer(Some("t")).await.unwrap();
    assert_eq!(task.name, name("t"));
    let seen = desk.handler.wait_for(1).await;
    assert_eq!(
        (seen[0].path.as_str(), &*seen[0].body),
        ("/overridden?q=1", &b"hi"[..])
    );
    assert_eq!(seen[0].header("x-custom"), "v");
    assert!(!seen[0].headers.contains_key("authorization"));
    desk.idle().await;
    refused(buffer(Some("t")).await, Code::AlreadyExists, USED_UP);
    let generated = buffer(None).await.unwrap();
    assert!(names::short(&generated.name).parse::<u64>().is_ok());
    let elsewhere = format!("{PARENT}/queues/x");
    let unknown = desk
        .tasks
        .buffer(&elsewhere, None, Method::POST, &headers, Bytes::new());
    refused(unknown.await, Code::NotFound, NO_QUEUE);
}

#[tokio::test]
async fn a_task_without_an_address_goes_where_functions_are() {
    let handler = Handler::start().await;
    let context = Context::for_test(&[]);
    let functions = Url::parse(&handler.url).unwrap();
    let tasks = Tasks::open(Arc::clone(&context), Some(functions)).unwrap();
    let desk = Desk {
        tasks,
        context,
        handler,
    };
    desk.create_queue("q", Queue::default()).await.unwrap();
    let task = Task {
        message_type: Some(MessageType::HttpRequest(Box::default())),
        ..Task::default()
    };
    let created = desk.create(task).await.unwrap();
    assert_eq!(sent(&created).url, format!("{}/p/l/q", desk.handler.url));
    let seen = desk.handler.wait_for(1).await;
    assert_eq!(seen[0].path, "/p/l/q");
}
