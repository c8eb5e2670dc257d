//! Running, in doubt, mismatches, and routes with their test box.

use super::bed::PageBed;
use crate::support::prelude::*;
use semel::protocol::{Claim, Claimed, InDoubt};
use semel::{Fingerprint, Key};
use semel_gate::settings::Secret;

#[tokio::test]
async fn a_lapsed_run_is_shown_as_stuck() {
    let bed = PageBed::new().await;
    let claim = Claim {
        lease: Duration::from_millis(1),
        ..Claim::new(Key::from_bytes([7; 32]), Fingerprint::of(b"x"))
    };
    let claimed = bed.store.claim(&claim).await.unwrap();
    assert!(matches!(claimed, Claimed::Granted(_)), "{claimed:?}");
    let page = bed.sees("/ui/running", ">stuck<").await;
    assert!(page.contains("1 run has lost the lease"), "{page}");
    let record = bed
        .look(&format!("/ui/records/{}", Key::from_bytes([7; 32])))
        .await;
    assert!(
        record.contains("It took effect.") && record.contains(r#"name="fence""#),
        "{record}"
    );
}

#[tokio::test]
async fn a_run_is_slow_against_what_many_runs_of_its_route_took() {
    for (runs, word) in [(3, "running"), (30, "slow")] {
        let bed = PageBed::new().await;
        for number in 0..runs {
            bed.task(&format!("t{number}"), &format!("A-{number}"))
                .await
                .is(200);
        }
        bed.handler.will(Act::Hold(Say::new(200, "done")));
        let payload = r#"{"order_id":"late"}"#;
        let held = tokio::spawn(Sender::Task.sends("late", payload).send(bed.gate));
        until("the handler has it", async || bed.handler.count() > runs).await;
        // A few runs do not say what is usual, however long this one takes.
        let page = bed.sees("/ui/running", &format!(">{word}<")).await;
        assert!(page.contains("order_id late"), "{page}");
        assert_eq!(page.contains(">–<"), word == "running", "{page}");
        bed.handler.go();
        held.await.unwrap().is(200);
    }
}

#[tokio::test]
async fn in_doubt_means_the_same_wherever_it_is_counted() {
    let bed = PageBed::new().await;
    // Parked, and known not to have succeeded.
    bed.task_heard("t1", "A-1", 500).await.is(200);
    // Parked because nobody knows, and in doubt without being parked.
    for (number, in_doubt, parks) in [(1, InDoubt::Park, true), (2, InDoubt::Retry, false)] {
        let claim = Claim {
            lease: Duration::from_millis(1),
            in_doubt,
            ..Claim::new(Key::from_bytes([number; 32]), Fingerprint::of(b"x"))
        };
        drop(bed.store.claim(&claim).await.unwrap());
        let doubts = async || {
            let claimed = bed.store.claim(&claim).await.unwrap();
            let runs = matches!(&claimed, Claimed::Granted(lease) if lease.in_doubt);
            if parks {
                claimed == Claimed::Parked
            } else {
                runs
            }
        };
        until("a run in doubt", doubts).await;
    }
    let page = bed.sees("/ui/", "3 records in the store").await;
    for told in [
        r#"<span class="n">2</span><span class="t">in doubt"#,
        "1 of them parked, oldest ",
        r#"<span class="n">2</span><span class="t">parked"#,
        "In doubt <b>3</b>",
    ] {
        assert!(page.contains(told), "no {told} in {page}");
    }
    let page = bed.look("/ui/doubt").await;
    for told in [
        "2 records wait",
        "1 of them in doubt",
        "<strong>1</strong> more",
    ] {
        assert!(page.contains(told), "no {told} in {page}");
    }
}

#[tokio::test]
async fn a_mismatch_says_which_part_differs() {
    let bed = PageBed::new().await;
    bed.deliver("t1", r#"{"order_id":"A-1","cents":5}"#)
        .await
        .is(200);
    bed.deliver("t2", r#"{"order_id":"A-1","cents":6}"#)
        .await
        .is(200);
    let ask = Sender::Task.sends("t3", r#"{"order_id":"A-1","cents":5}"#);
    let ask = ask
        .path("/work?x=1")
        .header("Content-Type", "application/json");
    ask.send(bed.gate).await.is(200);
    let page = bed.look("/ui/mismatches").await;
    assert_eq!(
        page.matches(r#"<span class="state refused">payload</span>"#)
            .count(),
        1,
        "{page}"
    );
    assert_eq!(
        page.matches(r#"<span class="state refused">path</span>"#)
            .count(),
        1,
        "{page}"
    );
    assert!(!page.contains(r#"<span class="state doubt">method</span>"#));
    assert_eq!(
        page.matches("letters/").count(),
        2,
        "each is kept as a letter"
    );
    // The payload is not kept, so nothing of it is compared.
    for head in bed.letters().await {
        let letter = bed.look(&format!("/ui/letters/{}", head.id)).await;
        assert!(!letter.contains("Field by field"), "{letter}");
    }
}

#[tokio::test]
async fn payloads_are_compared_field_by_field_only_where_they_are_kept() {
    let bed = PageBed::with(|settings| settings.routes[0].keep_payload = true).await;
    bed.deliver(
        "t1",
        r#"{"order_id":"A-1","cents":90000000000000001,"x":1}"#,
    )
    .await
    .is(200);
    bed.deliver(
        "t2",
        r#"{"order_id":"A-1","cents":90000000000000002,"x":1}"#,
    )
    .await
    .is(200);
    let letter = bed.letters().await[0].id;
    let page = bed.look(&format!("/ui/letters/{letter}")).await;
    for told in [
        "Field by field",
        "90000000000000001",
        "90000000000000002",
        ">cents<",
    ] {
        assert!(page.contains(told), "no {told} in {page}");
    }
    assert!(
        !page.contains("<code>x</code>"),
        "what is the same is left out: {page}"
    );
}

#[tokio::test]
async fn a_payload_that_is_still_in_a_label_is_not_compared_once_the_route_keeps_none() {
    let bed = PageBed::with(|settings| settings.routes[0].keep_payload = true).await;
    bed.deliver("t1", r#"{"order_id":"A-1","card":"one"}"#)
        .await
        .is(200);
    let now = bed.other_gate_with(|settings| {
        let route = &mut settings.routes[0];
        (route.keep_payload, route.private) = (false, Some(Secret("a-label-key".into())));
    });
    let now = now.await;
    now.deliver("t2", r#"{"order_id":"A-1","card":"4111"}"#)
        .await
        .is(200);
    let letter = now.letters().await[0].id;
    let page = |bed: &PageBed| {
        let at = bed.admin;
        async move {
            let path = format!("/ui/letters/{letter}");
            Ask::get(&path).send(at).await.text().to_owned()
        }
    };
    assert!(page(&bed).await.contains("Field by field"));
    let page = page(&now).await;
    assert!(!page.contains("Field by field"), "{page}");
}

#[tokio::test]
async fn a_comparison_shows_so_much_of_so_many_fields() {
    let bed = PageBed::with(|settings| settings.routes[0].keep_payload = true).await;
    bed.deliver("t1", r#"{"order_id":"A-1"}"#).await.is(200);
    let mut other = serde_json::Map::new();
    other.insert("order_id".into(), "A-1".into());
    other.insert("aa".into(), "x".repeat(100_000).into());
    for number in 0..300 {
        other.insert(format!("b{number}"), number.into());
    }
    let other = Value::Object(other).to_string();
    bed.deliver("t2", &other).await.is(200);
    let letter = bed.letters().await[0].id;
    let page = bed.look(&format!("/ui/letters/{letter}")).await;
    let (_, compared) = page.split_once("Field by field").unwrap();
    assert!(compared.contains("And 101 more fields."), "{compared}");
    assert!(compared.len() < 60_000, "{} bytes", compared.len());
}

#[tokio::test]
async fn what_cannot_be_compared_field_by_field_says_why() {
    let large = "x".repeat(2048);
    let large = |cents: u32| json!({"order_id": "A-1", "cents": cents, "more": large}).to_string();
    let bed = PageBed::with(|settings| settings.routes[0].keep_payload = true).await;
    bed.deliver("t1", &large(5)).await.is(200);
    bed.deliver("t2", &large(6)).await.is(200);
    let letter = bed.letters().await[0].id;
    let page = bed.look(&format!("/ui/letters/{letter}")).await;
    assert!(page.contains("Field by field"), "{page}");
    assert!(page.contains("it did not fit beside the rest of the label"));
}

#[tokio::test]
async fn a_route_shows_its_rule_its_times_and_how_it_is_doing() {
    let bed = PageBed::with(|settings| {
        terms_of(&mut settings.routes[0], |terms| {
            terms.lease = Duration::from_secs(41);
            terms.horizon = Some(Duration::from_secs(3 * 3600));
        });
    })
    .await;
    for name in ["t1", "t1", "t2"] {
        bed.task(name, "A-1").await;
    }
    let list = bed.look("/ui/routes").await;
    // Three in the first ten seconds, of which two were duplicates.
    for told in [">0.3<", ">66.7 %<", "in doubt or parked (1 h)"] {
        assert!(list.contains(told), "no {told} in {list}");
    }
    assert!(
        list.contains("/order_id") && list.contains("routes/work"),
        "{list}"
    );
    let page = bed.look("/ui/routes/work").await;
    for told in [
        "/order_id",
        // Lease and horizon.
        ">41 s<",
        ">3 h<",
        "method, path, type, attributes and payload",
        "runs again",
        "cloud-tasks",
        "Try a request",
    ] {
        assert!(page.contains(told), "no {told} in {page}");
    }
}

#[tokio::test]
async fn the_test_box_shows_key_and_decision_and_runs_nothing() {
    let bed = PageBed::new().await;
    let request = |body: &'static str| {
        [
            ("method", "POST"),
            ("path", "/work"),
            (
                "headers",
                "content-type: application/json\nx-cloudtasks-queuename: orders\nx-cloudtasks-taskname: t1",
            ),
            ("body", body),
        ]
    };
    let said = bed
        .post(
            "/ui/routes/work",
            &request(r#"{"order_id":"A-1","cents":5}"#),
        )
        .await;
    said.tells("it would run")
        .tells("the key is new")
        .tells("cloud-tasks");
    assert_eq!((bed.handler.count(), bed.keys().await.len()), (0, 0));

    bed.task("t1", "A-1").await.is(200);
    let key = bed.key().await.to_string();
    let said = bed
        .post(
            "/ui/routes/work",
            &request(r#"{"order_id":"A-1","cents":5}"#),
        )
        .await;
    said.tells("it would run nothing")
        .tells("the recorded 200")
        .tells(&key);
    let said = bed
        .post(
            "/ui/routes/work",
            &request(r#"{"order_id":"A-1","cents":6}"#),
        )
        .await;
    said.tells("it would be a mismatch");
    let said = bed.post("/ui/routes/work", &request("{}")).await;
    said.tells("It has no key").tells("/order_id");
    let said = bed
        .post("/ui/routes/work", &[("method", "PO ST"), ("path", "/work")])
        .await;
    said.tells("this is not a request");
    // What the gate would not take in for this route has no key there.
    for (method, path, says) in [
        ("POST", "/other", "404 No route has this path"),
        ("post", "/work", "501 The method has lower-case letters"),
        ("POST", "/work/%2e%2e/x", "The gate refuses it: "),
    ] {
        let fields = [("method", method), ("path", path)];
        bed.post("/ui/routes/work", &fields).await.tells(says);
    }
    assert_eq!(bed.handler.count(), 1);
}
