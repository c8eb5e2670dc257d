//! Records: what is shown of them, and what each act does.

use super::strict;
use crate::log_lines;
use crate::support::prelude::*;
use std::collections::BTreeSet;

const ABSENT: &str = "v1_0000000000000000000000000000000000000000000000000000000000000000";

#[tokio::test]
async fn a_list_is_walked_in_pages_and_by_state() {
    let bed = strict().await;
    for name in ["a", "b", "c", "d"] {
        bed.task(name).await;
    }
    bed.handler.says(500);
    bed.task("e").await;

    let (mut keys, mut after, mut pages) = (BTreeSet::new(), String::new(), 0);
    loop {
        let page = bed.look(&format!("/records?limit=2{after}")).await;
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

    let parked = bed.look("/records?state=parked").await;
    let records = parked.json["records"].as_array().unwrap();
    assert_eq!(records.len(), 1, "{parked:?}");
    assert_eq!(records[0]["state"], "parked");
    // It never expires.
    assert!(records[0]["expires_at"].is_null(), "{parked:?}");
    let succeeded = bed.look("/records?state=succeeded").await;
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
        ("/records?after=xyz", "\"xyz\" is not a cursor"),
        ("/records?sate=parked", "unknown field `sate`"),
        ("/letters?state=parked", "letters have a reason"),
        ("/records/v1_12", "\"v1_12\" is not a key"),
        ("/records/42?body=true", "\"42\" is not a key"),
        ("/letters/12", "\"12\" is not the id of a letter"),
    ] {
        bed.look(path).await.refused(400, error);
    }
    let absent = "no record of this key: it is absent or expired";
    bed.show_record(ABSENT).await.refused(404, absent);
    for (path, status, error) in [
        ("/records", 405, "another method"),
        ("/records/ABSENT/release", 404, "no record of this key"),
        ("/records/ABSENT/forget", 404, "no record of this key"),
        ("/records/v1_12/release", 400, "is not a key"),
        ("/records/v1_12/forget", 400, "is not a key"),
        ("/records/ABSENT/resolve", 400, "EOF"),
    ] {
        let said = bed.act(&path.replace("ABSENT", ABSENT)).await;
        said.refused(status, error);
    }
    let said = bed.look(&format!("/records/{ABSENT}/forget")).await;
    said.refused(405, "another method");
    let said = bed.look("/elsewhere").await;
    said.refused(404, "nothing has this path");
    bed.resolve(ABSENT, "retry").await.refused(404, "no record");
    let said = bed.resolve(ABSENT, "done").await;
    said.refused(400, "is not a verdict");
}

#[tokio::test]
async fn a_record_shows_its_outcome_and_its_body_only_on_request() {
    let bed = strict().await;
    bed.handler
        .answers(Say::new(201, "charged").header("Set-Cookie", "secret=1"));
    bed.task("t1").await;
    let key = bed.key().await.to_string();

    let shown = bed.show_record(&key).await;
    let expected = json!({"key": key, "state": "succeeded", "attempts": 1});
    shown.is(200, &expected);
    assert_eq!(shown.json["fence"], shown.json["born"]);
    let [since, until] = ["lease_until", "expires_at"]
        .map(|name| shown.word(name).parse::<jiff::Timestamp>().unwrap());
    let kept_for = until.duration_since(since).as_secs();
    // Retention was counted from the end of the lease.
    assert!((3600..=3605).contains(&kept_for), "{shown:?}");
    let outcome = &shown.json["outcome"];
    assert_eq!(outcome["status"], 201);
    assert_eq!(outcome["headers"]["content-type"], json!(["text/plain"]));
    assert_eq!(outcome["body_bytes"], 7);
    assert!(outcome.get("body").is_none(), "{shown:?}");
    let all = shown.json.to_string();
    assert!(!all.contains("owner") && !all.contains("secret"), "{all}");

    let shown = bed.look(&format!("/records/{key}?body=true")).await;
    assert_eq!(shown.json["outcome"]["body"]["text"], "charged");
    assert_eq!(shown.json["outcome"]["body"]["encoding"], "utf-8");
}

#[tokio::test]
async fn release_makes_the_run_stale_and_the_next_delivery_run() {
    let bed = strict().await;
    let first = bed.hold(Sender::Task.sends("t1", "{}")).await;
    let key = bed.key().await.to_string();
    let fence = bed.show_record(&key).await.json["fence"].as_u64();

    let refused = bed.forget(&key).await;
    refused.refused(409, "it is running under a live lease");
    bed.release(&key).await.led("running", "waiting");
    let shown = bed.show_record(&key).await;
    assert_eq!(shown.word("state"), "waiting");
    assert!(shown.json["fence"].as_u64() > fence);

    bed.handler.go();
    assert_eq!(first.await.unwrap().status, 409);
    assert_eq!(bed.show_record(&key).await.word("state"), "waiting");
    let second = bed.task("t1").await;
    assert_eq!((second.status, bed.runs()), (200, 2));

    let error = "the record is succeeded, and release is for records that are running or waiting";
    bed.release(&key).await.refused(409, error);
    let lines = log_lines::heard("audit", "key", &key);
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
    let void: Vec<_> = lines
        .iter()
        .map(|line| line["promise"].is_string())
        .collect();
    assert_eq!(void, [false, true, false]);
    let by = lines[0]["by"].as_str().unwrap();
    assert!(by.starts_with("127.0.0.1:"), "{by}");
}

