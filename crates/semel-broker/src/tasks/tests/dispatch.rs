use super::*;
use crate::history::DispatchResult as Noted;

async fn failed_once(code: u16) -> Task {
    let desk = Desk::open(&[]).await;
    desk.pause().await;
    desk.create(desk.task("t")).await.unwrap();
    desk.handler.answer_next(&[code]);
    desk.run("t").await.unwrap();
    desk.landed(1).await;
    desk.get("t").await.unwrap()
}

#[tokio::test]
async fn a_request_has_the_recorded_headers() {
    let desk = Desk::open(&[]).await;
    let headers = [
        ("Authorization", "Bearer token"),
        ("content-type", "text/plain"),
        ("X-Custom", "value"),
        ("X-CloudTasks-TaskName", "spoofed"),
        ("x-cloudtasks-taskpreviousresponse", "200"),
    ];
    let request = HttpRequest {
        http_method: HttpMethod::Put.into(),
        headers: headers
            .map(|(name, value)| (name.into(), value.into()))
            .into(),
        body: "hi".into(),
        ..HttpRequest::default()
    };
    let eta = desk.context.clock.now().timestamp().seconds + 60;
    let task = Task {
        schedule_time: Some(prost_types::Timestamp {
            seconds: eta,
            nanos: 120_000_000,
        }),
        ..desk.task_of("t", request)
    };
    desk.create(task).await.unwrap();
    desk.context.clock.advance(Duration::from_secs(61));
    let seen = desk.handler.wait_for(1).await;
    let seen = &seen[0];
    assert_eq!((seen.method.as_str(), &*seen.body), ("PUT", &b"hi"[..]));
    for (name, value) in [
        ("authorization", "Bearer token"),
        ("content-type", "text/plain"),
        ("user-agent", "Google-Cloud-Tasks"),
        ("x-cloudtasks-queuename", "q"),
        ("x-cloudtasks-tasketa", &format!("{eta}.12")),
        ("x-cloudtasks-taskexecutioncount", "0"),
        ("x-cloudtasks-taskname", "t"),
        ("x-cloudtasks-taskretrycount", "0"),
        ("x-custom", "value"),
    ] {
        assert_eq!(seen.header(name), value, "{name}");
    }
    for absent in [
        "x-cloudtasks-taskpreviousresponse",
        "x-cloudtasks-taskretryreason",
    ] {
        assert!(!seen.headers.contains_key(absent), "{absent}");
    }
    assert_eq!(
        seen.headers.get_all("x-cloudtasks-taskname").iter().count(),
        1
    );
}

