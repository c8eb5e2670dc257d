use super::*;
use crate::proto::tasks::http_request::AuthorizationHeader as Token;
use crate::proto::tasks::{AppEngineHttpRequest, OAuthToken, OidcToken};

fn oidc(email: &str, audience: &str) -> Token {
    Token::OidcToken(OidcToken {
        service_account_email: email.into(),
        audience: audience.into(),
    })
}

fn oauth(email: &str, scope: &str) -> Token {
    Token::OauthToken(OAuthToken {
        service_account_email: email.into(),
        scope: scope.into(),
    })
}

fn to(url: &str, token: Token) -> HttpRequest {
    HttpRequest {
        url: url.into(),
        authorization_header: Some(token),
        ..HttpRequest::default()
    }
}

#[tokio::test]
async fn a_task_is_shown_as_recorded() {
    let desk = Desk::open(&[]).await;
    let now = desk.context.clock.now().timestamp().seconds;
    let schedule = prost_types::Timestamp {
        seconds: now + 86_400,
        nanos: 123_456_789,
    };
    let request = HttpRequest {
        body: "hi".into(),
        ..HttpRequest::default()
    };
    let task = Task {
        schedule_time: Some(schedule),
        dispatch_count: 7,
        ..desk.task_of("t", request)
    };
    let created = desk.create(task).await.unwrap();
    assert_eq!(created.name, name("t"));
    assert_eq!(created.schedule_time.unwrap().nanos, 123_456_000);
    assert_eq!(created.create_time.unwrap().nanos, 0);
    assert_eq!(created.dispatch_deadline, secs(600));
    assert_eq!((created.dispatch_count, created.response_count), (0, 0));
    assert_eq!(created.view(), View::Full);
    assert_eq!(sent(&created).headers["User-Agent"], "Google-Cloud-Tasks");
    assert_eq!(sent(&created).http_method(), HttpMethod::Post);
    assert_eq!(desk.get("t").await.unwrap(), created);
}

#[tokio::test]
async fn only_the_full_view_shows_the_body() {
    let desk = Desk::open(&[]).await;
    let request = HttpRequest {
        body: "hi".into(),
        ..HttpRequest::default()
    };
    let schedule_time = desk.later("").schedule_time;
    let task = Task {
        schedule_time,
        ..desk.task_of("t", request)
    };
    desk.create(task).await.unwrap();
    for (view, shown, body) in [(0, 1, ""), (1, 1, ""), (2, 2, "hi"), (99, 0, "")] {
        let request = GetTaskRequest {
            name: name("t"),
            response_view: view,
        };
        let got = desk
            .tasks
            .get_task(Request::new(request))
            .await
            .unwrap()
            .into_inner();
        assert_eq!(got.view, shown);
        assert_eq!(sent(&got).body, body);
    }
    let request = ListTasksRequest {
        parent: QUEUE.into(),
        response_view: 99,
        ..ListTasksRequest::default()
    };
    let list = desk.tasks.list_tasks(Request::new(request)).await.unwrap();
    assert_eq!(list.into_inner().tasks[0].view(), View::Basic);
}

#[tokio::test]
async fn generated_ids_are_digits() {
    let desk = Desk::open(&[]).await;
    let task = desk.create(desk.later("")).await.unwrap();
    let id = names::short(&task.name);
    assert!(
        id.len() >= 17 && id.bytes().all(|it| it.is_ascii_digit()),
        "{id}"
    );
    assert_eq!(desk.get(id).await.unwrap().name, task.name);
}

