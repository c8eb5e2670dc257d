use super::*;

#[tokio::test]
async fn a_request_has_the_recorded_headers() {
    let test = TestQueue::new(&[]).await;
    let headers = json!({
        "Authorization": "Bearer token",
        "content-type": "text/plain",
        "X-Custom": "value",
        "X-CloudTasks-TaskName": "spoofed",
        "x-cloudtasks-taskpreviousresponse": "200",
    });
    let request = json!({ "httpMethod": "PUT", "headers": headers, "body": "aGk=" });
    let eta = test.started + 60;
    let at = timestamp(eta).replace('Z', ".12Z");
    let task = merged(test.task_of("t", request), json!({ "scheduleTime": at }));
    test.create(task).await.unwrap();
    test.advance(61).await;
    let seen = &test.handler.wait_for(1).await[0];
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
    let names = seen.headers.get_all("x-cloudtasks-taskname");
    assert_eq!(names.iter().count(), 1);
}

#[tokio::test]
async fn retries_tell_what_came_before_as_recorded() {
    let test = TestQueue::retrying(json!({ "minBackoff": "1s", "maxBackoff": "1s" })).await;
    test.handler.answer_next(&[503, 404, 429, 500, 302]);
    test.create(test.task("t")).await.unwrap();
    for attempt in 1..=5 {
        test.landed(attempt).await;
        test.advance(1).await;
    }
    let seen = test.handler.wait_for(6).await;
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
    let has_reason =
        |it: &crate::support::Seen| it.headers.contains_key("x-cloudtasks-taskretryreason");
    assert!(seen[1..].iter().all(has_reason));
    assert_eq!(all("retryreason"), ["", "", "", "", "", ""]);
    test.idle(false).await;
    test.is_past("t").await;
    test.is_used_up("t").await;
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
        let test = TestQueue::new(&[]).await;
        test.tell_queue("pause").await;
        test.create(test.task("t")).await.unwrap();
        test.handler.answer_next(&[code]);
        test.run("t").await.unwrap();
        test.landed(1).await;
        let task = test.task_named("t").await.unwrap();
        assert_eq!(counts(&task), (1, responses), "{code}");
        let (first, last) = (&task["firstAttempt"], &task["lastAttempt"]);
        assert_eq!(last["responseStatus"]["message"], message);
        assert!(last["dispatchTime"].is_string() && last["responseTime"].is_string());
        assert_eq!(first["dispatchTime"], last["dispatchTime"]);
        assert!(first["responseStatus"].is_null());
    }
}

#[tokio::test]
async fn every_2xx_is_a_success() {
    let test = TestQueue::new(&[]).await;
    let codes = [200, 201, 202, 203, 204, 206, 226, 299];
    test.handler.answer_next(&codes);
    for _ in codes {
        test.create(test.task("")).await.unwrap();
    }
    test.landed(codes.len()).await;
    test.idle(false).await;
    assert!(test.ids().await.is_empty());
    assert!(test.history().await.iter().all(|it| it["success"] == true));
}

#[tokio::test]
async fn an_unreachable_handler_is_no_answer() {
    let test = TestQueue::new(&[]).await;
    let task = test.task_of("t", json!({ "url": "http://127.0.0.1:1/" }));
    test.create(task).await.unwrap();
    test.until_results(|results| results.first().is_some_and(|it| it != "running"))
        .await;
    test.tell_queue("pause").await;
    test.idle(false).await;
    let task = test.task_named("t").await.unwrap();
    assert_eq!(counts(&task).1, 0);
    assert_eq!(test.last_status("t").await, NO_CONNECTION);
}

#[tokio::test]
async fn a_passed_deadline_is_a_504() {
    let test = TestQueue::retrying(json!({ "minBackoff": "1s", "maxBackoff": "1s" })).await;
    test.handler.hold();
    let task = merged(test.task("t"), json!({ "dispatchDeadline": "15s" }));
    test.create(task).await.unwrap();
    test.handler.wait_for(1).await;
    test.advance(15).await;
    test.landed(1).await;
    assert_eq!(test.results().await, ["timed-out"]);
    assert_eq!(counts(&test.task_named("t").await.unwrap()), (1, 0));
    test.handler.let_go();
    test.advance(1).await;
    let seen = test.handler.wait_for(2).await;
    assert_eq!(seen[1].header("x-cloudtasks-taskpreviousresponse"), "504");
    assert_eq!(seen[1].header("x-cloudtasks-taskexecutioncount"), "0");
}

#[tokio::test]
async fn a_redirect_is_followed_with_get_within_one_attempt() {
    let test = TestQueue::new(&[]).await;
    test.handler.redirect_next(302, "/elsewhere");
    test.create(test.task("t")).await.unwrap();
    let seen = test.handler.wait_for(2).await;
    let requests: Vec<_> = seen
        .iter()
        .map(|it| (it.method.as_str(), it.path.as_str()))
        .collect();
    assert_eq!(requests, [("POST", "/work"), ("GET", "/elsewhere")]);
    test.idle(false).await;
    assert_eq!(test.history().await.len(), 1);
}

