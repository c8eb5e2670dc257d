//! Overview and one record: what happened to order A-1.

use super::bed::PageBed;
use crate::support::prelude::*;
use semel::protocol::{Claim, Claimed};
use semel::{Fingerprint, Key};

/// Word for word, so that nobody loosens it unseen.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

#[tokio::test]
async fn every_page_and_part_forbids_what_is_inline_or_foreign() {
    let bed = PageBed::new().await;
    for path in ["/ui/", "/ui/live", "/ui/letters", "/ui/routes/work"] {
        let said = bed.get(path).await;
        let policy = said.header("content-security-policy");
        assert_eq!((said.status, policy), (200, Some(POLICY)), "{path}");
    }
}

#[tokio::test]
async fn the_overview_counts_what_is_there_and_what_was_not_repeated() {
    let bed = PageBed::new().await;
    for name in ["t1", "t1", "t2"] {
        bed.task(name, "A-1").await;
    }
    bed.task_heard("t3", "A-2", 500).await;
    let page = bed.sees("/ui/", "2 records in the store").await;
    for told in [
        "1 record waits for a person to decide",
        r#"<span class="n">2</span><span class="t">effects not repeated"#,
        r#"<span class="n">1</span><span class="t">parked"#,
        r#"<span class="n">1</span><span class="t">letters"#,
        "1 parked",
        "order_id A-1",
        "cloud-tasks",
        "test · gate-7",
        r#"role="img""#,
        "store, p99",
    ] {
        assert!(page.contains(told), "no {told} in {page}");
    }
    let part = bed.look("/ui/live").await;
    assert!(!part.contains("<html") && part.contains("effects not repeated"));
}

#[tokio::test]
async fn the_overview_promises_nothing_that_it_does_not_know() {
    let bed = PageBed::new().await;
    bed.task("t1", "A-1").await.is(200);
    let page = bed.sees("/ui/", "Nothing waits for a person").await;
    assert!(!page.contains("takes effect once"), "{page}");
    // A letter is somebody's, too.
    bed.deliver("bad", "{}").await.is(200);
    bed.sees("/ui/", "1 letter needs an operator").await;
}

#[tokio::test]
async fn the_numbers_of_the_overview_have_their_trends() {
    let bed = PageBed::new().await;
    bed.task("t1", "A-1").await.is(200);
    bed.sees("/ui/", "1 record in the store").await;
    bed.task_heard("t2", "A-2", 500).await.is(200);
    // Once somebody has counted again, each number has a line from then to now.
    let page = bed.sees("/ui/", "2 records in the store").await;
    let lines: Vec<_> = page.split("<svg class=\"spark\"").skip(1).collect();
    // The store's own has a point a minute, and of one point no line is drawn.
    assert_eq!(lines.len(), 5, "{page}");
    for line in lines {
        let path = line.split(" d=\"").nth(1).unwrap().split('"').next();
        assert!(path.is_some_and(|path| path.contains('L')), "{line}");
    }
}

#[tokio::test]
async fn a_record_shows_its_steps_with_their_state() {
    let bed = PageBed::new().await;
    let claim = Claim::new(Key::from_bytes([7; 32]), Fingerprint::of(b"x"));
    let Claimed::Granted(lease) = bed.store.claim(&claim).await.unwrap() else {
        panic!("nobody else has it");
    };
    for name in ["charge", "mail"] {
        drop(bed.store.step_begin(&lease, name).await.unwrap());
    }
    let result = Bytes::from_static(b"receipt 7");
    drop(
        bed.store
            .step_complete(&lease, "charge", &result)
            .await
            .unwrap(),
    );
    let page = bed.look(&format!("/ui/records/{}", claim.key)).await;
    let (_, happened) = page.split_once("What happened (UTC)").unwrap();
    let (happened, _) = happened.split_once("</section>").unwrap();
    for (name, stands) in [
        ("charge", ">done<"),
        ("mail", ">begun, and not said to be done<"),
    ] {
        let (_, step) = happened.split_once(&format!("<b>{name}</b>")).unwrap();
        let (step, _) = step.split_once("</li>").unwrap();
        assert!(step.contains(stands), "{name}: {step}");
    }
}

#[tokio::test]
async fn the_overview_answers_while_the_store_does_not() {
    let bed = Bed::new().await;
    bed.store.is(Down::Everything);
    let page = bed.admin("/ui/").await;
    assert_eq!(page.status, 200);
    page.tells("The store could not be asked");
}

