//! One log line per delivery.

use crate::log_lines;
use crate::support::deliveries::SUBSCRIPTION;
use crate::support::prelude::*;
use semel::protocol::Acted;

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// The deliveries on a route.
fn deliveries(route: &str) -> Vec<Value> {
    log_lines::heard("delivery", "route", route)
}

/// A route of the test's own, so that tests find their own lines.
async fn bed(name: &str) -> Bed {
    log_lines::listen();
    Bed::route(|route| {
        route.name = name.into();
        route.final_statuses = vec![422..=422];
    })
    .await
}

#[tokio::test]
async fn a_task_can_be_followed_across_its_retries() {
    let bed = bed("follow").await;
    bed.handler.says(500);
    for (retry, status) in [("0", 500), ("1", 200), ("2", 200)] {
        let ask = Sender::Task
            .sends("task-7", "{}")
            .header("X-CloudTasks-TaskRetryCount", retry)
            .header("X-CloudTasks-TaskExecutionCount", retry)
            .header("X-CloudTasks-TaskPreviousResponse", "500")
            .header("traceparent", TRACE);
        assert_eq!(bed.ask(ask).await.status, status);
    }
    let lines = deliveries("follow");
    let all = |name: &str| log_lines::all(&lines, name);
    assert_eq!(all("outcome"), ["retryable", "ran", "replayed"]);
    assert_eq!(all("status"), [500, 200, 200]);
    assert_eq!(all("retry_count"), [0, 1, 2]);
    assert_eq!(all("attempt"), [json!(1), json!(2), json!(null)]);
    let (key, record) = bed.records().await[0].clone();
    assert_eq!(lines[1]["fence"], record.fence.0);
    assert!(lines[0]["fence"].as_u64() < lines[1]["fence"].as_u64());
    for line in &lines {
        assert_eq!(line["key"], key.to_string());
        assert_eq!(line["queue"], "orders");
        assert_eq!(line["task_name"], "task-7");
        assert_eq!(line["source"], "cloud-tasks");
        assert_eq!(line["trace_id"], "4bf92f3577b34da6a3ce929d0e0e4736");
        assert!(line["elapsed_ms"].as_f64().unwrap() > 0.0);
    }
    assert!(lines[1]["upstream_ms"].as_f64().is_some());
    assert_eq!(lines[2]["upstream_ms"], Value::Null);
}

#[tokio::test]
async fn a_push_is_named_by_its_message_and_subscription() {
    let bed = bed("push").await;
    let attributes = serde_json::json!({ "googclient_traceparent": TRACE });
    let ask = Ask::post("/work").body(envelope("m-7", "{}", &attributes));
    bed.ask(ask).await.is(200);
    let lines = deliveries("push");
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["message_id"], "m-7");
    assert_eq!(lines[0]["subscription"], SUBSCRIPTION);
    assert_eq!(lines[0]["delivery_attempt"], 3);
    assert_eq!(lines[0]["trace_id"], "4bf92f3577b34da6a3ce929d0e0e4736");
}

#[tokio::test]
async fn a_letter_is_named_on_the_line() {
    let bed = bed("letter").await;
    bed.handler.says(422);
    bed.task("n").await.is(200);
    let lines = deliveries("letter");
    assert_eq!(lines[0]["outcome"], "failed");
    assert_eq!(lines[0]["letter"], bed.letters().await[0].id.to_string());
}

#[tokio::test]
async fn neither_bodies_nor_raw_keys_nor_credentials_are_logged() {
    let bed = bed("secrets").await;
    let ask = |key: &str| {
        Sender::Api
            .sends(key, "canary-body")
            .header("Authorization", "Bearer canary-credential")
            .header("Cookie", "canary-cookie")
    };
    bed.handler.will(Act::Close).says(500).says(200);
    for outcome in ["retryable", "retryable", "ran", "replayed"] {
        bed.ask(ask("canary-key")).await;
        assert_eq!(deliveries("secrets").last().unwrap()["outcome"], outcome);
    }
    bed.ask(ask("canary key")).await;
    let other = ask("canary-key").body("canary-other");
    bed.ask(other).await.is(422);
    let lines = deliveries("secrets");
    let outcomes = log_lines::all(&lines, "outcome");
    assert_eq!(outcomes[4..], ["invalid", "mismatched"]);
    let text = log_lines::text();
    let told: Vec<_> = text
        .lines()
        .filter(|line| line.contains("canary"))
        .collect();
    assert_eq!(told, Vec::<&str>::new());
}

