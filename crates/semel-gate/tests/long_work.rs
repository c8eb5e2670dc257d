//! Work that takes longer than its sender waits: it is done once, and nothing is lost when the sender gives up.

mod last_attempt;

use crate::support::prelude::*;
use semel::Store;
use semel_gate::settings::Terms;

/// How long senders wait here: they hear that the work is running after 1.1 s, and it has its letter by then.
const DEADLINE: Duration = Duration::from_millis(2100);

pub(crate) fn short_deadline(terms: &mut Terms) {
    terms.deadline = Some(DEADLINE);
}

pub(crate) async fn long() -> Bed {
    Bed::terms(short_deadline).await
}

/// Another gate on the same store.
async fn beside(bed: &Bed) -> Bed {
    Bed::on(Arc::clone(&bed.store), Handler::start().await, |settings| {
        terms_of(&mut settings.routes[0], short_deadline);
    })
    .await
}

/// Begins a run that its sender does not wait for; the handler has it, and the sender has heard so.
pub(crate) async fn outlasts(bed: &Bed, say: Say, sender: Sender) {
    let first = bed
        .begin_with(Act::Hold(say), sender.sends("n", "{}"))
        .await;
    let asked = Instant::now();
    first.await.unwrap().is_pause(409, "busy");
    assert!(asked.elapsed() < DEADLINE, "its sender has given up");
}

/// Waits until a run has ended whose sender did not wait for it.
pub(crate) async fn ended(bed: &Bed, outcome: &str) {
    let line = format!("semel_runs_outlasted_total{{route=\"work\",outcome=\"{outcome}\"}} 1\n");
    bed.until_counted(&line).await;
}

#[tokio::test]
async fn it_goes_on_and_the_first_redelivery_after_its_end_hears_its_outcome() {
    for sender in BROKERS {
        let bed = long().await;
        outlasts(&bed, Say::new(200, "done"), sender).await;
        assert_eq!(bed.reasons().await, [Reason::Unfinished]);
        assert_eq!(bed.listed().await[0]["record"], "running");
        bed.handler.go();
        ended(&bed, "ran").await;
        assert_eq!(bed.letters().await, []);
        bed.deliver(sender, "n").await.is_replay(200);
        assert_eq!(bed.runs(), 1);
    }
}

#[tokio::test]
async fn a_redelivery_attaches_and_hears_its_outcome() {
    let bed = long().await;
    outlasts(&bed, Say::new(200, "done"), Sender::Push).await;
    let second = bed.begin(Sender::Push.sends("n", "{}"));
    bed.handler.go();
    second.await.unwrap().is_replay(200);
    assert_eq!(bed.runs(), 1);
}

#[tokio::test]
async fn a_redelivery_to_another_gate_waits_and_hears_its_outcome() {
    let here = long().await;
    let there = beside(&here).await;
    outlasts(&here, Say::new(200, "done"), Sender::Push).await;
    let second = there.begin(Sender::Push.sends("n", "{}"));
    here.handler.go();
    second.await.unwrap().is_replay(200);
    assert_eq!((here.runs(), there.runs()), (1, 0));
}

#[tokio::test]
async fn a_redelivery_hears_again_that_it_runs_before_its_own_deadline() {
    let here = long().await;
    let there = beside(&here).await;
    outlasts(&here, Say::new(200, "done"), Sender::Task).await;
    for bed in [&here, &there] {
        let asked = Instant::now();
        bed.task("n").await.is_pause(409, "busy");
        assert!(asked.elapsed() < DEADLINE, "its sender has given up");
    }
    here.handler.go();
    ended(&here, "ran").await;
    there.task("n").await.is_replay(200);
    assert_eq!((here.runs(), there.runs()), (1, 0));
}

#[tokio::test]
async fn an_api_client_hears_409_and_then_the_answer_and_no_letter_is_kept() {
    let bed = long().await;
    outlasts(&bed, Say::new(201, "charged"), Sender::Api).await;
    assert_eq!(bed.letters().await, []);
    bed.handler.go();
    ended(&bed, "ran").await;
    bed.api("n").await.is_replay(201).says("charged");
    assert_eq!(bed.runs(), 1);
}

#[tokio::test]
async fn a_run_that_ends_before_half_of_the_deadline_keeps_no_letter() {
    let bed = long().await;
    bed.task("n").await.is(200);
    bed.counts("semel_letters_open{route=\"work\"} 0\n").await;
    let metrics = bed.admin("/metrics").await;
    assert!(
        !metrics.text().contains("semel_letters_kept_total{"),
        "{}",
        metrics.text()
    );
}

