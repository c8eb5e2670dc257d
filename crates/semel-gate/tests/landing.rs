//! Deliveries that land: acknowledged when their row is durable, and not before.

use crate::support::prelude::*;
use semel_gate::Landings;
use semel_gate::settings::{LAND_WITHIN, LandRule, Lands, OnExhausted, RecordKeeping};
use semel_landing::{FileSettings, FileSink, Landing};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A gate whose route lands in a directory.
pub(crate) struct LandingBed {
    pub(crate) bed: Bed,
    home: TempDir,
}

impl LandingBed {
    /// Without records.
    pub(crate) async fn stateless(lands: Lands, change: impl FnOnce(&mut Route)) -> Self {
        let bed = Self::recorded(lands, |route| {
            route.record = RecordKeeping::None;
            route.on_exhausted = OnExhausted::Nack;
            change(route);
        });
        bed.await
    }

    async fn recorded(lands: Lands, change: impl FnOnce(&mut Route)) -> Self {
        Self::with(lands, |settings| change(&mut settings.routes[0])).await
    }

    pub(crate) async fn with(lands: Lands, change: impl FnOnce(&mut Settings)) -> Self {
        let home = TempDir::new().unwrap();
        let sink = FileSink::open(FileSettings::new(directory(&home))).unwrap();
        let landings = Landings::from([("work".to_owned(), Landing::begin(sink))]);
        let handler = Handler::start().await;
        let bed = Bed::landing(Arc::default(), handler, &landings, |settings| {
            let route = &mut settings.routes[0];
            route.on_invalid = OnInvalid::Land;
            route.land = Some(LandRule {
                lands,
                version: None,
                within: LAND_WITHIN,
            });
            change(settings);
        });
        let bed = bed.await;
        Self { bed, home }
    }

    /// Nothing can land from now on.
    pub(crate) fn lose_directory(&self) {
        std::fs::remove_dir_all(directory(&self.home)).unwrap();
    }

    /// From now on rows land again.
    pub(crate) fn restore_directory(&self) {
        std::fs::create_dir_all(directory(&self.home).join("faults")).unwrap();
    }

    /// Stops the gate; the rows and the faults that a reader finds then.
    async fn rows(self) -> (Vec<Value>, Vec<Value>) {
        let (served, ..) = self.bed.stop();
        served.await.unwrap();
        let directory = directory(&self.home);
        (read(&directory), read(&directory.join("faults")))
    }
}

fn directory(home: &TempDir) -> PathBuf {
    home.path().join("landing")
}

fn read(directory: &Path) -> Vec<Value> {
    let mut rows = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|it| it == "jsonl") {
            let text = std::fs::read_to_string(path).unwrap();
            rows.extend(text.lines().map(|line| serde_json::from_str(line).unwrap()));
        }
    }
    rows
}

fn column<'a>(rows: &'a [Value], name: &str) -> Vec<&'a Value> {
    rows.iter().map(|row| &row[name]).collect()
}

#[tokio::test]
async fn every_delivery_is_a_row_and_no_handler_is_called() {
    for sender in SENDERS {
        let land = LandingBed::stateless(Lands::Delivery, |_| {}).await;
        land.bed.store.is(Down::Everything);
        let payload = "{\"order\":\n7, \"note\": \"\\u00e9\\\\\"}";
        for _ in 0..2 {
            let ask = sender.sends("n", payload);
            land.bed.ask(ask).await.is(204);
        }
        assert_eq!(land.bed.runs(), 0);
        let counted = "semel_landed_rows_total{route=\"work\"} 2";
        land.bed.counts(counted).await;
        let (rows, faults) = land.rows().await;
        assert_eq!((rows.len(), faults.len()), (2, 0), "{sender:?}");
        let (one, other) = (&rows[0], &rows[1]);
        assert_eq!(one["payload"], payload);
        assert_eq!(one["event_id"].as_str().unwrap().len(), 67);
        assert_eq!(one["version"], 0);
        for same in ["event_id", "fingerprint", "message_id", "source"] {
            assert_eq!(one[same], other[same], "{same}");
        }
        assert_ne!(one["delivery_id"], other["delivery_id"]);
    }
}

