//! One log line per delivery, in a process of its own because the subscriber is the process's.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may fail where it stands"
)]

mod support;

use serde_json::Value;
use std::io::Write;
use std::sync::{Arc, Mutex, OnceLock};
use support::deliveries::{SUBSCRIPTION, envelope};
use support::{Act, Ask, Bed, Sender};
use tracing_subscriber::fmt::MakeWriter;

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// What was logged, byte for byte.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Log {
    /// The log of this process, with everything in it.
    fn get() -> Self {
        static LOG: OnceLock<Log> = OnceLock::new();
        let begin = || {
            let log = Self::default();
            tracing_subscriber::fmt()
                .json()
                .with_max_level(tracing::Level::TRACE)
                .with_writer(log.clone())
                .init();
            log
        };
        LOG.get_or_init(begin).clone()
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    /// The deliveries on a route, each one line of JSON.
    fn deliveries(&self, route: &str) -> Vec<Value> {
        self.text()
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("one line is one JSON object"))
            .filter(|line| line["target"] == "delivery" && line["fields"]["route"] == route)
            .map(|line| line["fields"].clone())
            .collect()
    }
}

/// A route of the test's own, so that tests find their own lines.
async fn bed(name: &str) -> Bed {
    Bed::route(|route| {
        route.name = name.into();
        route.final_statuses = vec![422..=422];
    })
    .await
}

#[tokio::test]
async fn a_task_can_be_followed_across_its_retries() {
    let log = Log::get();
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
    let lines = log.deliveries("follow");
    let all = |name: &str| -> Vec<Value> { lines.iter().map(|line| line[name].clone()).collect() };
    assert_eq!(all("outcome"), ["retryable", "ran", "replayed"]);
    assert_eq!(all("status"), [500, 200, 200]);
    assert_eq!(all("retry_count"), [0, 1, 2]);
    assert_eq!(
        all("attempt"),
        [Value::from(1), Value::from(2), Value::Null]
    );
    let (key, record) = bed.records().await[0].clone();
    assert_eq!(lines[1]["fence"], record.fence.0);
    assert!(lines[0]["fence"].as_u64() < lines[1]["fence"].as_u64());
    for line in &lines {
        assert_eq!(line["key"], key.to_string());
        assert_eq!(
            (&line["queue"], &line["task_name"]),
            (&"orders".into(), &"task-7".into())
        );
        assert_eq!(line["source"], "cloud-tasks");
        assert_eq!(line["trace_id"], "4bf92f3577b34da6a3ce929d0e0e4736");
        assert!(line["elapsed_ms"].as_f64().unwrap() > 0.0);
    }
    assert!(lines[1]["upstream_ms"].as_f64().is_some());
    assert_eq!(lines[2]["upstream_ms"], Value::Null);
}

#[tokio::test]
async fn a_push_is_named_by_its_message_and_subscription() {
    let log = Log::get();
    let bed = bed("push").await;
    let attributes = serde_json::json!({ "googclient_traceparent": TRACE });
    let ask = Ask::post("/work").body(envelope("m-7", "{}", &attributes));
    bed.ask(ask).await.is(200);
    let lines = log.deliveries("push");
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["message_id"], "m-7");
    assert_eq!(lines[0]["subscription"], SUBSCRIPTION);
    assert_eq!(lines[0]["delivery_attempt"], 3);
    assert_eq!(lines[0]["trace_id"], "4bf92f3577b34da6a3ce929d0e0e4736");
}

#[tokio::test]
async fn a_letter_is_named_on_the_line() {
    let log = Log::get();
    let bed = bed("letter").await;
    bed.handler.says(422);
    bed.ask(Sender::Task.sends("n", "{}")).await.is(200);
    let lines = log.deliveries("letter");
    assert_eq!(lines[0]["outcome"], "failed");
    assert_eq!(lines[0]["letter"], bed.letters().await[0].id.to_string());
}