#[tokio::test]
async fn a_run_is_shown_as_recorded_and_goes_at_once() {
    let test = TestQueue::new(&[]).await;
    let later = test.create(test.later("t")).await.unwrap();
    let run = test.run("t").await.unwrap();
    assert_eq!(counts(&run), (1, 0));
    assert!(run["firstAttempt"].is_null());
    assert_eq!(run["scheduleTime"], later["scheduleTime"]);
    let last = json!({ "scheduleTime": later["scheduleTime"] });
    assert_eq!(
        (&run["lastAttempt"], &run["view"]),
        (&last, &json!("BASIC"))
    );
    let seen = test.handler.wait_for(1).await;
    let eta = micros(&later["scheduleTime"]) / 1_000_000;
    assert!(
        seen[0]
            .header("x-cloudtasks-tasketa")
            .starts_with(&eta.to_string())
    );
    test.idle(false).await;
    test.is_past("t").await;
}

#[tokio::test]
async fn a_run_works_in_a_paused_queue_and_backs_off_from_the_call() {
    let test = TestQueue::retrying(json!({ "minBackoff": "60s" })).await;
    test.tell_queue("pause").await;
    test.create(test.task("t")).await.unwrap();
    test.handler.answer_next(&[500]);
    let called = test.now_us().await;
    test.run("t").await.unwrap();
    test.landed(1).await;
    let task = test.task_named("t").await.unwrap();
    assert_eq!(counts(&task), (1, 0));
    let next = micros(&task["scheduleTime"]);
    let wait = (next - called) / 1_000_000;
    assert!((60..=61).contains(&wait), "{wait}");
    let dispatched = micros(&task["lastAttempt"]["dispatchTime"]);
    assert!(next <= dispatched + 60_000_000);
}

#[tokio::test]
async fn a_run_may_overlap_a_dispatch_and_both_are_counted() {
    let test = TestQueue::new(&[]).await;
    test.handler.hold();
    test.handler.answer_next(&[500, 500]);
    test.create(test.task("t")).await.unwrap();
    test.handler.wait_for(1).await;
    assert_eq!(counts(&test.task_named("t").await.unwrap()).0, 1);
    assert_eq!(counts(&test.run("t").await.unwrap()).0, 2);
    let seen = test.handler.wait_for(2).await;
    assert_eq!(seen[1].header("x-cloudtasks-taskretrycount"), "1");
    test.tell_queue("pause").await;
    test.handler.let_go();
    test.landed(2).await;
    assert_eq!(counts(&test.task_named("t").await.unwrap()).0, 2);
}

#[tokio::test]
async fn of_two_overlapping_dispatches_a_success_is_final() {
    let test = TestQueue::new(&[]).await;
    test.handler.hold();
    test.handler.answer_next(&[200, 500]);
    test.create(test.task("t")).await.unwrap();
    test.handler.wait_for(1).await;
    test.run("t").await.unwrap();
    test.handler.wait_for(2).await;
    test.handler.let_go();
    test.idle(false).await;
    test.is_past("t").await;
    assert!(test.ids().await.is_empty());
}

#[tokio::test]
async fn a_task_deleted_on_its_way_does_not_come_back() {
    let test = TestQueue::new(&[]).await;
    test.handler.hold();
    test.handler.answer_next(&[500]);
    test.create(test.task("t")).await.unwrap();
    test.handler.wait_for(1).await;
    test.delete_task("t").await.unwrap();
    test.handler.let_go();
    test.idle(false).await;
    test.is_past("t").await;
    assert_eq!(test.handler.seen().len(), 1);
}

#[tokio::test]
async fn tasks_of_the_future_and_paused_ones_leave_the_broker_idle() {
    let retry = json!({ "minBackoff": "60s" });
    let test = TestQueue::retrying(retry).await;
    test.create(test.later("later")).await.unwrap();
    assert!(test.busy(false).await.is_empty());
    test.handler.answer_next(&[500]);
    test.run("later").await.unwrap();
    test.landed(1).await;
    let waits = format!("{QUEUE_NAME}: 1 tasks wait for their next attempt");
    assert_eq!(test.busy(false).await, [waits]);
    test.tell_queue("pause").await;
    assert!(test.busy(false).await.is_empty());
}

#[tokio::test]
async fn a_task_that_waited_for_a_month_is_not_sent_any_more() {
    let test = TestQueue::new(&[]).await;
    test.tell_queue("pause").await;
    test.create(test.task("t")).await.unwrap();
    test.advance(31 * 86_400).await;
    test.tell_queue("resume").await;
    test.idle(false).await;
    assert!(test.handler.seen().is_empty());
    test.is_past("t").await;
}