#[tokio::test]
async fn the_answer_lands_beside_its_delivery_and_reaches_the_sender() {
    let land = LandingBed::stateless(Lands::Answer, |_| {}).await;
    land.bed.handler.answers(Say::new(201, "{\"total\": 9}"));
    let ask = Sender::Push
        .sends("m", "{}")
        .header("Accept-Encoding", "gzip");
    land.bed.ask(ask).await.is(201).says("{\"total\": 9}");
    let seen = land.bed.handler.arrived().await;
    assert_eq!(seen.header("accept-encoding"), None);
    let key = seen.header("semel-key").unwrap().to_owned();
    let delivery = seen.header("semel-delivery").unwrap().to_owned();
    let (rows, _) = land.rows().await;
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["event_id"], key);
    assert_eq!(rows[0]["delivery_id"], delivery);
    assert_eq!(
        (&rows[0]["answer_status"], &rows[0]["answer"]),
        (&json!(201), &json!("{\"total\": 9}"))
    );
    assert_eq!(
        (&rows[0]["attempt"], &rows[0]["message_id"]),
        (&json!(3), &json!("m"))
    );
}

#[tokio::test]
async fn a_failure_passes_unlanded_and_an_answer_is_never_cut_short() {
    let land = LandingBed::stateless(Lands::Answer, |route| route.answer_bytes_max = 10).await;
    land.bed.handler.says(500).says(422);
    land.bed.task("t").await.is(500);
    land.bed.task("t").await.is(422);
    land.bed.handler.answers(Say::new(200, "12345678901"));
    let ask = Sender::Task.sends("t", "{}");
    refused(&land.bed, ask, 502, "answer-too-large").await;
    land.bed.handler.answers(Say::new(200, "1234567890"));
    land.bed.task("t").await.is(200);
    let (rows, faults) = land.rows().await;
    assert_eq!(column(&rows, "answer"), ["1234567890"]);
    assert!(faults.is_empty());
}

#[tokio::test]
async fn a_version_is_read_from_the_payload() {
    let land = LandingBed::stateless(Lands::Delivery, |route| {
        route.land.as_mut().unwrap().version = Some("/v".into());
    })
    .await;
    let most = i64::MAX.to_string();
    for good in [
        "{}",
        "{\"v\": null}",
        "{\"v\": 7}",
        "{\"v\": -3}",
        &format!("{{\"v\": {most}}}"),
    ] {
        land.bed.ask(Sender::Task.sends("t", good)).await.is(204);
    }
    for bad in [
        "\"7\"",
        "1.5",
        "[1]",
        "9223372036854775808",
        "-9223372036854775808",
    ] {
        let ask = Sender::Task.sends("t", &format!("{{\"v\": {bad}}}"));
        land.bed.ask(ask).await.is(200);
    }
    let (rows, faults) = land.rows().await;
    assert_eq!(
        column(&rows, "version"),
        [
            &json!(0),
            &json!(0),
            &json!(7),
            &json!(-3),
            &json!(i64::MAX)
        ]
    );
    assert_eq!(column(&faults, "fault"), ["version-malformed"; 5]);
}

#[tokio::test]
async fn what_is_invalid_lands_among_the_faults_and_api_clients_hear_so() {
    let land = LandingBed::stateless(Lands::Answer, |route| keyed_by(route, "/order")).await;
    for sender in BROKERS {
        land.bed.ask(sender.sends("n", "{}")).await.is(200);
    }
    // No envelope at all: the whole body is kept.
    let broken = Ask::post("/work")
        .header("X-CloudTasks-QueueName", "q")
        .body("\u{0}oops");
    land.bed.ask(broken).await.is(200);
    refused(
        &land.bed,
        Sender::Api.sends("n", "{}"),
        400,
        "key-part-missing",
    )
    .await;
    let bytes = Sender::Task.sends("n", "{\"order\": 7}");
    land.bed.handler.answers(Say::new(200, vec![0xff]));
    land.bed.ask(bytes).await.is(200);
    let counted = "semel_deliveries_total{route=\"work\",outcome=\"invalid\"} 5";
    land.bed.counts(counted).await;
    let (rows, faults) = land.rows().await;
    assert!(rows.is_empty());
    assert_eq!(
        column(&faults, "fault"),
        [
            "key-part-missing",
            "key-part-missing",
            "key-part-missing",
            "cloud-tasks-no-task-name",
            "answer-not-text"
        ]
    );
    assert_eq!(faults[3]["payload_base64"], "AG9vcHM=");
    assert_eq!(faults[4]["answer_base64"], "/w==");
    assert_eq!(faults[0]["event_id"], Value::Null);
}