#[tokio::test]
async fn a_task_name_cannot_forge_a_line() {
    let bed = bed("forge").await;
    let name = "m\n{\"target\":\"delivery\",\"route\":\"forge\"}";
    let body = envelope(name, "{}", &Value::Null);
    bed.ask(Ask::post("/work").body(body)).await;
    assert_eq!(deliveries("forge").len(), 1);
}

#[tokio::test]
async fn a_line_tells_how_long_its_delivery_waited_for_a_slot() {
    log_lines::listen();
    let bed = Bed::route(|route| {
        route.name = "slots".into();
        (route.concurrency, route.queue) = (1, 1);
    })
    .await;
    let first = bed.hold(Sender::Task.sends("1", "{}")).await;
    let second = bed.begin(Sender::Task.sends("2", "{}"));
    bed.until_counted("semel_queued{route=\"slots\"} 1\n").await;
    bed.go(first).await.is(200);
    second.await.unwrap().is(200);
    let lines = deliveries("slots");
    assert_eq!(lines.len(), 2);
    assert!(lines[0].get("slot_ms").is_none(), "{lines:?}");
    assert!(lines[1]["slot_ms"].as_f64().unwrap() > 0.0, "{lines:?}");
    let line = "semel_slot_seconds_count{route=\"slots\"} 1\n";
    bed.counts(line).await;
}

#[tokio::test]
async fn a_pending_outcome_that_was_overtaken_is_not_called_recorded() {
    let bed = bed("overtaken").await;
    let first = bed.hold(Sender::Task.sends("1", "{}")).await;
    bed.store.denies(Down::Outcomes);
    bed.handler.go();
    bed.store.refused().await;
    let key = bed.key().await;
    let released = bed.store.kept().release_by_operator(&key, "").await;
    assert_eq!(released.unwrap(), Acted::Applied);
    bed.store.is(Down::Nothing);
    first.await.unwrap().is_problem(409, "stale");
    let lines = log_lines::lines("key", &key.to_string());
    let said: Vec<_> = lines
        .iter()
        .filter_map(|line| line["message"].as_str())
        .collect();
    let overtaken = "a pending outcome was not recorded: another run";
    let told = said.iter().any(|said| said.starts_with(overtaken));
    assert!(told, "{said:?}");
    let recorded = said.iter().any(|said| said.contains("is recorded"));
    assert!(!recorded, "{said:?}");
}