#[tokio::test]
async fn a_route_that_cuts_its_handler_off_in_time_keeps_no_letter() {
    let bed = Bed::terms(|terms| {
        short_deadline(terms);
        terms.timeout = Duration::from_secs(1);
    })
    .await;
    let reply = bed
        .begin_with(Act::Hang, Sender::Task.sends("n", "{}"))
        .await;
    reply.await.unwrap().is(504);
    assert_eq!(bed.letters().await, []);
}

// === The sender has given up ===

#[tokio::test]
async fn one_that_then_fails_for_good_has_its_letter_and_no_second_one() {
    let bed = Bed::route(|route| {
        terms_of(route, short_deadline);
        route.final_statuses = vec![422..=422];
    })
    .await;
    outlasts(&bed, Say::new(422, "no such order"), Sender::Push).await;
    bed.handler.go();
    ended(&bed, "failed").await;
    assert_eq!(bed.listed().await[0]["record"], "failed");
    bed.deliver(Sender::Push, "n").await.is_replay(200);
    assert_eq!(bed.reasons().await, [Reason::Unfinished]);
    let id = bed.letter().await;
    bed.redrive(&id).await.is(200, &json!({"closed": true}));
    assert_eq!(bed.letters().await, []);
    assert_eq!(bed.runs(), 2);
}

#[tokio::test]
async fn one_that_then_fails_has_its_letter_until_it_has_succeeded() {
    let bed = long().await;
    outlasts(&bed, Say::new(500, "later"), Sender::Task).await;
    bed.handler.go();
    ended(&bed, "retryable").await;
    assert_eq!(bed.listed().await[0]["record"], "waiting");
    bed.task("n").await.is(200);
    assert!(bed.listed().await.is_empty());
    assert_eq!(bed.runs(), 2);
}

#[tokio::test]
async fn one_that_is_then_in_doubt_is_parked_with_its_letter() {
    let bed = Bed::route(|route| {
        terms_of(route, short_deadline);
        route.in_doubt = InDoubt::Park;
    })
    .await;
    let first = bed
        .begin_with(Act::HoldAndClose, Sender::Task.sends("n", "{}"))
        .await;
    first.await.unwrap().is_pause(409, "busy");
    bed.handler.go();
    ended(&bed, "parked").await;
    assert_eq!(bed.reasons().await, [Reason::Unfinished]);
    assert_eq!(bed.listed().await[0]["record"], "parked");
    bed.task("n").await.is(200);
    assert_eq!((bed.letters().await.len(), bed.runs()), (1, 1));
}

// === Trouble ===

#[tokio::test]
async fn a_letter_that_cannot_be_kept_at_first_is_kept_later() {
    let bed = long().await;
    let act = Act::Hold(Say::new(200, "done"));
    bed.store.is(Down::Letters);
    let first = bed.begin_with(act, Sender::Task.sends("n", "{}")).await;
    first.await.unwrap().is_pause(409, "busy");
    assert_eq!(bed.letters().await, []);
    bed.store.is(Down::Nothing);
    until("a letter", async || !bed.letters().await.is_empty()).await;
    bed.handler.go();
    ended(&bed, "ran").await;
    assert_eq!(bed.letters().await, []);
}

#[tokio::test]
async fn a_drain_finishes_it_although_its_sender_has_gone() {
    let bed = long().await;
    outlasts(&bed, Say::new(200, "done"), Sender::Task).await;
    let (served, handler, store) = bed.stop();
    handler.go();
    let left = within("the end", served).await.unwrap();
    assert_eq!(left, semel_gate::Unfinished::default());
    store.outcomes(1).await;
    let letters = semel::store::Letters::list(store.kept(), None, 10).await;
    assert_eq!(letters.unwrap().items, []);
}

#[tokio::test]
async fn one_over_the_grace_is_left_and_told_and_has_its_letter() {
    let bed = Bed::with(|settings| {
        settings.grace = Duration::from_millis(100);
        terms_of(&mut settings.routes[0], short_deadline);
    })
    .await;
    outlasts(&bed, Say::new(200, "done"), Sender::Task).await;
    let key = bed.key().await;
    let (served, _handler, store) = bed.stop();
    let left = within("the end", served).await.unwrap();
    assert_eq!(left.runs, [("work".to_owned(), key)]);
    let kept = Store::list(store.kept(), None, None, 10).await.unwrap();
    assert_eq!(kept.items[0].1.state, State::Running, "its lease lapses");
    let letters = semel::store::Letters::list(store.kept(), None, 10).await;
    assert_eq!(letters.unwrap().items[0].reason, Reason::Unfinished);
}
