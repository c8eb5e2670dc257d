//! Input that is wrong, hostile, or not for the gate: it runs nothing and loses nothing.

use crate::support::prelude::*;

/// Deliveries of which no retry could be better.
fn hopeless() -> Vec<(Source, Ask)> {
    let post = |body: &str| Ask::post("/work").body(body.to_owned());
    let batch = "application/cloudevents-batch+json";
    let pushes = [
        "not json",
        "",
        r#"{"message":7,"subscription":"s"}"#,
        r#"{"message":{"messageId":"1","data":"&&&"},"subscription":"s"}"#,
        r#"{"message":{"data":"aGk="},"subscription":"s"}"#,
        r#"{"message":{"messageId":"1"}}"#,
    ];
    let tasks = [post("{}"), post("{}").header("X-CloudTasks-QueueName", "q")];
    let events = [
        post("{}").header("ce-id", "1"),
        post("[]").header("Content-Type", batch),
    ];
    let pushes = pushes.map(|body| (Source::PubSub, post(body)));
    let tasks = tasks.map(|ask| (Source::CloudTasks, ask));
    let events = events.map(|ask| (Source::CloudEvents, ask));
    pushes.into_iter().chain(tasks).chain(events).collect()
}

#[tokio::test]
async fn a_malformed_delivery_becomes_a_letter_with_all_that_came() {
    for (source, ask) in hopeless() {
        let bed = Bed::route(|route| route.sources = vec![source]).await;
        bed.ask(ask.clone()).await.is(200);
        let letters = bed.letters().await;
        assert_eq!(letters.len(), 1, "{ask:?}");
        assert_eq!((letters[0].reason, letters[0].key), (Reason::Invalid, None));
        assert!(letters[0].delivery.ends_with(&ask.body), "{ask:?}");
        assert_eq!(bed.runs(), 0, "{ask:?}");
        assert_eq!(bed.records().await, []);
    }
}

#[tokio::test]
async fn a_malformed_delivery_is_rejected_where_the_route_says_so() {
    for (source, ask) in hopeless() {
        let bed = Bed::route(|route| {
            route.sources = vec![source];
            route.on_invalid = OnInvalid::Reject;
        })
        .await;
        let answer = bed.ask(ask.clone()).await;
        assert_eq!(answer.status, 400, "{ask:?}");
        answer.has("content-type", "application/problem+json");
        assert_eq!((bed.runs(), bed.letters().await.len()), (0, 0), "{ask:?}");
    }
}

#[tokio::test]
async fn equal_bodies_of_different_deliveries_are_different_letters() {
    let bed = Bed::with(|settings| {
        settings.routes[0].sources = vec![Source::PubSub];
        settings.routes.push(Route {
            name: "other".into(),
            path: "/other/*".parse().unwrap(),
            ..settings.routes[0].clone()
        });
    })
    .await;
    for path in ["/work", "/work", "/other/a", "/other/b", "/other/b?x=1"] {
        // Its subscription is missing; its id tells that it came twice.
        let ask = Ask::post(path).header("X-Goog-Pubsub-Message-Id", "1");
        bed.ask(ask.body("not json")).await.is(200);
    }
    assert_eq!(bed.letters().await.len(), 4);
}

#[tokio::test]
async fn different_tasks_of_which_a_name_is_missing_are_different_letters() {
    let bed = Bed::route(|route| route.sources = vec![Source::CloudTasks]).await;
    for name in ["1", "2", "2"] {
        let ask = Sender::Task
            .sends(name, "{}")
            .without("X-CloudTasks-QueueName");
        bed.ask(ask).await.is(200);
    }
    assert_eq!((bed.runs(), bed.letters().await.len()), (0, 2));
}

#[tokio::test]
async fn a_letter_that_cannot_be_kept_leaves_an_invalid_delivery_with_its_sender() {
    let bed = Bed::route(|route| route.sources = vec![Source::PubSub]).await;
    bed.store.is(Down::Letters);
    let answer = bed.ask(Ask::post("/work").body("not json")).await;
    answer.is_problem(503, "store-unavailable");
    bed.store.is(Down::Nothing);
    bed.ask(Ask::post("/work").body("not json")).await.is(200);
    assert_eq!(bed.letters().await.len(), 1);
}