#[tokio::test]
async fn wrong_tasks_are_refused_in_productions_words() {
    let desk = Desk::open(&[]).await;
    let url = |url: &str| HttpRequest {
        url: url.into(),
        ..HttpRequest::default()
    };
    let deadline = |seconds| Task {
        dispatch_deadline: secs(seconds),
        ..desk.task("")
    };
    let scheme = "HttpTarget.url must start with 'http://' or 'https://'.";
    let range = "Task.dispatchDeadline must be between [15s, 30m].";
    let empty = Task {
        message_type: Some(MessageType::HttpRequest(Box::default())),
        ..Task::default()
    };
    for (task, message) in [
        (Task::default(), "Task.payload_type is not set."),
        (empty, "HttpRequest.url is required."),
        (desk.task_of("", url("ftp://example.com/")), scheme),
        (desk.task_of("", url("example.com/")), scheme),
        (deadline(14), range),
        (deadline(1801), range),
    ] {
        refused(desk.create(task).await, Code::InvalidArgument, message);
    }
    for method in [
        HttpMethod::Get,
        HttpMethod::Head,
        HttpMethod::Delete,
        HttpMethod::Options,
    ] {
        let request = HttpRequest {
            http_method: method.into(),
            body: "hi".into(),
            ..HttpRequest::default()
        };
        let message = "Body can only be set if the http_method is POST, PUT, or PATCH.";
        refused(
            desk.create(desk.task_of("", request)).await,
            Code::InvalidArgument,
            message,
        );
    }
}

#[tokio::test]
async fn deadlines_are_cut_to_milliseconds_and_unknown_methods_are_post() {
    let desk = Desk::open(&[]).await;
    let request = HttpRequest {
        http_method: 99,
        ..HttpRequest::default()
    };
    let task = Task {
        dispatch_deadline: Some(prost_types::Duration {
            seconds: 20,
            nanos: 123_456_789,
        }),
        schedule_time: desk.later("").schedule_time,
        ..desk.task_of("", request)
    };
    let created = desk.create(task).await.unwrap();
    assert_eq!(created.dispatch_deadline.unwrap().nanos, 123_000_000);
    assert_eq!(sent(&created).http_method(), HttpMethod::Post);
}

#[tokio::test]
async fn tokens_are_checked_and_filled() {
    let desk = Desk::open(&[]).await;
    let far = "https://example.googleapis.com/work";
    let near = "https://example.com/work?query";
    let refusals = [
        (to(near, oidc("", "")), "service_account_email must be set."),
        (
            to(near, oidc("malformed", "")),
            "Request contains an invalid argument.",
        ),
        (
            to(near, oidc("a@", "")),
            "Request contains an invalid argument.",
        ),
        (
            to(near, oidc("@b", "")),
            "Request contains an invalid argument.",
        ),
        (
            to(near, oidc("a@b@c", "")),
            "Request contains an invalid argument.",
        ),
        (to(far, oauth("", "")), "service_account_email must be set."),
        (
            to(near, oauth("a@b", "")),
            "Invalid url for HttpRequest.oauth_token. The hostname in the url must end with \".googleapis.com\"",
        ),
        (
            to("https://googleapis.com/", oauth("a@b", "")),
            "Invalid url for HttpRequest.oauth_token. The hostname in the url must end with \".googleapis.com\"",
        ),
    ];
    for (request, message) in refusals {
        let created = desk.create(desk.task_of("", request)).await;
        refused(created, Code::InvalidArgument, message);
    }
    let cloud = "https://www.googleapis.com/auth/cloud-platform";
    for (request, filled) in [
        (to(near, oidc("a@b", "")), oidc("a@b", near)),
        (to(near, oidc("a@b", "audience")), oidc("a@b", "audience")),
        (to(far, oauth("a@b", "")), oauth("a@b", cloud)),
        (to(far, oauth("a@b", "scope")), oauth("a@b", "scope")),
    ] {
        let schedule_time = desk.later("").schedule_time;
        let task = Task {
            schedule_time,
            ..desk.task_of("", request)
        };
        let created = desk.create(task).await.unwrap();
        assert_eq!(sent(&created).authorization_header, Some(filled));
    }
}

