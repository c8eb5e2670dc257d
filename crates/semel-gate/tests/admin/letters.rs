//! Letters: what is shown of them, and discarding one.

use super::support::{Bed, Sender};
use super::{Said, act, kept, log, look, strict, the_letter};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use semel::letter::{Letter, LetterId, Put, Reason};
use semel::protocol::Fence;
use semel::store::Letters;
use std::time::Duration;

const ABSENT: &str = "0000000000000000000000000000000000000000000000000000000000000000";

#[tokio::test]
async fn a_letter_shows_the_whole_delivery_without_credentials() {
    let bed = strict().await;
    bed.handler.says(500);
    let delivery = Sender::Task.sends("t1", r#"{"order": 7}"#);
    let delivery = delivery
        .path("/work?x=1")
        .header("Authorization", "Bearer secret");
    bed.ask(delivery.header("X-Twice", "a").header("X-Twice", "b"))
        .await;
    let id = the_letter(&bed).await;

    let listed = look(&bed, "/letters").await;
    let head = &listed.json["letters"][0];
    assert_eq!(head["id"], id.as_str());
    assert_eq!(head["reason"], "parked");
    assert!(head["bytes"].as_u64() > Some(12), "{head}");

    let shown = look(&bed, &format!("/letters/{id}")).await;
    assert_eq!(shown.status, 200);
    let record = &bed.records().await[0];
    for (name, text) in [
        ("id", id.as_str()),
        ("reason", "parked"),
        ("key", &record.0.to_string()),
        ("route", "work"),
        ("method", "POST"),
        ("path", "/work?x=1"),
        (
            "why",
            "the handler's answer was 500, and its attempts are used up",
        ),
    ] {
        assert_eq!(shown.word(name), text, "{shown:?}");
    }
    assert_eq!(shown.json["created_at"], head["created_at"]);
    assert!(shown.word("created_at").parse::<jiff::Timestamp>().is_ok());
    assert_eq!(shown.json["headers"]["x-cloudtasks-taskname"][0], "t1");
    assert_eq!(
        shown.json["headers"]["x-twice"],
        serde_json::json!(["a", "b"])
    );
    assert_eq!(shown.json["body"]["text"], r#"{"order": 7}"#);
    assert_eq!(shown.json["body"]["encoding"], "utf-8");
    assert!(!shown.json.to_string().contains("secret"), "{shown:?}");
}

#[tokio::test]
async fn a_body_that_is_no_text_is_shown_as_base64() {
    let bed = strict().await;
    bed.handler.says(500);
    let bytes: &[u8] = &[0xff, 0x00, 0x7f];
    bed.ask(Sender::Task.sends("t1", "").body(bytes)).await;
    let id = the_letter(&bed).await;
    let shown = look(&bed, &format!("/letters/{id}")).await;
    assert_eq!(shown.json["body"]["encoding"], "base64");
    assert_eq!(shown.json["body"]["text"], STANDARD.encode(bytes));
}

#[tokio::test]
async fn letters_are_walked_in_pages_oldest_first() {
    let bed = strict().await;
    for name in ["a", "b", "c"] {
        bed.handler.says(500);
        bed.ask(Sender::Task.sends(name, name)).await;
    }
    let first = look(&bed, "/letters?limit=2").await;
    assert_eq!(first.json["letters"].as_array().unwrap().len(), 2);
    let next = first.word("next");
    let second = look(&bed, &format!("/letters?limit=2&after={next}")).await;
    let last = &second.json["letters"].as_array().unwrap()[..];
    assert_eq!(last.len(), 1, "{second:?}");
    assert!(second.json["next"].is_null());
    let shown = look(
        &bed,
        &format!("/letters/{}", last[0]["id"].as_str().unwrap()),
    )
    .await;
    assert_eq!(shown.json["body"]["text"], "c");
}

#[tokio::test]
async fn a_discarded_letter_is_gone_and_its_record_stays() {
    log::listen();
    let bed = strict().await;
    let id = kept(&bed, 500).await;
    // The first digits will do.
    let said = act(&bed, &format!("/letters/{}/discard", &id[..8])).await;
    assert_eq!(said.status, 200, "{said:?}");
    assert_eq!(said.word("letter"), id);
    assert!(bed.letters().await.is_empty());
    assert_eq!(bed.record().await.state, semel::protocol::State::Parked);
    act(&bed, &format!("/letters/{id}/discard"))
        .await
        .refused(404, "no letter of this id");
    look(&bed, &format!("/letters/{}", &id[..8]))
        .await
        .refused(404, "no letter of this id");
    let lines = log::heard("audit", "letter", &id);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(
        ["act", "before", "after"].map(|name| lines[0][name].as_str().unwrap()),
        ["discard", "parked", "discarded"]
    );
}

#[tokio::test]
async fn what_is_no_id_names_no_letter() {
    let bed = strict().await;
    let id = kept(&bed, 500).await;
    for bad in [&id[..7], &id.to_uppercase(), "zzzzzzzz", &format!("{id}00")] {
        look(&bed, &format!("/letters/{bad}"))
            .await
            .refused(400, "is no letter's id");
        act(&bed, &format!("/letters/{bad}/discard"))
            .await
            .refused(400, "is no letter's id");
    }
    for deed in ["redrive", "discard"] {
        act(&bed, &format!("/letters/{ABSENT}/{deed}"))
            .await
            .refused(404, "no letter");
    }
    assert_eq!(the_letter(&bed).await, id);
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
            delivery: "unreadable".into(),
        };
        assert_eq!(bed.store.kept().put(&letter).await, Ok(Put::Applied));
    }
    let discard = |id: String| act_on(&bed, id);
    discard("07".repeat(31))
        .await
        .refused(409, "more than one letter's id begins with");
    assert_eq!(bed.letters().await.len(), 2);
    let whole = "07".repeat(32);
    // A letter that cannot be read can be discarded, too.
    let shown = look(&bed, &format!("/letters/{whole}")).await;
    shown.refused(500, "a letter has a version that this build does not read");
    assert_eq!(discard(whole).await.status, 200);
    assert_eq!(discard("07".repeat(31)).await.status, 200);
}

async fn act_on(bed: &Bed, id: String) -> Said {
    act(bed, &format!("/letters/{id}/discard")).await
}
