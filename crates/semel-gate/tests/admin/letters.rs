//! Letters: what is shown of them, and discarding one.

use super::{kept, strict};
use crate::log_lines;
use crate::support::prelude::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use semel::letter::{Letter, LetterId, Put};
use semel::protocol::Fence;
use semel::store::Letters;

const ABSENT: &str = "0000000000000000000000000000000000000000000000000000000000000000";

#[tokio::test]
async fn a_letter_shows_the_whole_delivery_without_credentials() {
    let bed = strict().await;
    bed.handler.says(500);
    let delivery = Sender::Task
        .sends("t1", r#"{"order": 7}"#)
        .path("/work?x=1")
        .header("Authorization", "Bearer secret")
        .header("X-Twice", "a")
        .header("X-Twice", "b");
    bed.ask(delivery).await;
    let id = bed.letter().await;

    let listed = bed.look("/letters").await;
    let head = &listed.json["letters"][0];
    assert_eq!(head["id"], id.as_str());
    assert_eq!(head["reason"], "parked");
    assert!(head["bytes"].as_u64() > Some(12), "{head}");

    let shown = bed.show_letter(&id).await;
    let expected = json!({
        "id": id, "reason": "parked", "key": bed.key().await.to_string(),
        "route": "work", "method": "POST", "path": "/work?x=1",
        "why": "the handler's answer was 500, and its attempts are used up",
        "created_at": head["created_at"],
        "body": {"text": r#"{"order": 7}"#, "encoding": "utf-8"},
    });
    shown.is(200, &expected);
    assert!(shown.word("created_at").parse::<jiff::Timestamp>().is_ok());
    assert_eq!(shown.json["headers"]["x-cloudtasks-taskname"][0], "t1");
    assert_eq!(shown.json["headers"]["x-twice"], json!(["a", "b"]));
    assert!(!shown.json.to_string().contains("secret"), "{shown:?}");
}

#[tokio::test]
async fn a_body_that_is_no_text_is_shown_as_base64() {
    let bed = strict().await;
    bed.handler.says(500);
    let bytes: &[u8] = &[0xff, 0x00, 0x7f];
    bed.ask(Sender::Task.sends("t1", "").body(bytes)).await;
    let id = bed.letter().await;
    let shown = bed.show_letter(&id).await;
    let body = json!({"encoding": "base64", "text": STANDARD.encode(bytes)});
    shown.is(200, &json!({"body": body}));
}

#[tokio::test]
async fn letters_are_walked_in_pages_oldest_first() {
    let bed = strict().await;
    for name in ["a", "b", "c"] {
        bed.handler.says(500);
        bed.ask(Sender::Task.sends(name, name)).await;
    }
    let first = bed.look("/letters?limit=2").await;
    assert_eq!(first.json["letters"].as_array().unwrap().len(), 2);
    let next = first.word("next");
    let second = bed.look(&format!("/letters?limit=2&after={next}")).await;
    let last = &second.json["letters"].as_array().unwrap()[..];
    assert_eq!(last.len(), 1, "{second:?}");
    assert!(second.json["next"].is_null());
    let shown = bed.show_letter(last[0]["id"].as_str().unwrap()).await;
    assert_eq!(shown.json["body"]["text"], "c");
}

#[tokio::test]
async fn a_discarded_letter_is_gone_and_its_record_stays() {
    let (bed, id) = kept(500).await;
    // The first digits will do.
    bed.discard(&id[..8]).await.is(200, &json!({"letter": id}));
    assert!(bed.letters().await.is_empty());
    assert_eq!(bed.record().await.state, State::Parked);
    let gone = "no letter of this id";
    bed.discard(&id).await.refused(404, gone);
    bed.show_letter(&id[..8]).await.refused(404, gone);
    let lines = log_lines::heard("audit", "letter", &id);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(
        ["act", "before", "after"].map(|name| lines[0][name].as_str().unwrap()),
        ["discard", "parked", "discarded"]
    );
}

#[tokio::test]
async fn what_is_no_id_names_no_letter() {
    let (bed, id) = kept(500).await;
    for bad in [&id[..7], &id.to_uppercase(), "zzzzzzzz", &format!("{id}00")] {
        let error = "is not the id of a letter";
        bed.show_letter(bad).await.refused(400, error);
        bed.discard(bad).await.refused(400, error);
    }
    bed.redrive(ABSENT).await.refused(404, "no letter");
    bed.discard(ABSENT).await.refused(404, "no letter");
    assert_eq!(bed.letter().await, id);
}

#[tokio::test]
async fn digits_that_begin_two_ids_name_neither() {
    let bed = strict().await;
    for last in [7, 8] {
        let mut id = [7; 32];
        id[31] = last;
        let letter = Letter {
            id: LetterId(id),
            key: None,
            route: "work".into(),
            reason: Reason::Invalid,
            fence: Fence(0),
            retention: Duration::from_secs(3600),
            redriven: false,
            alarmed: false,
            delivery: "unreadable".into(),
        };
        assert_eq!(bed.store.kept().put(&letter).await, Ok(Put::Applied));
    }
    let (begin, whole) = ("07".repeat(31), "07".repeat(32));
    let said = bed.discard(&begin).await;
    said.refused(409, "more than one letter's id begins with");
    assert_eq!(bed.letters().await.len(), 2);
    // A letter that cannot be read can be discarded, too.
    let shown = bed.show_letter(&whole).await;
    shown.refused(500, "a letter has a version that this build does not read");
    assert_eq!(bed.discard(&whole).await.status, 200);
    assert_eq!(bed.discard(&begin).await.status, 200);
}

#[tokio::test]
async fn a_key_is_forgotten_with_its_letters() {
    log_lines::listen();
    let bed = strict().await;
    bed.handler.says(500).says(500);
    bed.task("t1").await.is(200);
    bed.task("t2").await.is(200);
    let letters = bed.listed().await;
    let (meant, other) = (&letters[0], &letters[1]);
    let (key, id) = (meant["key"].as_str().unwrap(), &meant["id"]);
    let forget = format!("/records/{key}/forget?letters=true&why=erasure%20request");
    let said = bed.act(&forget).await;
    said.led("parked", "absent");
    assert_eq!(said.json["letters"], json!([id]));
    let left = bed.listed().await;
    assert_eq!(left.len(), 1);
    assert_eq!(left[0]["id"], other["id"], "another key's letter stays");
    let audited = log_lines::lines("letter", id.as_str().unwrap());
    let discarded = audited.iter().find(|line| line["act"] == "discard");
    assert_eq!(discarded.unwrap()["why"], "erasure request");
    bed.act(&forget).await.refused(404, "no record");
    // Nor does a letter stay whose record has gone before it.
    let key = other["key"].as_str().unwrap();
    bed.forget(key).await.led("parked", "absent");
    assert_eq!(bed.listed().await.len(), 1, "without the flag it stays");
    let said = bed
        .act(&format!("/records/{key}/forget?letters=true"))
        .await;
    assert_eq!(said.json["letters"], json!([other["id"]]));
    assert_eq!(bed.listed().await.len(), 0);
}

#[tokio::test]
async fn what_runs_is_not_forgotten_and_keeps_its_letters() {
    let bed = strict().await;
    bed.handler.says(500);
    bed.task("t1").await.is(200);
    bed.handler.arrived().await;
    let (id, key) = (bed.letter().await, bed.key().await);
    let redriven = bed.hold_redrive(&id).await;
    let said = bed
        .act(&format!("/records/{key}/forget?letters=true"))
        .await;
    said.refused(409, "running");
    assert_eq!(bed.listed().await.len(), 1);
    bed.handler.go();
    redriven.await.unwrap().is(200);
}