#[tokio::test]
async fn a_record_says_in_a_sentence_what_happened() {
    let bed = PageBed::new().await;
    let body = r#"{"receipt":"rc_9931","cents":90000000000000001}"#;
    let say = Say::new(201, body).header("Content-Type", "application/json");
    bed.handler.answers(say);
    for name in ["t1", "t1", "t2"] {
        bed.task(name, "A-1").await;
    }
    let key = bed.key().await;
    let page = bed.look(&format!("/ui/records/{key}")).await;
    for told in [
        "Delivered <strong>3 times</strong> at this gate, run <strong>once</strong>, took effect <strong>once</strong>.",
        "work · order_id A-1",
        "gate-7</b> began a run",
        "Succeeded: 201",
        "A client that asks again hears this answer, and a broker 200.",
        "heard 200",
        "201 Created\n",
        "content-type: application/json",
        // Exact: no number went through a double.
        "  &quot;cents&quot;: 90000000000000001\n}",
        "Forgetting it lets the next delivery",
        &format!("/records/{key}?body=true"),
    ] {
        assert!(page.contains(told), "no {told} in {page}");
    }
    let told = bed.get(&format!("/ui/records/{key}/download")).await;
    let disposition = format!("attachment; filename=\"{key}.json\"");
    told.has("content-disposition", &disposition);
    let told: Value = serde_json::from_slice(&told.body).unwrap();
    assert_eq!(told["state"], "succeeded");
    assert_eq!(told["outcome"]["body"]["text"], body);
    assert_eq!(told["deliveries"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn bodies_are_shown_only_where_the_route_says_so() {
    let bed = PageBed::with(|settings| settings.routes[0].show_bodies = false).await;
    bed.handler.answers(Say::new(200, "a-secret-answer"));
    bed.task("t1", "A-1").await;
    bed.task_heard("t2", "secret-order", 422).await;
    let letter = bed.letters().await[0].id;
    for key in bed.keys().await {
        let page = bed.look(&format!("/ui/records/{key}")).await;
        assert!(page.contains("show_bodies = true") && !page.contains("a-secret-answer"));
        let told = bed.get(&format!("/ui/records/{key}/download")).await;
        assert!(!told.text().contains("a-secret-answer"));
    }
    let page = bed.look(&format!("/ui/letters/{letter}")).await;
    assert!(page.contains("not shown"), "{page}");
    assert!(!page.contains("secret-order&quot;,"), "{page}");
    assert!(page.contains("x-cloudtasks-taskname: …"), "{page}");
    assert!(page.contains("content-type: application/json"), "{page}");
}

#[tokio::test]
async fn what_is_hidden_on_the_page_is_hidden_in_its_downloads() {
    for shown in [false, true] {
        let bed = PageBed::with(|settings| settings.routes[0].show_bodies = shown).await;
        let say = Say::new(422, "answered").header("Location", "a-secret-of-the-answer");
        bed.handler.answers(say);
        bed.task("t1", "A-1").await.is(200);
        let (key, letter) = (bed.key().await, bed.letters().await[0].id);
        for path in ["", "/download"] {
            let told = bed.get(&format!("/ui/records/{key}{path}")).await;
            assert_eq!(
                told.text().contains("a-secret-of-the-answer"),
                shown,
                "{told:?}"
            );
        }
        let body = bed.get(&format!("/ui/letters/{letter}/body")).await;
        assert_eq!(body.text().contains("order_id\":"), shown, "{body:?}");
        assert_eq!(body.status, if shown { 200 } else { 403 });
    }
}

#[tokio::test]
async fn a_large_letter_is_shown_in_part_and_downloaded_whole() {
    let bed = PageBed::new().await;
    bed.handler.says(422);
    let more = "x".repeat(200 * 1024);
    let payload = json!({"order_id": "A-1", "more": more}).to_string();
    bed.deliver("t1", &payload).await.is(200);
    let letter = bed.letters().await[0].id;
    let page = bed.look(&format!("/ui/letters/{letter}")).await;
    assert!(page.len() < 100 * 1024, "{} bytes", page.len());
    assert!(page.contains("download it to see the rest"), "{page}");
    let body = bed.get(&format!("/ui/letters/{letter}/body")).await;
    assert_eq!((body.status, body.text()), (200, &*payload));
    body.has("content-type", "application/octet-stream");
}

#[tokio::test]
async fn runs_that_were_superseded_are_in_the_timeline() {
    let bed = PageBed::with(|settings| settings.routes[0].max_attempts = 0).await;
    bed.task_heard("t1", "A-1", 503).await.is(503);
    bed.handler.says(200);
    bed.task("t1", "A-1").await.is(200);
    let key = bed.key().await;
    let page = bed.look(&format!("/ui/records/{key}")).await;
    for told in [
        "Delivered <strong>twice</strong> at this gate, run <strong>twice</strong>, took effect <strong>once</strong>.",
        "That run failed: the handler answered 503",
        "Succeeded: 200",
    ] {
        assert!(page.contains(told), "no {told} in {page}");
    }
    // Each at its moment: what a sender heard comes after the run that decided it.
    let events = page.split_once("What happened").unwrap().1;
    for order in [
        [
            "Delivered by",
            "began a run",
            "That run failed",
            "heard 503",
        ],
        ["Delivered by", "began a run", "Succeeded: 200", "heard 200"],
    ] {
        let mut rest = events;
        for told in order {
            let found = rest.split_once(told);
            rest = found
                .unwrap_or_else(|| panic!("no {told} then in {page}"))
                .1;
        }
    }
}

#[tokio::test]
async fn what_nobody_knows_is_said_so() {
    let bed = PageBed::new().await;
    let absent = format!("/ui/records/v1_{}", "0".repeat(64));
    let said = bed.get(&absent).await;
    assert_eq!(said.status, 404);
    said.tells("nothing is known of this key");
    assert_eq!(bed.get("/ui/records/v1_12").await.status, 400);
    assert_eq!(bed.get("/ui/letters/12345678").await.status, 404);
    assert_eq!(bed.get("/ui/routes/none").await.status, 404);
    assert_eq!(bed.get("/ui/letters/jobs/77").await.status, 404);
}

#[tokio::test]
async fn an_address_that_cannot_be_read_is_refused_on_the_page() {
    let bed = PageBed::new().await;
    for path in [
        "/ui/letters/jobs/x",
        "/ui/records/%FF",
        "/ui/letters/%FF",
        "/ui/search?q=a&q=b",
    ] {
        let said = bed.get(path).await;
        assert_eq!(said.status, 400, "{path}: {said:?}");
        assert!(
            said.text().starts_with("<!DOCTYPE html>"),
            "{path}: {said:?}"
        );
        assert!(
            said.text().contains("This address cannot be read"),
            "{path}: {said:?}"
        );
    }
}