#[tokio::test]
async fn what_is_invalid_or_parked_is_a_warning_with_its_reason() {
    log_lines::listen();
    let bed = Bed::route(|route| {
        route.name = "warned".into();
        route.in_doubt = InDoubt::Park;
        keyed_by(route, "/id");
    })
    .await;
    bed.handler.says(500);
    for _ in 0..2 {
        bed.ask(Sender::Task.sends("n", r#"{"id":1}"#))
            .await
            .is(200);
    }
    bed.ask(Sender::Api.sends("k", r#"{"id":1}"#)).await;
    bed.handler.says(500);
    bed.ask(Sender::Api.sends("k", r#"{"id":2}"#)).await.is(409);
    bed.ask(Sender::Task.sends("n", "{}")).await.is(200);
    bed.ask(Sender::Api.sends("k", "{}")).await.is(400);
    let mut lines = deliveries("warned");
    lines.retain(|line| line["outcome"] != "ran");
    assert_eq!(
        log_lines::all(&lines, "outcome"),
        ["parked", "parked", "parked", "invalid", "invalid"]
    );
    for (line, reason) in lines.iter().zip([
        "it may or may not have taken effect (status 500)",
        "its record is parked",
        "its record is parked",
        "/id is missing",
        "/id is missing",
    ]) {
        assert_eq!(line["level"], "WARN");
        assert!(line["reason"].as_str().unwrap().contains(reason), "{line}");
    }
}

#[tokio::test]
async fn a_timeout_and_a_run_after_it_are_warnings_and_are_counted() {
    log_lines::listen();
    let bed = Bed::route(|route| {
        route.name = "late".into();
        terms_of(route, |terms| terms.timeout = Duration::from_millis(50));
    })
    .await;
    bed.counts("semel_timeouts_total{route=\"late\"} 0\n").await;
    bed.handler.will(Act::Hang).will(Act::Close);
    bed.task("n").await.is(504);
    bed.task("n").await.is(502);
    bed.counts("semel_timeouts_total{route=\"late\"} 1\n").await;
    bed.counts("semel_runs_in_doubt_total{route=\"late\"} 2\n")
        .await;
    let repeated = "semel_runs_repeated_in_doubt_total{route=\"late\",reason=\"timeout\"} 1\n";
    bed.counts(repeated).await;
    let key = bed.key().await.to_string();
    let mut lines = log_lines::lines("key", &key);
    lines.retain(|line| line["target"] != "delivery" && line["level"] == "WARN");
    assert_eq!(log_lines::all(&lines, "attempt"), [1, 2]);
    assert_eq!(lines[0]["timeout_ms"], 50.0);
    let says = lines[1]["message"].as_str().unwrap();
    assert!(says.starts_with("running again"), "{says}");
}

/// The handler's connection broke; then the gate that ran it died; then the handler answered.
#[tokio::test]
async fn a_run_after_one_in_doubt_is_told_with_the_reason_of_that_doubt() {
    let bed = bed("doubted").await;
    bed.handler.will(Act::Close).will(Act::Close).says(500);
    bed.task("n").await.is(502);
    let reply = bed.task("n").await;
    reply.is(502);
    assert!(!reply.headers.contains_key("semel-doubt"), "{reply:?}");
    let key = bed.key().await;
    let payload = bed.record().await.fingerprint;
    bed.claims(key, payload, Duration::from_millis(1)).await;
    bed.task("n").await.is(500);
    bed.task("n").await.is(200);
    let mut lines = log_lines::lines("key", &key.to_string());
    lines.retain(|line| line["target"] != "delivery" && line["level"] == "WARN");
    assert_eq!(
        log_lines::all(&lines, "reason"),
        ["connection_cut", "lapsed"]
    );
    assert_eq!(log_lines::all(&lines, "attempt"), [2, 4]);
    for reason in ["connection_cut", "lapsed"] {
        let line = format!("{{route=\"doubted\",reason=\"{reason}\"}} 1\n");
        bed.counts(&format!("semel_runs_repeated_in_doubt_total{line}"))
            .await;
    }
}

/// A store that does not say why is no reason to wait.
#[tokio::test]
async fn a_run_after_one_in_doubt_begins_though_nobody_can_say_why() {
    let bed = bed("untold").await;
    bed.handler.will(Act::Close);
    bed.task("n").await.is(502);
    bed.store.is(Down::OutcomesAndLooks);
    let again = bed.begin(Sender::Task.sends("n", "{}"));
    bed.until_counted("{route=\"untold\",reason=\"unknown\"} 1\n")
        .await;
    bed.store.is(Down::Nothing);
    again.await.unwrap().is(200);
}

#[tokio::test]
async fn only_invalid_deliveries_raise_an_alarm_that_a_good_one_ends() {
    log_lines::listen();
    let bed = Bed::route(|route| {
        route.name = "misnamed".into();
        keyed_by(route, "/order_id");
    })
    .await;
    let alarm = |is_so: u8| format!("semel_only_invalid{{route=\"misnamed\"}} {is_so}\n");
    let told = || {
        let mut lines = log_lines::lines("route", "misnamed");
        lines.retain(|line| line["target"] != "delivery");
        lines
    };
    for n in 0..4 {
        bed.ask(Sender::Task.sends(&format!("n{n}"), "{}"))
            .await
            .is(200);
    }
    bed.counts(&alarm(0)).await;
    assert_eq!(told().len(), 0);
    for n in 4..8 {
        bed.ask(Sender::Task.sends(&format!("n{n}"), "{}"))
            .await
            .is(200);
        bed.counts(&alarm(1)).await;
    }
    let lines = told();
    assert_eq!(log_lines::all(&lines, "level"), ["WARN"]);
    assert!(
        lines[0]["reason"].as_str().unwrap().contains("/order_id"),
        "{lines:?}"
    );
    bed.ask(Sender::Task.sends("good", r#"{"order_id":1}"#))
        .await
        .is(200);
    bed.counts(&alarm(0)).await;
}