#[tokio::test]
async fn neither_bodies_nor_raw_keys_nor_credentials_are_logged() {
    let log = Log::get();
    let bed = bed("secrets").await;
    let ask = |key: &str| {
        Sender::Api
            .sends(key, "canary-body")
            .header("Authorization", "Bearer canary-credential")
            .header("Cookie", "canary-cookie")
    };
    bed.handler.will(Act::Close).says(500).says(200);
    for key in [
        "canary-key",
        "canary-key",
        "canary-key",
        "canary-key",
        "canary key",
    ] {
        bed.ask(ask(key)).await;
    }
    bed.ask(ask("canary-key").body("canary-other"))
        .await
        .is(422);
    let lines = log.deliveries("secrets");
    let outcomes: Vec<_> = lines.iter().map(|line| line["outcome"].clone()).collect();
    let expected = [
        "retryable",
        "retryable",
        "ran",
        "replayed",
        "invalid",
        "mismatched",
    ];
    assert_eq!(outcomes, expected);
    let ours: Vec<_> = log
        .text()
        .lines()
        .filter(|line| {
            line.contains("\"target\":\"semel") || line.contains("\"target\":\"delivery")
        })
        .filter(|line| line.contains("canary"))
        .map(str::to_owned)
        .collect();
    assert_eq!(ours, Vec::<String>::new());
}

#[tokio::test]
async fn a_task_name_cannot_forge_a_line() {
    let log = Log::get();
    let bed = bed("forge").await;
    let body = envelope(
        "m\n{\"target\":\"delivery\",\"fields\":{\"route\":\"forge\"}}",
        "{}",
        &Value::Null,
    );
    bed.ask(Ask::post("/work").body(body)).await;
    assert_eq!(log.deliveries("forge").len(), 1);
}

#[tokio::test]
async fn a_line_tells_how_long_its_delivery_waited_for_a_slot() {
    let log = Log::get();
    let bed = Bed::route(|route| {
        route.name = "slots".into();
        (route.concurrency, route.queue) = (1, 1);
    })
    .await;
    bed.handler
        .will(Act::Hold(support::handler::Say::new(200, "done")));
    let first = bed.begin(Sender::Task.sends("1", "{}"));
    bed.handler.arrived().await;
    let second = bed.begin(Sender::Task.sends("2", "{}"));
    support::within("a queue", async {
        while !bed
            .admin("/metrics")
            .await
            .text()
            .contains("semel_queued{route=\"slots\"} 1\n")
        {
            tokio::task::yield_now().await;
        }
    })
    .await;
    bed.handler.go();
    first.await.unwrap().is(200);
    second.await.unwrap().is(200);
    let lines = log.deliveries("slots");
    assert_eq!(lines.len(), 2);
    assert!(lines[0].get("slot_ms").is_none(), "{lines:?}");
    assert!(lines[1]["slot_ms"].as_f64().unwrap() > 0.0, "{lines:?}");
    let metrics = bed.admin("/metrics").await;
    let waited = "semel_slot_seconds_count{route=\"slots\"} 1\n";
    assert!(metrics.text().contains(waited), "{}", metrics.text());
}

#[tokio::test]
async fn a_pending_outcome_that_was_overtaken_is_not_called_recorded() {
    let log = Log::get();
    let bed = bed("overtaken").await;
    bed.handler
        .will(Act::Hold(support::handler::Say::new(200, "done")));
    let first = bed.begin(Sender::Task.sends("1", "{}"));
    bed.handler.arrived().await;
    bed.store.denies(support::Down::Outcomes);
    bed.handler.go();
    bed.store.refused().await;
    let (key, _) = bed.records().await[0];
    let released = semel::store::StoreExt::release_by_operator(bed.store.kept(), &key).await;
    assert_eq!(released.unwrap(), semel::protocol::Acted::Applied);
    bed.store.is(support::Down::Nothing);
    first.await.unwrap().is_problem(409, "stale");
    let said: Vec<_> = log
        .text()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["fields"]["key"] == key.to_string())
        .filter_map(|line| line["fields"]["message"].as_str().map(str::to_owned))
        .collect();
    assert!(
        said.iter()
            .any(|said| said.starts_with("a pending outcome was not recorded: another run")),
        "{said:?}"
    );
    assert!(
        !said.iter().any(|said| said.contains("is recorded")),
        "{said:?}"
    );
}
