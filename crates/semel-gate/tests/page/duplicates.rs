//! Duplicates: how many come, how late, and what they did not repeat.

use super::bed::PageBed;
use crate::support::prelude::*;

#[tokio::test]
async fn duplicates_are_told_by_sender_and_by_how_late_they_come() {
    let bed = PageBed::new().await;
    for _ in 0..4 {
        bed.task("t1", "A-1").await;
    }
    let page = bed.look("/ui/duplicates").await;
    for told in [
        "<strong>3</strong> of <strong>4</strong>",
        "75.0 %",
        "cloud-tasks",
        "long enough",
        "&lt; 1 s",
    ] {
        assert!(page.contains(told), "no {told} in {page}");
    }
}

#[tokio::test]
async fn one_that_comes_after_its_work_was_forgotten_says_that_retention_is_too_short() {
    let bed = PageBed::with(|settings| {
        terms_of(&mut settings.routes[0], |terms| {
            terms.lease = Duration::from_secs(1);
            terms.timeout = Duration::from_secs(1);
            terms.retention = Duration::from_secs(1);
        });
    })
    .await;
    bed.task("t1", "A-1").await.is(200);
    let runs_again = async || {
        bed.task("t1", "A-1").await;
        bed.handler.count() == 2
    };
    until("a run after the retention", runs_again).await;
    let page = bed.look("/ui/duplicates").await;
    assert!(page.contains(">too short<"), "{page}");
    assert!(page.contains("ran again"), "{page}");
}

#[tokio::test]
async fn a_redrive_of_forgotten_work_says_nothing_about_retention() {
    let bed = PageBed::with(|settings| {
        terms_of(&mut settings.routes[0], |terms| {
            terms.lease = Duration::from_secs(1);
            terms.timeout = Duration::from_secs(1);
            terms.retention = Duration::from_secs(1);
        });
    })
    .await;
    bed.task_heard("t1", "A-1", 422).await.is(200);
    let (key, letter) = (bed.key().await, bed.letters().await[0].id);
    let expired = async || bed.state(&key).await.is_none();
    until("the record has expired", expired).await;
    bed.handler.says(200);
    let redrive = Ask::post(&format!("/letters/{letter}/redrive?run_again=true"));
    redrive.send(bed.admin).await.is(200);
    assert_eq!(bed.handler.count(), 2);
    let page = bed.look("/ui/duplicates").await;
    assert!(!page.contains("too short"), "{page}");
}

#[tokio::test]
async fn how_late_duplicates_come_is_unknown_where_nobody_knows() {
    let bed = PageBed::new().await;
    bed.task("t1", "A-1").await.is(200);
    // Another gate begins on the same store: it has not seen the first delivery.
    let other = bed.other_gate().await;
    let payload = json!({"order_id": "A-1", "cents": 5}).to_string();
    let ask = Sender::Task.sends("t1", &payload);
    let ask = ask.header("Content-Type", "application/json");
    ask.send(other.gate).await.is_replay(200);
    let page = Ask::get("/ui/duplicates").send(other.admin).await;
    page.tells(">unknown<");
    assert!(!page.text().contains("long enough"), "{page:?}");
}

#[tokio::test]
async fn all_screens_count_the_same_duplicates_and_the_same_spared_effects() {
    let bed = PageBed::new().await;
    for name in ["t1", "t1", "t1"] {
        bed.task(name, "A-1").await;
    }
    // A failure that is told again, and other work under the same key, repeat no effect.
    for name in ["t2", "t2"] {
        bed.task_heard(name, "A-2", 422).await;
    }
    let other = r#"{"order_id":"A-1","cents":6}"#;
    bed.deliver("t3", other).await.is(200);
    let overview = bed.look("/ui/").await;
    for told in [
        r#"<span class="n">2</span><span class="t">effects not repeated"#,
        "33.3 % of deliveries",
        "<strong>2</strong> not repeated",
        "3 were duplicates",
        ">50.0 %<",
    ] {
        assert!(overview.contains(told), "no {told} in {overview}");
    }
    let duplicates = bed.look("/ui/duplicates").await;
    for told in [
        "<strong>3</strong> of <strong>6</strong>",
        "50.0 %",
        "<strong>2</strong> of them came after it had succeeded",
    ] {
        assert!(duplicates.contains(told), "no {told} in {duplicates}");
    }
    let metrics = bed.get("/metrics").await;
    metrics.tells("semel_duplicates_prevented_total{route=\"work\"} 2");
}
