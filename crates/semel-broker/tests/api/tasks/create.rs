use super::*;
use crate::support::settings;
use semel_broker::Settings;

fn oidc(email: &str, audience: &str) -> Value {
    json!({ "oidcToken": { "serviceAccountEmail": email, "audience": audience } })
}

fn oauth(email: &str, scope: &str) -> Value {
    json!({ "oauthToken": { "serviceAccountEmail": email, "scope": scope } })
}

#[tokio::test]
async fn a_task_is_shown_as_recorded() {
    let test = TestQueue::new(&[]).await;
    let day = timestamp(test.started + 86_400);
    let day = day.trim_end_matches('Z');
    let given = json!({ "scheduleTime": format!("{day}.123456789Z"), "dispatchCount": 7 });
    let task = merged(test.task_of("t", json!({ "body": "aGk=" })), given);
    let created = test.create(task).await.unwrap();
    let expected = json!({
        "name": format!("{QUEUE_NAME}/tasks/t"),
        "httpRequest": {
            "url": format!("{}/work", test.handler.url),
            "httpMethod": "POST",
            "headers": { "User-Agent": "Google-Cloud-Tasks" },
            "body": "aGk=",
        },
        "scheduleTime": format!("{day}.123456Z"),
        "createTime": created["createTime"],
        "dispatchDeadline": "600s",
        "view": "FULL",
    });
    assert_eq!(created, expected);
    assert_eq!(micros(&created["createTime"]) % 1_000_000, 0);
    assert_eq!(test.task_named("t").await.unwrap(), created);
}

#[tokio::test]
async fn only_the_full_view_shows_the_body() {
    let test = TestQueue::new(&[]).await;
    let task = test.task_of("t", json!({ "body": "aGk=" }));
    test.create(merged(task, test.some_day())).await.unwrap();
    let (none, basic) = (Value::Null, json!("BASIC"));
    for (view, shown, body) in [
        (0, &basic, &none),
        (1, &basic, &none),
        (2, &json!("FULL"), &json!("aGk=")),
        (99, &none, &none),
    ] {
        let got = ok(test.get(&format!("{QUEUE}/tasks/t?responseView={view}"))).await;
        assert_eq!(
            (&got["view"], &got["httpRequest"]["body"]),
            (shown, body),
            "{view}"
        );
    }
    let list = ok(test.get(&format!("{QUEUE}/tasks?responseView=99"))).await;
    assert_eq!(list["tasks"][0]["view"], basic);
}

#[tokio::test]
async fn generated_ids_are_digits() {
    let test = TestQueue::new(&[]).await;
    let task = test.create(test.later("")).await.unwrap();
    let id = short(&task);
    assert!(
        id.len() >= 17 && id.bytes().all(|it| it.is_ascii_digit()),
        "{id}"
    );
    assert_eq!(test.task_named(id).await.unwrap()["name"], task["name"]);
}

#[tokio::test]
async fn wrong_tasks_are_refused_in_productions_words() {
    let test = TestQueue::new(&[]).await;
    let url = |url: &str| test.task_of("", json!({ "url": url }));
    let deadline = |deadline: &str| merged(test.task(""), json!({ "dispatchDeadline": deadline }));
    let body = |method: &str| test.task_of("", json!({ "httpMethod": method, "body": "aGk=" }));
    let scheme = "HttpTarget.url must start with 'http://' or 'https://'.";
    let range = "Task.dispatchDeadline must be between [15s, 30m].";
    let no_body = "Body can only be set if the http_method is POST, PUT, or PATCH.";
    for (task, message) in [
        (json!({}), "Task.payload_type is not set."),
        (json!({ "httpRequest": {} }), "HttpRequest.url is required."),
        (url("ftp://example.com/"), scheme),
        (url("example.com/"), scheme),
        (deadline("14s"), range),
        (deadline("1801s"), range),
        (body("GET"), no_body),
        (body("HEAD"), no_body),
        (body("DELETE"), no_body),
        (body("OPTIONS"), no_body),
    ] {
        invalid(test.create(task).await, message);
    }
}

#[tokio::test]
async fn deadlines_are_cut_to_milliseconds_and_unknown_methods_are_post() {
    let test = TestQueue::new(&[]).await;
    let task = test.task_of("", json!({ "httpMethod": 99 }));
    let task = merged(
        merged(task, test.some_day()),
        json!({ "dispatchDeadline": "20.123456789s" }),
    );
    let created = test.create(task).await.unwrap();
    assert_eq!(created["dispatchDeadline"], "20.123s");
    assert_eq!(created["httpRequest"]["httpMethod"], "POST");
}