#[tokio::test]
async fn a_forgotten_key_runs_again() {
    let bed = strict().await;
    bed.task("t1").await;
    let key = bed.key().await.to_string();
    let forgotten = bed.forget(&key).await;
    forgotten.led("succeeded", "absent");
    // The store belongs to this process: no other gate answers from its memory.
    assert!(
        !forgotten.word("says").contains("another gate"),
        "{forgotten:?}"
    );
    let said = bed.show_record(&key).await;
    said.refused(404, "absent or expired");
    bed.task("t1").await;
    assert_eq!(bed.runs(), 2);
    let lines = log_lines::heard("audit", "key", &key);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(lines[0]["after"], "absent");
    let void = "void: what this route promises of its effects does not hold for this key any more";
    assert_eq!(
        (&lines[0]["promise"], forgotten.word("promise")),
        (&json!(void), void)
    );
}

/// Parks the work of an API client; gives its key.
async fn parked(bed: &Bed) -> String {
    bed.handler.says(500);
    again(bed).await.is(409);
    bed.key().await.to_string()
}

async fn again(bed: &Bed) -> Answer {
    bed.api("order-7").await
}

#[tokio::test]
async fn parked_work_is_resolved_as_succeeded() {
    let bed = strict().await;
    let key = parked(&bed).await;
    assert_eq!(again(&bed).await.status, 409);
    bed.resolve(&key, "succeeded")
        .await
        .led("parked", "succeeded");
    let reply = again(&bed).await;
    reply.is_replay(200);
    reply.has("semel-body", "not-kept");
    assert_eq!(bed.runs(), 1);
    let error = "the record is succeeded, and resolve is for records that are parked";
    bed.resolve(&key, "failed").await.refused(409, error);
    let lines = log_lines::heard("audit", "key", &key);
    assert_eq!(lines[0]["act"], "resolve");
    assert_eq!(lines[0]["after"], "succeeded");
    assert_eq!(lines[0].get("promise"), None);
    assert_eq!(lines[1]["after"], "unchanged");
}

#[tokio::test]
async fn parked_work_is_resolved_as_failed() {
    let bed = strict().await;
    let key = parked(&bed).await;
    bed.resolve(&key, "failed").await.led("parked", "failed");
    let reply = again(&bed).await;
    assert_eq!((reply.status, bed.runs()), (422, 1));
    assert!(String::from_utf8_lossy(&reply.body).contains("errors.md#resolved-failed"));
}

#[tokio::test]
async fn parked_work_is_resolved_to_run_again() {
    let bed = strict().await;
    let key = parked(&bed).await;
    let said = bed.resolve(&key, "retry").await;
    said.led("parked", "waiting");
    assert!(said.word("promise").starts_with("void: "), "{said:?}");
    let reply = again(&bed).await;
    assert_eq!((reply.status, bed.runs()), (200, 2));
}

#[tokio::test]
async fn a_store_that_is_away_is_told_as_such() {
    let bed = strict().await;
    bed.store.is(Down::Everything);
    bed.look("/records").await.refused(503, "store unavailable");
    bed.forget(ABSENT).await.refused(503, "store unavailable");
}

#[tokio::test]
async fn a_reason_may_be_left_out_and_must_be_seen_if_it_is_there() {
    let bed = strict().await;
    bed.task("t1").await;
    let key = bed.key().await;
    for why in ["%E2%80%8B", "%20", "%E2%80%AE%20"] {
        let said = bed.act(&format!("/records/{key}/forget?why={why}")).await;
        said.refused(400, "nothing of this reason can be seen");
    }
    assert_eq!(bed.show_record(key).await.word("state"), "succeeded");
    bed.forget(key).await.led("succeeded", "absent");
}

#[tokio::test]
async fn a_misspelt_wish_is_refused_before_anything_is_forgotten() {
    let bed = strict().await;
    bed.task("t1").await.is(200);
    let key = bed.key().await;
    let said = bed.act(&format!("/records/{key}/forget?leters=true")).await;
    assert_eq!(said.status, 400, "{said:?}");
    assert!(said.json.to_string().contains("leters"), "{said:?}");
    let record = bed.look(&format!("/records/{key}")).await;
    assert_eq!(record.json["state"], "succeeded");
}
