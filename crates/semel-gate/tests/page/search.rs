//! Search: one box for whatever somebody has in hand.

use super::bed::PageBed;
use crate::support::prelude::*;

#[tokio::test]
async fn one_hit_leads_straight_to_it() {
    let bed = PageBed::new().await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let ask = Sender::Task.sends("task-8842", r#"{"order_id":"A-1"}"#);
    let ask = ask
        .header("Content-Type", "application/json")
        .header("traceparent", &format!("00-{trace}-00f067aa0ba902b7-01"));
    ask.send(bed.gate).await.is(200);
    let key = bed.key().await.to_string();
    let record = format!("records/{key}");
    let upper = trace.to_uppercase();
    let whole = format!("00-{trace}-00f067aa0ba902b7-01");
    for text in [
        "A-1",
        " A-1 ",
        &key,
        "task-8842",
        trace,
        &upper,
        &whole,
        "order_id=A-1",
    ] {
        let leads = bed.search(text).await;
        assert_eq!(leads.as_ref(), Some(&record), "{text}");
    }
    // A number is looked for as text and as a number.
    bed.deliver("t2", r#"{"order_id":7}"#).await.is(200);
    assert!(
        bed.search("7")
            .await
            .is_some_and(|it| it.starts_with("records/"))
    );
    let nothing = bed.look("/ui/search?q=nonsense").await;
    assert!(nothing.contains("Nothing is known of <strong>nonsense</strong>"));
    assert!(
        bed.look("/ui/search?q=")
            .await
            .contains("What can be searched for")
    );
    let long = bed.get(&format!("/ui/search?q={}", "x".repeat(3000))).await;
    assert_eq!(long.status, 400);
}

#[tokio::test]
async fn letters_are_found_by_their_id_and_by_what_they_keep() {
    let bed = PageBed::new().await;
    bed.deliver("lost-task", "{}").await.is(200);
    let letter = bed.letters().await[0].id.to_string();
    let leads = Some(format!("letters/{letter}"));
    assert_eq!(bed.search(&letter).await, leads);
    assert_eq!(bed.search(&letter[..8]).await, leads);
    assert_eq!(bed.search("lost-task").await, leads);
}

#[tokio::test]
async fn a_letter_whose_record_is_gone_is_found_by_its_order_and_its_key() {
    let bed = PageBed::new().await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    bed.handler.says(422);
    let ask = Sender::Task.sends("t1", r#"{"order_id":"A-1"}"#);
    let ask = ask
        .header("Content-Type", "application/json")
        .header("traceparent", &format!("00-{trace}-00f067aa0ba902b7-01"));
    ask.send(bed.gate).await.is(200);
    let (key, letter) = (bed.key().await.to_string(), bed.letters().await[0].id);
    let forget = Ask::post(&format!("/records/{key}/forget"));
    forget.send(bed.admin).await.is(200);
    // One gate has forgotten it, and the other one never saw it.
    for gate in [&bed, &bed.other_gate().await] {
        let whole = format!("00-{}-00f067aa0ba902b7-01", trace.to_uppercase());
        for text in ["A-1", "order_id=A-1", &key, "t1", trace, &whole] {
            let leads = gate.search(text).await;
            assert_eq!(leads, Some(format!("records/{key}")), "{text}");
        }
        let page = gate.look(&format!("/ui/records/{key}")).await;
        for told in [
            "Its record is gone",
            &format!("letters/{letter}"),
            "work · ",
        ] {
            assert!(page.contains(told), "no {told} in {page}");
        }
    }
}

#[tokio::test]
async fn a_clients_key_is_found_in_the_one_box() {
    let bed = PageBed::with(|settings| {
        terms_of(&mut settings.routes[0], |terms| {
            terms.key = semel::key::KeyRule::new(["header:idempotency-key"]).unwrap();
        });
    })
    .await;
    Sender::Api
        .sends("key-1", "{}")
        .send(bed.gate)
        .await
        .is(200);
    let record = format!("records/{}", bed.key().await);
    // This gate remembers the delivery, and another one is told whose key it is.
    assert_eq!(bed.search("key-1").await.as_ref(), Some(&record));
    let other = bed.other_gate().await;
    assert_eq!(other.search("key-1").await, None);
    assert_eq!(
        other.search("key-1 caller=alice").await.as_ref(),
        Some(&record)
    );
    assert_eq!(other.search("key-1 caller=bob").await, None);
    assert_eq!(other.search("key-1 caller=alice method=PUT").await, None);
    let hints = other.look("/ui/search?q=").await;
    assert!(hints.contains("key-1 caller=mobile-2"), "{hints}");
}

#[tokio::test]
async fn a_search_looks_for_so_many_records() {
    let bed = PageBed::with(|settings| {
        for number in 0..300 {
            let mut route = settings.routes[0].clone();
            route.name = format!("work-{number}");
            settings.routes.push(route);
        }
    })
    .await;
    let page = bed.look("/ui/search?q=nonsense").await;
    assert!(
        page.contains("more keys than one search looks for (256)"),
        "{page}"
    );
}