#[tokio::test]
async fn tokens_are_checked_and_filled() {
    let test = TestQueue::new(&[]).await;
    let far = "https://example.googleapis.com/work";
    let near = "https://example.com/work?query";
    let task = |url: &str, token: Value| test.task_of("", merged(json!({ "url": url }), token));
    let unset = "service_account_email must be set.";
    let malformed = "Request contains an invalid argument.";
    let host = "Invalid url for HttpRequest.oauth_token. The hostname in the url must end with \".googleapis.com\"";
    for (url, token, message) in [
        (near, oidc("", ""), unset),
        (near, oidc("malformed", ""), malformed),
        (near, oidc("a@", ""), malformed),
        (near, oidc("@b", ""), malformed),
        (near, oidc("a@b@c", ""), malformed),
        (far, oauth("", ""), unset),
        (near, oauth("a@b", ""), host),
        ("https://googleapis.com/", oauth("a@b", ""), host),
    ] {
        invalid(test.create(task(url, token)).await, message);
    }
    let cloud = "https://www.googleapis.com/auth/cloud-platform";
    for (url, token, filled) in [
        (near, oidc("a@b", ""), oidc("a@b", near)),
        (near, oidc("a@b", "audience"), oidc("a@b", "audience")),
        (far, oauth("a@b", ""), oauth("a@b", cloud)),
        (far, oauth("a@b", "scope"), oauth("a@b", "scope")),
    ] {
        let task = merged(task(url, token), test.some_day());
        let created = test.create(task).await.unwrap();
        for name in ["oidcToken", "oauthToken"] {
            assert_eq!(created["httpRequest"][name], filled[name]);
        }
    }
}

#[tokio::test]
async fn names_of_tasks_are_checked() {
    let test = TestQueue::new(&[]).await;
    test.create(test.later("t")).await.unwrap();
    let again = test.create(test.later("t")).await;
    refused(again, "ALREADY_EXISTS", "Requested entity already exists");
    let named = |name: &str| merged(test.task(""), json!({ "name": name }));
    let other = "projects/p/locations/l/queues/other";
    let elsewhere = test.create(named(&format!("{other}/tasks/t"))).await;
    let message = format!(
        "The queue name from request ('{QUEUE_NAME}') must be the same as the queue name in the named task ('{other}')."
    );
    invalid(elsewhere, &message);
    let message = "Task name must be formatted: \"projects/<PROJECT_ID>/locations/<LOCATION_ID>/queues/<QUEUE_ID>/tasks/<TASK_ID>\".";
    invalid(test.create(named("t")).await, message);
    for id in ["unknown", "t2"] {
        refused(test.task_named(id).await, "NOT_FOUND", NOT_FOUND);
        refused(test.delete_task(id).await, "NOT_FOUND", NOT_FOUND);
        refused(test.run(id).await, "NOT_FOUND", NOT_FOUND);
    }
    let run = test
        .post(&format!("/v2/{other}/tasks/t:run"), json!({}))
        .await;
    refused(run, "NOT_FOUND", NO_QUEUE);
}

#[tokio::test]
async fn a_deleted_tasks_name_rests_for_an_hour() {
    let test = TestQueue::new(&[]).await;
    test.create(test.later("t")).await.unwrap();
    test.delete_task("t").await.unwrap();
    test.is_past("t").await;
    test.is_used_up("t").await;
    refused(test.delete_task("t").await, "NOT_FOUND", NOT_FOUND);
    refused(test.run("t").await, "NOT_FOUND", NOT_FOUND);
    test.advance(3590).await;
    test.is_used_up("t").await;
    test.advance(10).await;
    refused(test.task_named("t").await, "NOT_FOUND", NOT_FOUND);
    test.create(test.later("t")).await.unwrap();
}

#[tokio::test]
async fn of_two_creators_of_one_name_one_succeeds() {
    let test = TestQueue::new(&[]).await;
    let create = || test.create(test.later("t"));
    let (one, other) = tokio::join!(create(), create());
    assert!(one.is_ok() != other.is_ok());
}

#[tokio::test]
async fn the_largest_task_fits_and_one_byte_more_does_not() {
    let test = TestQueue::new(&[]).await;
    let of = |bytes: usize| {
        let body = crate::support::base64(&"x".repeat(bytes));
        let request = json!({ "url": "http://127.0.0.1:1/", "body": body });
        merged(test.task_of("t", request), test.some_day())
    };
    let (mut fits, mut too_large) = (1_000_000, 1_100_000);
    while too_large - fits > 1 {
        let middle = usize::midpoint(fits, too_large);
        match test.create(of(middle)).await {
            Ok(_) => fits = middle,
            Err(it) if it.message == "Task size too large" => too_large = middle,
            Err(it) => panic!("{it:?}"),
        }
        drop(test.delete_task("t").await);
        test.advance(3600).await;
    }
    let beside = 1_048_569 - fits;
    assert!(
        (50..200).contains(&beside),
        "{beside} bytes beside the body"
    );
}

