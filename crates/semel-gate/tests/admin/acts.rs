//! Records: what is shown of them, and what each act does.

use super::support::handler::Say;
use super::support::{Act, Ask, Bed, Sender};
use super::{act, log, look, resolve, strict, the_key, told};
use std::collections::BTreeSet;

const ABSENT: &str = "v1_0000000000000000000000000000000000000000000000000000000000000000";

#[tokio::test]
async fn a_list_is_walked_in_pages_and_by_state() {
    let bed = strict().await;
    for name in ["a", "b", "c", "d"] {
        bed.ask(Sender::Task.sends(name, "payload")).await;
    }
    bed.handler.says(500);
    bed.ask(Sender::Task.sends("e", "payload")).await;

    let (mut keys, mut after, mut pages) = (BTreeSet::new(), String::new(), 0);
    loop {
        let page = look(&bed, &format!("/records?limit=2{after}")).await;
        let records = page.json["records"].as_array().unwrap();
        assert!(records.len() <= 2, "{page:?}");
        for record in records {
            assert!(keys.insert(record["key"].as_str().unwrap().to_owned()));
            assert!(record.get("owner").is_none() && record.get("outcome").is_none());
        }
        pages += 1;
        match page.json["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert_eq!((keys.len(), pages), (5, 3));

    let parked = look(&bed, "/records?state=parked").await;
    let records = parked.json["records"].as_array().unwrap();
    assert_eq!(records.len(), 1, "{parked:?}");
    assert_eq!(records[0]["state"], "parked");
    // It never expires.
    assert!(records[0]["expires_at"].is_null(), "{parked:?}");
    let succeeded = look(&bed, "/records?state=succeeded").await;
    assert_eq!(succeeded.json["records"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn a_question_that_makes_no_sense_is_refused_by_name() {
    let bed = strict().await;
    for (path, error) in [
        ("/records?state=done", "\"done\" is no state"),
        ("/records?limit=0", "limit 0 is not between 1 and 1000"),
        ("/records?limit=1001", "limit 1001 is not between"),
        ("/records?limit=x", "invalid digit"),
        ("/records?after=xyz", "\"xyz\" is no cursor"),
        ("/records?sate=parked", "unknown field `sate`"),
        ("/letters?state=parked", "letters have a reason"),
        ("/records/v1_12", "\"v1_12\" is no key"),
        ("/records/42?body=true", "\"42\" is no key"),
        ("/letters/12", "\"12\" is no letter's id"),
    ] {
        look(&bed, path).await.refused(400, error);
    }
    look(&bed, &format!("/records/{ABSENT}"))
        .await
        .refused(404, "no record of this key: it is absent or expired");
    look(&bed, "/elsewhere")
        .await
        .refused(404, "nothing has this path");
    act(&bed, "/records").await.refused(405, "another method");
    look(&bed, &format!("/records/{ABSENT}/forget"))
        .await
        .refused(405, "another method");
    for deed in ["release", "forget"] {
        act(&bed, &format!("/records/{ABSENT}/{deed}"))
            .await
            .refused(404, "no record of this key");
        act(&bed, &format!("/records/v1_12/{deed}"))
            .await
            .refused(400, "is no key");
    }
    resolve(&bed, ABSENT, "retry")
        .await
        .refused(404, "no record");
    resolve(&bed, ABSENT, "done")
        .await
        .refused(400, "is no verdict");
    act(&bed, &format!("/records/{ABSENT}/resolve"))
        .await
        .refused(400, "EOF");
}

#[tokio::test]
async fn a_record_shows_its_outcome_and_its_body_only_on_request() {
    let bed = strict().await;
    let mut say = Say::new(201, "charged".to_owned());
    say.headers.push(("Set-Cookie".into(), "secret=1".into()));
    bed.handler.will(Act::Say(say));
    bed.ask(Sender::Task.sends("t1", "payload")).await;
    let key = the_key(&bed).await;

    let shown = look(&bed, &format!("/records/{key}")).await;
    assert_eq!(shown.status, 200);
    assert_eq!(shown.word("key"), key);
    assert_eq!(shown.word("state"), "succeeded");
    assert_eq!(shown.json["attempts"], 1);
    assert_eq!(shown.json["fence"], shown.json["born"]);
    let [since, until] = ["lease_until", "expires_at"]
        .map(|name| shown.word(name).parse::<jiff::Timestamp>().unwrap());
    let kept_for = until.duration_since(since).as_secs();
    // Retention was counted from the end of the lease.
    assert!((3600..=3605).contains(&kept_for), "{shown:?}");
    let outcome = &shown.json["outcome"];
    assert_eq!(outcome["status"], 201);
    assert_eq!(
        outcome["headers"]["content-type"],
        serde_json::json!(["text/plain"])
    );
    assert_eq!(outcome["body_bytes"], 7);
    assert!(outcome.get("body").is_none(), "{shown:?}");
    let all = shown.json.to_string();
    assert!(!all.contains("owner") && !all.contains("secret"), "{all}");

    let shown = look(&bed, &format!("/records/{key}?body=true")).await;
    assert_eq!(shown.json["outcome"]["body"]["text"], "charged");
    assert_eq!(shown.json["outcome"]["body"]["encoding"], "utf-8");
}

#[tokio::test]
async fn release_makes_the_run_stale_and_the_next_delivery_run() {
    log::listen();
    let bed = strict().await;
    bed.handler
        .will(Act::Hold(Say::new(200, "late".to_owned())));
    let first = bed.begin(Sender::Task.sends("t1", "payload"));
    bed.handler.arrived().await;
    let key = the_key(&bed).await;
    let fence = look(&bed, &format!("/records/{key}")).await.json["fence"].as_u64();

    let refused = act(&bed, &format!("/records/{key}/forget")).await;
    refused.refused(409, "it is running under a live lease");
    let said = act(&bed, &format!("/records/{key}/release")).await;
    assert_eq!(said.status, 200, "{said:?}");
    assert_eq!(
        (said.word("before"), said.word("after")),
        ("running", "waiting")
    );
    let shown = look(&bed, &format!("/records/{key}")).await;
    assert_eq!(shown.word("state"), "waiting");
    assert!(shown.json["fence"].as_u64() > fence);

    bed.handler.go();
    assert_eq!(first.await.unwrap().status, 409);
    assert_eq!(
        look(&bed, &format!("/records/{key}")).await.word("state"),
        "waiting"
    );
    let second = bed.ask(Sender::Task.sends("t1", "payload")).await;
    assert_eq!((second.status, bed.runs()), (200, 2));

    let again = act(&bed, &format!("/records/{key}/release")).await;
    again.refused(
        409,
        "the record is succeeded, and release is for records that are running or waiting",
    );
    let lines = log::heard("audit", "key", &key);
    let acts: Vec<_> = lines
        .iter()
        .map(|line| ["act", "before", "after"].map(|name| line[name].as_str().unwrap()))
        .collect();
    assert_eq!(
        acts,
        [
            ["forget", "running", "unchanged"],
            ["release", "running", "waiting"],
            ["release", "succeeded", "unchanged"],
        ]
    );
    let by = lines[0]["by"].as_str().unwrap();
    assert!(by.starts_with("127.0.0.1:"), "{by}");
}

#[tokio::test]
async fn a_forgotten_key_runs_again() {
    log::listen();
    let bed = strict().await;
    bed.ask(Sender::Task.sends("t1", "payload")).await;
    let key = the_key(&bed).await;
    let said = act(&bed, &format!("/records/{key}/forget")).await;
    assert_eq!(
        (said.word("before"), said.word("after")),
        ("succeeded", "absent")
    );
    // The store belongs to this process: no other gate answers from its memory.
    assert!(!said.word("says").contains("another gate"), "{said:?}");
    look(&bed, &format!("/records/{key}"))
        .await
        .refused(404, "absent or expired");
    bed.ask(Sender::Task.sends("t1", "payload")).await;
    assert_eq!(bed.runs(), 2);
    let lines = log::heard("audit", "key", &key);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(lines[0]["after"], "absent");
}

/// Parks the work of an API client; gives its key.
async fn parked(bed: &Bed) -> String {
    bed.handler.says(500);
    let first = bed.ask(Sender::Api.sends("order-7", "payload")).await;
    assert_eq!(first.status, 409);
    the_key(bed).await
}

async fn again(bed: &Bed) -> super::support::Answer {
    bed.ask(Sender::Api.sends("order-7", "payload")).await
}

#[tokio::test]
async fn parked_work_is_resolved_as_succeeded() {
    log::listen();
    let bed = strict().await;
    let key = parked(&bed).await;
    assert_eq!(again(&bed).await.status, 409);
    let said = resolve(&bed, &key, "succeeded").await;
    assert_eq!(
        (said.word("before"), said.word("after")),
        ("parked", "succeeded")
    );
    let reply = again(&bed).await;
    assert_eq!((reply.status, bed.runs()), (200, 1));
    assert_eq!(reply.headers["idempotent-replayed"], "true");
    assert_eq!(reply.headers["semel-body"], "not-kept");
    resolve(&bed, &key, "failed").await.refused(
        409,
        "the record is succeeded, and resolve is for records that are parked",
    );
    let lines = log::heard("audit", "key", &key);
    assert_eq!(lines[0]["act"], "resolve");
    assert_eq!(lines[0]["after"], "succeeded");
    assert_eq!(lines[1]["after"], "unchanged");
}

#[tokio::test]
async fn parked_work_is_resolved_as_failed() {
    let bed = strict().await;
    let key = parked(&bed).await;
    let said = resolve(&bed, &key, "failed").await;
    assert_eq!(
        (said.word("before"), said.word("after")),
        ("parked", "failed")
    );
    let reply = again(&bed).await;
    assert_eq!((reply.status, bed.runs()), (422, 1));
    assert!(String::from_utf8_lossy(&reply.body).contains("errors.md#resolved-failed"));
}

#[tokio::test]
async fn parked_work_is_resolved_to_run_again() {
    let bed = strict().await;
    let key = parked(&bed).await;
    let said = resolve(&bed, &key, "retry").await;
    assert_eq!(
        (said.word("before"), said.word("after")),
        ("parked", "waiting")
    );
    let reply = again(&bed).await;
    assert_eq!((reply.status, bed.runs()), (200, 2));
}

#[tokio::test]
async fn a_store_that_is_away_is_told_as_such() {
    let bed = strict().await;
    bed.store.is(super::support::Down::Everything);
    let said = told(&bed, Ask::get("/records")).await;
    said.refused(503, "store unavailable");
    act(&bed, &format!("/records/{ABSENT}/forget"))
        .await
        .refused(503, "store unavailable");
}