#[tokio::test]
async fn names_of_tasks_are_checked() {
    let desk = Desk::open(&[]).await;
    desk.create(desk.later("t")).await.unwrap();
    let again = desk.create(desk.later("t")).await;
    refused(
        again,
        Code::AlreadyExists,
        "Requested entity already exists",
    );
    let elsewhere = Task {
        name: format!("{PARENT}/queues/other/tasks/t"),
        ..desk.task("")
    };
    let message = format!(
        "The queue name from request ('{QUEUE}') must be the same as the queue name in the named task ('{PARENT}/queues/other')."
    );
    refused(
        desk.create(elsewhere).await,
        Code::InvalidArgument,
        &message,
    );
    let malformed = Task {
        name: "t".into(),
        ..desk.task("")
    };
    let message = "Task name must be formatted: \"projects/<PROJECT_ID>/locations/<LOCATION_ID>/queues/<QUEUE_ID>/tasks/<TASK_ID>\".";
    refused(desk.create(malformed).await, Code::InvalidArgument, message);
    for id in ["unknown", "t2"] {
        refused(desk.get(id).await, Code::NotFound, NOT_FOUND);
        refused(desk.delete(id).await, Code::NotFound, NOT_FOUND);
        refused(desk.run(id).await, Code::NotFound, NOT_FOUND);
    }
    let request = RunTaskRequest {
        name: format!("{PARENT}/queues/other/tasks/t"),
        response_view: 0,
    };
    refused(
        desk.tasks.run_task(Request::new(request)).await,
        Code::NotFound,
        NO_QUEUE,
    );
}

#[tokio::test]
async fn a_deleted_tasks_name_rests_for_an_hour() {
    let desk = Desk::open(&[]).await;
    desk.create(desk.later("t")).await.unwrap();
    desk.delete("t").await.unwrap();
    refused(desk.get("t").await, Code::NotFound, PAST);
    refused(
        desk.create(desk.task("t")).await,
        Code::AlreadyExists,
        USED_UP,
    );
    refused(desk.delete("t").await, Code::NotFound, NOT_FOUND);
    refused(desk.run("t").await, Code::NotFound, NOT_FOUND);
    desk.context.clock.advance(Duration::from_secs(3599));
    refused(
        desk.create(desk.task("t")).await,
        Code::AlreadyExists,
        USED_UP,
    );
    desk.context.clock.advance(Duration::from_secs(1));
    refused(desk.get("t").await, Code::NotFound, NOT_FOUND);
    desk.create(desk.later("t")).await.unwrap();
}

#[tokio::test]
async fn a_generated_name_leaves_nothing_behind() {
    let desk = Desk::open(&[]).await;
    let task = desk.create(desk.task("")).await.unwrap();
    desk.handler.wait_for(1).await;
    desk.idle().await;
    refused(
        desk.get(names::short(&task.name)).await,
        Code::NotFound,
        NOT_FOUND,
    );
    let left = desk
        .context
        .storage
        .scan(Table::Tombstones, &[], None, 10)
        .unwrap();
    assert!(left.is_empty());
}

#[tokio::test]
async fn of_two_creators_of_one_name_one_succeeds() {
    let desk = Desk::open(&[]).await;
    let (one, other) = tokio::join!(desk.create(desk.later("t")), desk.create(desk.later("t")));
    assert!(one.is_ok() != other.is_ok());
}

#[tokio::test]
async fn the_largest_task_fits_and_one_byte_more_does_not() {
    let desk = Desk::open(&[]).await;
    let of = |bytes: usize| {
        let request = HttpRequest {
            url: "http://127.0.0.1:1/".into(),
            body: vec![b'x'; bytes].into(),
            ..HttpRequest::default()
        };
        let schedule_time = desk.later("").schedule_time;
        Task {
            schedule_time,
            ..desk.task_of("t", request)
        }
    };
    let (mut fits, mut too_large) = (1_000_000, 1_100_000);
    while too_large - fits > 1 {
        let middle = usize::midpoint(fits, too_large);
        match desk.create(of(middle)).await {
            Ok(_) => fits = middle,
            Err(status) if status.message() == "Task size too large" => too_large = middle,
            Err(status) => panic!("{status}"),
        }
        drop(desk.delete("t").await);
        desk.context.clock.advance(Duration::from_secs(3600));
    }
    let stored = 1_048_569 - fits;
    assert!(
        (50..200).contains(&stored),
        "{stored} bytes beside the body"
    );
}