#[tokio::test]
async fn retries_tell_what_came_before_as_recorded() {
    let retry = RetryConfig {
        min_backoff: secs(1),
        max_backoff: secs(1),
        ..RetryConfig::default()
    };
    let desk = Desk::retrying(retry).await;
    desk.handler.answer_next(&[503, 404, 429, 500, 302]);
    desk.create(desk.task("t")).await.unwrap();
    for attempt in 1..=5 {
        desk.landed(attempt).await;
        desk.context.clock.advance(Duration::from_secs(1));
    }
    let seen = desk.handler.wait_for(6).await;
    let all = |name: &str| {
        let name = format!("x-cloudtasks-task{name}");
        seen.iter()
            .map(|it| it.header(&name).to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(all("retrycount"), ["0", "1", "2", "3", "4", "5"]);
    assert_eq!(all("executioncount"), ["0", "0", "1", "2", "2", "3"]);
    assert_eq!(
        all("previousresponse"),
        ["", "503", "404", "429", "500", "302"]
    );
    assert!(
        seen[1..]
            .iter()
            .all(|it| it.headers.contains_key("x-cloudtasks-taskretryreason"))
    );
    assert_eq!(all("retryreason"), ["", "", "", "", "", ""]);
    desk.idle().await;
    refused(desk.get("t").await, Code::NotFound, PAST);
    refused(
        desk.create(desk.task("t")).await,
        Code::AlreadyExists,
        USED_UP,
    );
}

#[tokio::test]
async fn every_kind_of_answer_is_shown_as_recorded() {
    for (code, responses, message) in [
        (301, 1, "UNKNOWN(2): HTTP status code 301"),
        (409, 1, "ABORTED(10): HTTP status code 409"),
        (429, 1, "RESOURCE_EXHAUSTED(8): HTTP status code 429"),
        (500, 0, "INTERNAL(13): HTTP status code 500"),
        (503, 0, "UNAVAILABLE(14): HTTP status code 503"),
        (504, 0, "DEADLINE_EXCEEDED(4): HTTP status code 504"),
    ] {
        let task = failed_once(code).await;
        assert_eq!(
            (task.dispatch_count, task.response_count),
            (1, responses),
            "{code}"
        );
        let last = task.last_attempt.unwrap();
        assert_eq!(last.response_status.unwrap().message, message);
        assert!(last.dispatch_time.is_some() && last.response_time.is_some());
        let first = task.first_attempt.unwrap();
        assert_eq!(first.dispatch_time, last.dispatch_time);
        assert_eq!(first.response_status, None);
    }
}

#[tokio::test]
async fn every_2xx_is_a_success() {
    let desk = Desk::open(&[]).await;
    let codes = [200, 201, 202, 203, 204, 206, 226, 299];
    desk.handler.answer_next(&codes);
    for _ in codes {
        desk.create(desk.task("")).await.unwrap();
    }
    desk.landed(codes.len()).await;
    desk.idle().await;
    assert!(desk.ids().await.is_empty());
    assert!(
        desk.results()
            .iter()
            .all(|it| matches!(it, Noted::Answered { success: true, .. }))
    );
}

#[tokio::test]
async fn an_unreachable_handler_is_no_answer() {
    let desk = Desk::open(&[]).await;
    let request = HttpRequest {
        url: "http://127.0.0.1:1/".into(),
        ..HttpRequest::default()
    };
    desk.create(desk.task_of("t", request)).await.unwrap();
    desk.until("no attempt was made", || {
        !desk.history().is_empty() && desk.results()[0] != Noted::Running
    })
    .await;
    desk.pause().await;
    let task = desk.get("t").await.unwrap();
    assert_eq!(task.response_count, 0);
    let status = task.last_attempt.unwrap().response_status.unwrap();
    assert_eq!(status.message, "UNKNOWN(2): HTTP status code 0");
}

#[tokio::test]
async fn a_passed_deadline_is_a_504() {
    let retry = RetryConfig {
        min_backoff: secs(1),
        max_backoff: secs(1),
        ..RetryConfig::default()
    };
    let desk = Desk::retrying(retry).await;
    desk.handler.hold();
    let task = Task {
        dispatch_deadline: secs(15),
        ..desk.task("t")
    };
    desk.create(task).await.unwrap();
    desk.handler.wait_for(1).await;
    desk.context.clock.advance(Duration::from_secs(15));
    desk.landed(1).await;
    assert_eq!(desk.results(), [Noted::TimedOut]);
    let task = desk.get("t").await.unwrap();
    assert_eq!((task.dispatch_count, task.response_count), (1, 0));
    desk.handler.let_go();
    desk.context.clock.advance(Duration::from_secs(1));
    let seen = desk.handler.wait_for(2).await;
    assert_eq!(seen[1].header("x-cloudtasks-taskpreviousresponse"), "504");
    assert_eq!(seen[1].header("x-cloudtasks-taskexecutioncount"), "0");
}

#[tokio::test]
async fn a_redirect_is_followed_with_get_within_one_attempt() {
    let desk = Desk::open(&[]).await;
    desk.handler.redirect_next(302, "/elsewhere");
    desk.create(desk.task("t")).await.unwrap();
    let seen = desk.handler.wait_for(2).await;
    let requests: Vec<_> = seen
        .iter()
        .map(|it| (it.method.as_str(), it.path.as_str()))
        .collect();
    assert_eq!(requests, [("POST", "/work"), ("GET", "/elsewhere")]);
    desk.idle().await;
    assert_eq!(desk.history().len(), 1);
}

#[tokio::test]
async fn a_run_is_shown_as_recorded_and_goes_at_once() {
    let desk = Desk::open(&[]).await;
    let later = desk.create(desk.later("t")).await.unwrap();
    let run = desk.run("t").await.unwrap();
    assert_eq!((run.dispatch_count, run.response_count), (1, 0));
    assert_eq!(run.first_attempt, None);
    assert_eq!(run.schedule_time, later.schedule_time);
    let last = run.last_attempt.unwrap();
    assert_eq!(last.schedule_time, later.schedule_time);
    assert_eq!((last.dispatch_time, last.response_status), (None, None));
    assert_eq!(run.view, 1);
    let seen = desk.handler.wait_for(1).await;
    let eta = later.schedule_time.unwrap().seconds.to_string();
    assert!(seen[0].header("x-cloudtasks-tasketa").starts_with(&eta));
    desk.idle().await;
    refused(desk.get("t").await, Code::NotFound, PAST);
}

#[tokio::test]
async fn a_run_works_in_a_paused_queue_and_backs_off_from_the_call() {
    let retry = RetryConfig {
        min_backoff: secs(60),
        ..RetryConfig::default()
    };
    let desk = Desk::retrying(retry).await;
    desk.pause().await;
    desk.create(desk.task("t")).await.unwrap();
    desk.handler.answer_next(&[500]);
    let called = desk.context.clock.now();
    desk.run("t").await.unwrap();
    desk.landed(1).await;
    let task = desk.get("t").await.unwrap();
    assert_eq!((task.dispatch_count, task.response_count), (1, 0));
    let next = Time::of(&task.schedule_time.unwrap());
    let wait = next.since(called);
    assert!((60..=61).contains(&wait.as_secs()), "{wait:?}");
    let dispatched = Time::of(&task.last_attempt.unwrap().dispatch_time.unwrap());
    assert!(next <= dispatched.plus(Duration::from_secs(60)));
}

#[tokio::test]
async fn a_run_may_overlap_a_dispatch_and_both_are_counted() {
    let desk = Desk::open(&[]).await;
    desk.handler.hold();
    desk.handler.answer_next(&[500, 500]);
    desk.create(desk.task("t")).await.unwrap();
    desk.handler.wait_for(1).await;
    assert_eq!(desk.get("t").await.unwrap().dispatch_count, 1);
    assert_eq!(desk.run("t").await.unwrap().dispatch_count, 2);
    let seen = desk.handler.wait_for(2).await;
    assert_eq!(seen[1].header("x-cloudtasks-taskretrycount"), "1");
    desk.pause().await;
    desk.handler.let_go();
    desk.landed(2).await;
    assert_eq!(desk.get("t").await.unwrap().dispatch_count, 2);
}

#[tokio::test]
async fn of_two_overlapping_dispatches_a_success_is_final() {
    let desk = Desk::open(&[]).await;
    desk.handler.hold();
    desk.handler.answer_next(&[200, 500]);
    desk.create(desk.task("t")).await.unwrap();
    desk.handler.wait_for(1).await;
    desk.run("t").await.unwrap();
    desk.handler.wait_for(2).await;
    desk.handler.let_go();
    desk.idle().await;
    refused(desk.get("t").await, Code::NotFound, PAST);
    assert!(desk.ids().await.is_empty());
}

#[tokio::test]
async fn a_task_deleted_on_its_way_does_not_come_back() {
    let desk = Desk::open(&[]).await;
    desk.handler.hold();
    desk.handler.answer_next(&[500]);
    desk.create(desk.task("t")).await.unwrap();
    desk.handler.wait_for(1).await;
    desk.delete("t").await.unwrap();
    desk.handler.let_go();
    desk.idle().await;
    refused(desk.get("t").await, Code::NotFound, PAST);
    assert_eq!(desk.handler.seen().len(), 1);
}

#[tokio::test]
async fn tasks_of_the_future_and_paused_ones_leave_the_broker_idle() {
    let desk = Desk::open(&[]).await;
    desk.create(desk.later("later")).await.unwrap();
    assert!(desk.tasks.busy().is_empty());
    desk.handler.answer_next(&[500]);
    desk.run("later").await.unwrap();
    desk.landed(1).await;
    assert_eq!(
        desk.tasks.busy(),
        [format!("{QUEUE}: 1 tasks wait for their next attempt")]
    );
    desk.pause().await;
    assert!(desk.tasks.busy().is_empty());
}

#[tokio::test]
async fn a_wish_for_a_pause_is_considered_up_to_the_longest_backoff() {
    let retry = RetryConfig {
        max_backoff: secs(30),
        ..RetryConfig::default()
    };
    let queue = config::with_defaults(Queue {
        retry_config: Some(retry),
        ..Queue::default()
    });
    let failed = attempt::FailedAttempt {
        scheduled: None,
        started: Time(0),
        ended: Time(0),
        backoff_from: Time(0),
        code: 503,
    };
    for (asked, waits) in [(10, 10), (100, 30)] {
        let asked = Some(Duration::from_secs(asked));
        let mut stored = crate::proto::tasks::StoredTask::default();
        let after = attempt::failed(&mut stored, &queue.clone().unwrap(), &failed, asked);
        let at = Time(0).plus(Duration::from_secs(waits));
        assert_eq!(after, attempt::AfterFailure::Retry(at));
    }
}

#[tokio::test]
async fn a_task_that_waited_for_a_month_is_not_sent_any_more() {
    let desk = Desk::open(&[]).await;
    desk.pause().await;
    desk.create(desk.task("t")).await.unwrap();
    let day = Duration::from_secs(24 * 3600);
    desk.context.clock.advance(31 * day);
    desk.resume().await;
    desk.idle().await;
    assert!(desk.handler.seen().is_empty());
    refused(desk.get("t").await, Code::NotFound, PAST);
}