#[tokio::test]
async fn schedule_times_have_a_limit() {
    let test = TestQueue::new(&[]).await;
    let at = |seconds| merged(test.task(""), json!({ "scheduleTime": timestamp(seconds) }));
    let message = "The Task.scheduleTime, 2099-12-31T16:00:00-08:00, is too far in the future. Schedule time must be no more than 720h in the future.";
    invalid(test.create(at(4_102_444_800)).await, message);
    test.create(at(test.started + 29 * 86_400)).await.unwrap();
    test.tell_queue("pause").await;
    let past = test.create(at(test.started - 3600)).await.unwrap();
    assert!(micros(&past["scheduleTime"]) >= test.started * 1_000_000);
}

#[tokio::test]
async fn tasks_are_listed_in_pages_as_recorded() {
    let test = TestQueue::new(&[]).await;
    for id in ["c", "a", "b"] {
        test.create(test.later(id)).await.unwrap();
    }
    let mut token = String::new();
    let mut pages = Vec::new();
    for _ in 0..3 {
        let page = ok(test.get(&format!("{QUEUE}/tasks?pageSize=2&pageToken={token}"))).await;
        token = page["nextPageToken"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        pages.push((
            page["tasks"].as_array().map_or(0, Vec::len),
            !token.is_empty(),
        ));
    }
    assert_eq!(pages, [(2, true), (1, true), (0, false)]);
    assert_eq!(test.ids().await, ["a", "b", "c"]);
    let negative = test.get(&format!("{QUEUE}/tasks?pageSize=-1")).await;
    let message = "ListTasksRequest.pageSize cannot be negative.";
    invalid(negative, message);
}

#[tokio::test]
async fn an_app_engine_task_is_kept_and_goes_nowhere_but_here() {
    let test = TestQueue::new(&[]).await;
    let task = |id: &str, host: &str| {
        json!({
            "name": format!("{QUEUE_NAME}/tasks/{id}"),
            "appEngineHttpRequest": {
                "relativeUri": "/work", "appEngineRouting": { "host": host }, "body": "aGk=",
            },
        })
    };
    let host = test.handler.url.trim_start_matches("http://");
    test.create(task("here", host)).await.unwrap();
    let seen = test.handler.wait_for(1).await;
    assert_eq!(seen[0].path, "/work");
    assert_eq!(seen[0].header("x-appengine-taskname"), "here");
    let agent = "AppEngine-Google; (+http://code.google.com/appengine)";
    assert_eq!(seen[0].header("user-agent"), agent);
    test.idle(false).await;
    ok(test.create(task("away", "service.appspot.com"))).await;
    test.until_results(|results| results.len() > 1).await;
    test.tell_queue("pause").await;
    test.idle(false).await;
    assert_eq!(test.last_status("away").await, NO_CONNECTION);
}

#[tokio::test]
async fn an_app_engine_host_is_only_a_host() {
    let test = TestQueue::new(&[]).await;
    let host = test.handler.url.trim_start_matches("http://");
    let hosts = [
        format!("user@{host}"),
        format!("{host}/before"),
        format!("{host}?a="),
        format!("{host}#"),
    ];
    for (number, host) in hosts.iter().enumerate() {
        let request = json!({ "relativeUri": "/work", "appEngineRouting": { "host": host } });
        ok(test.create(json!({ "appEngineHttpRequest": request }))).await;
        test.until_results(|results| results.len() > number).await;
    }
    test.tell_queue("pause").await;
    test.idle(false).await;
    assert!(
        test.results().await.iter().all(|it| it == "unreachable"),
        "{:?}",
        test.results().await
    );
}

#[tokio::test]
async fn an_app_engine_task_goes_where_the_broker_was_told() {
    let app = Handler::start().await;
    let settings = Settings {
        app_engine_url: Some(format!("{}/app/", app.url).parse().unwrap()),
        ..settings()
    };
    let test = TestQueue::of(Broker::with(settings).await, json!({})).await;
    let request =
        json!({ "relativeUri": "/work?a=b", "appEngineRouting": { "service": "worker" } });
    ok(test.create(json!({ "appEngineHttpRequest": request }))).await;
    let seen = app.wait_for(1).await;
    assert_eq!(seen[0].path, "/app/work?a=b");
    assert_eq!(seen[0].header("x-appengine-queuename"), "q");
}