#[tokio::test]
async fn schedule_times_have_a_limit() {
    let desk = Desk::open(&[]).await;
    let at = |seconds| Task {
        schedule_time: Some(prost_types::Timestamp { seconds, nanos: 0 }),
        ..desk.task("")
    };
    let message = "The Task.scheduleTime, 2099-12-31T16:00:00-08:00, is too far in the future. Schedule time must be no more than 720h in the future.";
    refused(
        desk.create(at(4_102_444_800)).await,
        Code::InvalidArgument,
        message,
    );
    let now = desk.context.clock.now().timestamp().seconds;
    desk.create(at(now + 29 * 86_400)).await.unwrap();
    desk.pause().await;
    let past = desk.create(at(now - 3600)).await.unwrap();
    assert!(past.schedule_time.unwrap().seconds >= now);
}

#[tokio::test]
async fn tasks_are_listed_in_pages_as_recorded() {
    let desk = Desk::open(&[]).await;
    for id in ["c", "a", "b"] {
        desk.create(desk.later(id)).await.unwrap();
    }
    let mut token = String::new();
    let mut pages = Vec::new();
    for _ in 0..3 {
        let request = ListTasksRequest {
            parent: QUEUE.into(),
            page_size: 2,
            page_token: token,
            response_view: 0,
        };
        let page = desk.tasks.list_tasks(Request::new(request)).await.unwrap();
        let page = page.into_inner();
        pages.push((page.tasks.len(), !page.next_page_token.is_empty()));
        token = page.next_page_token;
    }
    assert_eq!(pages, [(2, true), (1, true), (0, false)]);
    assert_eq!(desk.ids().await, ["a", "b", "c"]);
    let request = ListTasksRequest {
        parent: QUEUE.into(),
        page_size: -1,
        ..ListTasksRequest::default()
    };
    let message = "ListTasksRequest.pageSize cannot be negative.";
    refused(
        desk.tasks.list_tasks(Request::new(request)).await,
        Code::InvalidArgument,
        message,
    );
}

#[tokio::test]
async fn an_app_engine_task_is_kept_and_goes_nowhere_but_here() {
    let desk = Desk::open(&[]).await;
    let host = desk.handler.url.strip_prefix("http://").unwrap().to_owned();
    let task = |id: &str, host: &str| Task {
        name: name(id),
        message_type: Some(MessageType::AppEngineHttpRequest(Box::new(
            AppEngineHttpRequest {
                relative_uri: "/work".into(),
                app_engine_routing: Some(crate::proto::tasks::AppEngineRouting {
                    host: host.into(),
                    ..Default::default()
                }),
                body: "hi".into(),
                ..AppEngineHttpRequest::default()
            },
        ))),
        ..Task::default()
    };
    desk.create(task("here", &host)).await.unwrap();
    let seen = desk.handler.wait_for(1).await;
    assert_eq!(seen[0].path, "/work");
    assert_eq!(seen[0].header("x-appengine-taskname"), "here");
    assert_eq!(seen[0].header("user-agent"), headers::APP_ENGINE_AGENT);
    desk.idle().await;
    desk.create(task("away", "service.appspot.com"))
        .await
        .unwrap();
    let retries = || {
        desk.tasks
            .busy()
            .iter()
            .any(|it| it.contains("next attempt"))
    };
    desk.until("no attempt was made", retries).await;
    let status = desk
        .get("away")
        .await
        .unwrap()
        .last_attempt
        .unwrap()
        .response_status;
    assert_eq!(status.unwrap().message, "UNKNOWN(2): HTTP status code 0");
}
