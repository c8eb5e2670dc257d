use super::*;

fn oidc(email: &str, audience: &str) -> Value {
    json!({ "oidcToken": { "serviceAccountEmail": email, "audience": audience } })
}

fn oauth(email: &str, scope: &str) -> Value {
    json!({ "oauthToken": { "serviceAccountEmail": email, "scope": scope } })
}

#[tokio::test]
async fn a_task_is_shown_as_recorded() {
    let setup = Setup::new(&[]).await;
    let day = timestamp(setup.started + 86_400);
    let day = day.trim_end_matches('Z');
    let given = json!({ "scheduleTime": format!("{day}.123456789Z"), "dispatchCount": 7 });
    let task = merged(setup.task_of("t", json!({ "body": "aGk=" })), given);
    let created = setup.create(task).await.unwrap();
    let expected = json!({
        "name": format!("{QUEUE_NAME}/tasks/t"),
        "httpRequest": {
            "url": format!("{}/work", setup.handler.url),
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
    assert_eq!(setup.task_named("t").await.unwrap(), created);
}

#[tokio::test]
async fn only_the_full_view_shows_the_body() {
    let setup = Setup::new(&[]).await;
    let task = setup.task_of("t", json!({ "body": "aGk=" }));
    setup.create(merged(task, setup.some_day())).await.unwrap();
    let (none, basic) = (Value::Null, json!("BASIC"));
    for (view, shown, body) in [
        (0, &basic, &none),
        (1, &basic, &none),
        (2, &json!("FULL"), &json!("aGk=")),
        (99, &none, &none),
    ] {
        let got = setup
            .get(&format!("{QUEUE}/tasks/t?responseView={view}"))
            .await
            .unwrap();
        assert_eq!(
            (&got["view"], &got["httpRequest"]["body"]),
            (shown, body),
            "{view}"
        );
    }
    let list = setup
        .get(&format!("{QUEUE}/tasks?responseView=99"))
        .await
        .unwrap();
    assert_eq!(list["tasks"][0]["view"], basic);
}

#[tokio::test]
async fn generated_ids_are_digits() {
    let setup = Setup::new(&[]).await;
    let task = setup.create(setup.later("")).await.unwrap();
    let id = short(&task);
    assert!(
        id.len() >= 17 && id.bytes().all(|it| it.is_ascii_digit()),
        "{id}"
    );
    assert_eq!(setup.task_named(id).await.unwrap()["name"], task["name"]);
}

#[tokio::test]
async fn wrong_tasks_are_refused_in_productions_words() {
    let setup = Setup::new(&[]).await;
    let url = |url: &str| setup.task_of("", json!({ "url": url }));
    let deadline = |deadline: &str| merged(setup.task(""), json!({ "dispatchDeadline": deadline }));
    let body = |method: &str| setup.task_of("", json!({ "httpMethod": method, "body": "aGk=" }));
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
        refused(setup.create(task).await, "INVALID_ARGUMENT", message);
    }
}

#[tokio::test]
async fn deadlines_are_cut_to_milliseconds_and_unknown_methods_are_post() {
    let setup = Setup::new(&[]).await;
    let task = setup.task_of("", json!({ "httpMethod": 99 }));
    let task = merged(
        merged(task, setup.some_day()),
        json!({ "dispatchDeadline": "20.123456789s" }),
    );
    let created = setup.create(task).await.unwrap();
    assert_eq!(created["dispatchDeadline"], "20.123s");
    assert_eq!(created["httpRequest"]["httpMethod"], "POST");
}

#[tokio::test]
async fn tokens_are_checked_and_filled() {
    let setup = Setup::new(&[]).await;
    let far = "https://example.googleapis.com/work";
    let near = "https://example.com/work?query";
    let task = |url: &str, token: Value| setup.task_of("", merged(json!({ "url": url }), token));
    let unset = "service_account_email must be set.";
    let invalid = "Request contains an invalid argument.";
    let host = "Invalid url for HttpRequest.oauth_token. The hostname in the url must end with \".googleapis.com\"";
    for (url, token, message) in [
        (near, oidc("", ""), unset),
        (near, oidc("malformed", ""), invalid),
        (near, oidc("a@", ""), invalid),
        (near, oidc("@b", ""), invalid),
        (near, oidc("a@b@c", ""), invalid),
        (far, oauth("", ""), unset),
        (near, oauth("a@b", ""), host),
        ("https://googleapis.com/", oauth("a@b", ""), host),
    ] {
        refused(
            setup.create(task(url, token)).await,
            "INVALID_ARGUMENT",
            message,
        );
    }
    let cloud = "https://www.googleapis.com/auth/cloud-platform";
    for (url, token, filled) in [
        (near, oidc("a@b", ""), oidc("a@b", near)),
        (near, oidc("a@b", "audience"), oidc("a@b", "audience")),
        (far, oauth("a@b", ""), oauth("a@b", cloud)),
        (far, oauth("a@b", "scope"), oauth("a@b", "scope")),
    ] {
        let task = merged(task(url, token), setup.some_day());
        let created = setup.create(task).await.unwrap();
        for name in ["oidcToken", "oauthToken"] {
            assert_eq!(created["httpRequest"][name], filled[name]);
        }
    }
}

#[tokio::test]
async fn names_of_tasks_are_checked() {
    let setup = Setup::new(&[]).await;
    setup.create(setup.later("t")).await.unwrap();
    let again = setup.create(setup.later("t")).await;
    refused(again, "ALREADY_EXISTS", "Requested entity already exists");
    let named = |name: &str| merged(setup.task(""), json!({ "name": name }));
    let other = "projects/p/locations/l/queues/other";
    let elsewhere = setup.create(named(&format!("{other}/tasks/t"))).await;
    let message = format!(
        "The queue name from request ('{QUEUE_NAME}') must be the same as the queue name in the named task ('{other}')."
    );
    refused(elsewhere, "INVALID_ARGUMENT", &message);
    let message = "Task name must be formatted: \"projects/<PROJECT_ID>/locations/<LOCATION_ID>/queues/<QUEUE_ID>/tasks/<TASK_ID>\".";
    refused(setup.create(named("t")).await, "INVALID_ARGUMENT", message);
    for id in ["unknown", "t2"] {
        refused(setup.task_named(id).await, "NOT_FOUND", NOT_FOUND);
        refused(setup.delete_task(id).await, "NOT_FOUND", NOT_FOUND);
        refused(setup.run(id).await, "NOT_FOUND", NOT_FOUND);
    }
    let run = setup
        .post(&format!("/v2/{other}/tasks/t:run"), json!({}))
        .await;
    refused(run, "NOT_FOUND", NO_QUEUE);
}

#[tokio::test]
async fn a_deleted_tasks_name_rests_for_an_hour() {
    let setup = Setup::new(&[]).await;
    setup.create(setup.later("t")).await.unwrap();
    setup.delete_task("t").await.unwrap();
    setup.is_past("t").await;
    refused(
        setup.create(setup.task("t")).await,
        "ALREADY_EXISTS",
        USED_UP,
    );
    refused(setup.delete_task("t").await, "NOT_FOUND", NOT_FOUND);
    refused(setup.run("t").await, "NOT_FOUND", NOT_FOUND);
    setup.advance(3590).await;
    refused(
        setup.create(setup.task("t")).await,
        "ALREADY_EXISTS",
        USED_UP,
    );
    setup.advance(10).await;
    refused(setup.task_named("t").await, "NOT_FOUND", NOT_FOUND);
    setup.create(setup.later("t")).await.unwrap();
}

#[tokio::test]
async fn of_two_creators_of_one_name_one_succeeds() {
    let setup = Setup::new(&[]).await;
    let create = || setup.create(setup.later("t"));
    let (one, other) = tokio::join!(create(), create());
    assert!(one.is_ok() != other.is_ok());
}

#[tokio::test]
async fn the_largest_task_fits_and_one_byte_more_does_not() {
    let setup = Setup::new(&[]).await;
    let of = |bytes: usize| {
        let body = crate::support::base64(&"x".repeat(bytes));
        let request = json!({ "url": "http://127.0.0.1:1/", "body": body });
        merged(setup.task_of("t", request), setup.some_day())
    };
    let (mut fits, mut too_large) = (1_000_000, 1_100_000);
    while too_large - fits > 1 {
        let middle = usize::midpoint(fits, too_large);
        match setup.create(of(middle)).await {
            Ok(_) => fits = middle,
            Err(it) if it.message == "Task size too large" => too_large = middle,
            Err(it) => panic!("{it:?}"),
        }
        drop(setup.delete_task("t").await);
        setup.advance(3600).await;
    }
    let beside = 1_048_569 - fits;
    assert!(
        (50..200).contains(&beside),
        "{beside} bytes beside the body"
    );
}

#[tokio::test]
async fn schedule_times_have_a_limit() {
    let setup = Setup::new(&[]).await;
    let at = |seconds| {
        merged(
            setup.task(""),
            json!({ "scheduleTime": timestamp(seconds) }),
        )
    };
    let message = "The Task.scheduleTime, 2099-12-31T16:00:00-08:00, is too far in the future. Schedule time must be no more than 720h in the future.";
    refused(
        setup.create(at(4_102_444_800)).await,
        "INVALID_ARGUMENT",
        message,
    );
    setup.create(at(setup.started + 29 * 86_400)).await.unwrap();
    setup.tell_queue("pause").await;
    let past = setup.create(at(setup.started - 3600)).await.unwrap();
    assert!(micros(&past["scheduleTime"]) >= setup.started * 1_000_000);
}

#[tokio::test]
async fn tasks_are_listed_in_pages_as_recorded() {
    let setup = Setup::new(&[]).await;
    for id in ["c", "a", "b"] {
        setup.create(setup.later(id)).await.unwrap();
    }
    let mut token = String::new();
    let mut pages = Vec::new();
    for _ in 0..3 {
        let page = setup
            .get(&format!("{QUEUE}/tasks?pageSize=2&pageToken={token}"))
            .await
            .unwrap();
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
    assert_eq!(setup.ids().await, ["a", "b", "c"]);
    let negative = setup.get(&format!("{QUEUE}/tasks?pageSize=-1")).await;
    let message = "ListTasksRequest.pageSize cannot be negative.";
    refused(negative, "INVALID_ARGUMENT", message);
}

#[tokio::test]
async fn an_app_engine_task_is_kept_and_goes_nowhere_but_here() {
    let setup = Setup::new(&[]).await;
    let task = |id: &str, host: &str| {
        json!({
            "name": format!("{QUEUE_NAME}/tasks/{id}"),
            "appEngineHttpRequest": {
                "relativeUri": "/work", "appEngineRouting": { "host": host }, "body": "aGk=",
            },
        })
    };
    let host = setup.handler.url.trim_start_matches("http://");
    setup.create(task("here", host)).await.unwrap();
    let seen = setup.handler.wait_for(1).await;
    assert_eq!(seen[0].path, "/work");
    assert_eq!(seen[0].header("x-appengine-taskname"), "here");
    let agent = "AppEngine-Google; (+http://code.google.com/appengine)";
    assert_eq!(seen[0].header("user-agent"), agent);
    setup.idle(false).await;
    setup
        .create(task("away", "service.appspot.com"))
        .await
        .unwrap();
    setup.until_results(|results| results.len() > 1).await;
    setup.tell_queue("pause").await;
    setup.idle(false).await;
    assert_eq!(setup.last_status("away").await, NO_CONNECTION);
}