#[tokio::test]
async fn what_does_not_land_is_not_acknowledged() {
    for (lands, runs) in [(Lands::Delivery, 0), (Lands::Answer, 4)] {
        let land = LandingBed::stateless(lands, |route| keyed_by(route, "/order")).await;
        land.lose_directory();
        for sender in SENDERS {
            let ask = sender.sends("n", "{\"order\": 7}");
            let answer = refused(&land.bed, ask, 503, "not-landed").await;
            answer.has("retry-after", "1");
        }
        let ask = Sender::Task.sends("n", "{}");
        refused(&land.bed, ask, 503, "not-landed")
            .await
            .has("retry-after", "1");
        assert_eq!(land.bed.runs(), runs);
        land.bed
            .counts("semel_landing_failures_total{route=\"work\"} 5")
            .await;
        assert_eq!(land.bed.admin("/readyz").await.status, 503);
        land.restore_directory();
        let ask = Sender::Task.sends("n", "{\"order\": 7}");
        let status = land.bed.ask(ask).await.status;
        assert!([200, 204].contains(&status), "{status}");
        assert_eq!(land.bed.admin("/readyz").await.status, 200);
        assert_eq!(land.rows().await.0.len(), 1);
    }
}

#[tokio::test]
async fn ready_means_that_one_route_can_work() {
    let land = LandingBed::with(Lands::Delivery, |settings| {
        let route = &mut settings.routes[0];
        route.record = RecordKeeping::None;
        route.on_exhausted = OnExhausted::Nack;
        let recorded = Route {
            name: "recorded".into(),
            path: "/recorded".parse().unwrap(),
            record: RecordKeeping::Store,
            on_invalid: OnInvalid::Letter,
            land: None,
            ..route.clone()
        };
        settings.routes.push(recorded);
    });
    let land = land.await;
    let ready = async || {
        let ready = land.bed.admin("/readyz").await;
        (ready.status, ready.text().to_owned())
    };
    let partly = "ready, but not every route; the log says why\n".to_owned();
    let store = "the store does not take writes; the log says why\n".to_owned();
    assert_eq!(ready().await, (200, "ready\n".into()));
    land.bed.store.is(Down::Everything);
    assert_eq!(ready().await, (200, partly.clone()));
    land.lose_directory();
    assert_eq!(ready().await, (503, store));
    land.bed.store.is(Down::Nothing);
    assert_eq!(ready().await, (200, partly));
    land.restore_directory();
    assert_eq!(ready().await, (200, "ready\n".into()));
}

#[tokio::test]
async fn with_records_a_duplicate_lands_no_second_row() {
    let land = LandingBed::recorded(Lands::Answer, |_| {}).await;
    land.bed.handler.answers(Say::new(200, "billed"));
    land.bed.task("t").await.is(200).says("billed");
    land.bed.task("t").await.is_replay(200);
    assert_eq!((land.bed.runs(), land.bed.letters().await.len()), (1, 0));
    let (rows, _) = land.rows().await;
    assert_eq!(column(&rows, "answer"), ["billed"]);
}

#[tokio::test]
async fn with_records_a_run_has_succeeded_when_its_row_has_landed() {
    let land = LandingBed::recorded(Lands::Answer, |_| {}).await;
    land.lose_directory();
    let ask = Sender::Task.sends("t", "{}");
    refused(&land.bed, ask, 503, "not-landed").await;
    assert_eq!(land.bed.record().await.state, State::Waiting);
    land.restore_directory();
    land.bed.task("t").await.is(200);
    assert_eq!(land.bed.record().await.state, State::Succeeded);
    assert_eq!(land.bed.runs(), 2);
    assert_eq!(land.rows().await.0.len(), 1);
}

#[tokio::test]
async fn a_row_that_is_late_is_not_acknowledged() {
    let land = LandingBed::stateless(Lands::Delivery, |route| {
        route.land.as_mut().unwrap().within = Duration::ZERO;
    })
    .await;
    let ask = Sender::Task.sends("t", "{}");
    refused(&land.bed, ask, 503, "not-landed").await;
}