#[tokio::test]
async fn a_payload_without_a_required_part_runs_nothing() {
    let bed = Bed::route(|route| route.require = vec!["/order_id".into()]).await;
    for payload in ["{}", "not json", r#"{"order":{"order_id":1}}"#] {
        let answer = bed.ask(Sender::Api.sends("k", payload)).await;
        answer.is_problem(400, "required-part-missing");
        answer.tells("/order_id");
    }
    for sender in BROKERS {
        bed.deliver(sender, "n").await.is(200);
        assert_eq!(bed.letters().await.pop().unwrap().reason, Reason::Invalid);
        let whole = sender.sends("n", r#"{"order_id":1}"#);
        bed.ask(whole).await.is(200);
    }
    assert_eq!((bed.runs(), bed.letters().await.len()), (3, 3));
}

#[tokio::test]
async fn bad_idempotency_keys_are_refused() {
    let bed = Bed::new().await;
    let by = |key: &str| Sender::Api.sends(key, "{}");
    let cases = [
        (by("a").header("Idempotency-Key", "a"), "repeated"),
        (by(&"k".repeat(300)), "too-long"),
        (by(""), "empty"),
        (by("a b"), "characters"),
        (by("\"a"), "quotes"),
    ];
    for (ask, code) in cases {
        let code = format!("idempotency-key-{code}");
        bed.ask(ask).await.is_problem(400, &code);
    }
    assert_eq!(bed.runs(), 0);
    bed.ask(by(&"k".repeat(255))).await.is(200);
}

#[tokio::test]
async fn a_refusal_does_not_repeat_what_was_sent() {
    let bed = Bed::new().await;
    let ask = Sender::Api
        .sends("secret secret", "secret-body")
        .header("Authorization", "secret");
    let answer = bed.ask(ask).await;
    assert_eq!(answer.status, 400);
    assert!(!answer.text().contains("secret"), "{answer:?}");
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused() {
    let bed = Bed::route(|route| route.body_bytes_max = 1000).await;
    for sender in SENDERS {
        let answer = bed.ask(sender.sends("n", &"x".repeat(1001))).await;
        answer.is_problem(413, "body-too-large");
    }
    assert_eq!((bed.runs(), bed.records().await.len()), (0, 0));
    let largest = Sender::Task.sends("n", &"x".repeat(1000));
    bed.ask(largest).await.is(200);
}

#[tokio::test]
async fn a_body_that_breaks_off_runs_nothing() {
    let bed = Bed::new().await;
    let mut raw = Sender::Task.sends("n", "0123456789").raw();
    raw.truncate(raw.len() - 3);
    exchange(bed.gate, raw).await;
    assert_eq!((bed.runs(), bed.records().await.len()), (0, 0));
}

#[tokio::test]
async fn unknown_paths_and_other_methods_run_nothing() {
    let bed = Bed::route(|route| route.methods = vec![Method::POST]).await;
    for path in ["/", "/works", "/work/x"] {
        let answer = bed.ask(Sender::Task.sends("n", "{}").path(path)).await;
        answer.is_problem(404, "unknown-path");
    }
    for path in ["/work/", "/WORK"] {
        let answer = bed.ask(Sender::Task.sends("n", "{}").path(path)).await;
        answer.is_problem(400, "ambiguous-path");
    }
    for method in [Method::PUT, Method::DELETE, Method::GET] {
        let answer = bed.ask(Sender::Task.sends("n", "{}").method(method)).await;
        answer.is_problem(405, "other-method");
    }
    assert_eq!(bed.runs(), 0);
}

async fn passing() -> Bed {
    Bed::with(|settings| pass(settings, &["/static/*", "/health"])).await
}

#[tokio::test]
async fn paths_that_can_be_read_in_two_ways_are_refused() {
    let bed = passing().await;
    let ambiguous = "/static/../work /static/%2e%2e/work /static/%2E./work /static/..%2fwork \
                     /static/.%2e%5cwork //work /static//work /work/.";
    for path in ambiguous.split(' ') {
        let mut ask = Sender::Task.sends("n", "{}").raw();
        ask.splice(.."POST /work".len(), format!("POST {path}").into_bytes());
        let reply = exchange(bed.gate, &ask).await;
        reply.is_problem(path, 400, "ambiguous-path");
    }
    assert_eq!(bed.runs(), 0);
}

#[tokio::test]
async fn passed_paths_are_forwarded_as_they_are_every_time() {
    let bed = passing().await;
    for method in [Method::GET, Method::POST, Method::DELETE] {
        for run in 1..=2 {
            let ask = Ask::post("/static/a.svg?v=%31")
                .method(method.clone())
                .header("Idempotency-Key", "own")
                .header("Semel-Key", "forged")
                .body("sent");
            let seen = bed.forwards(ask).await;
            seen.is(&method, "/static/a.svg?v=%31");
            let mut names = seen.headers.iter().map(|(name, _)| name);
            assert!(!names.any(|name| name.starts_with("semel-")), "{seen:?}");
            assert_eq!(seen.header("idempotency-key"), Some("own"), "run {run}");
            assert_eq!(seen.body, "sent");
        }
    }
    bed.handler.says(404);
    bed.ask(Ask::get("/health")).await.is(404).says("said 404");
    assert_eq!((bed.runs(), bed.records().await.len()), (7, 0));
}

#[tokio::test]
async fn an_unanswered_passed_request_hears_502() {
    let bed = passing().await;
    bed.handler.will(Act::Close);
    let answer = refused(&bed, Ask::get("/health"), 502, "handler-unreachable").await;
    assert!(!answer.text().contains("Cut("), "{answer:?}");
    answer.tells("may have got");
}

#[tokio::test]
async fn an_api_client_may_look_without_a_key() {
    let bed = Bed::new().await;
    for method in [Method::GET, Method::HEAD, Method::OPTIONS] {
        for _ in 0..2 {
            let ask = Ask::get("/work?x=1").method(method.clone());
            bed.ask(ask).await.is(200);
            bed.handler.arrived().await.is(&method, "/work?x=1");
        }
    }
    assert_eq!((bed.runs(), bed.records().await.len()), (6, 0));
    let answer = bed.ask(Ask::post("/work").method(Method::DELETE)).await;
    assert_eq!(answer.status, 400);
}

#[tokio::test]
async fn a_brokers_get_is_protected() {
    for sender in [Sender::Task, Sender::Event] {
        let bed = Bed::new().await;
        let ask = || sender.sends("n", "").method(Method::GET);
        bed.ask(ask()).await.is(200);
        bed.ask(ask()).await.is_replay(200);
        assert_eq!(bed.runs(), 1);
        let seen = bed.handler.arrived().await;
        assert_eq!(seen.method, "GET");
        assert!(seen.header("semel-key").is_some());
    }
}

#[tokio::test]
async fn a_key_by_json_pointer_makes_equal_work_equal() {
    let bed = Bed::route(|route| keyed_by(route, "/order_id")).await;
    let task = |name: &str, body: &str| bed.ask(Sender::Task.sends(name, body));
    task("1", r#"{"order_id":7}"#).await.is(200);
    task("2", r#"{"order_id":7}"#).await.is_replay(200);
    task("3", r#"{"order_id":"7"}"#).await.is(200);
    assert_eq!(bed.runs(), 2);
}

#[tokio::test]
async fn a_route_keeps_its_own_upstream() {
    let other = Handler::start().await;
    let bed = Bed::with(|settings| {
        let route = route("other", "/other/*", other.address);
        settings.routes.push(route);
    })
    .await;
    let elsewhere = Sender::Task.sends("n", "{}").path("/other/x");
    bed.ask(elsewhere).await.is(200);
    assert_eq!((bed.runs(), other.count()), (0, 1));
    bed.task("n").await.is(200);
    let runs = (bed.runs(), other.count());
    assert_eq!(runs, (1, 1), "another route, another key");
}
