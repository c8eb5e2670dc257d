//! A duplicate's span links to the span of the run whose answer it hears.

use super::*;
use crate::landing::LandingBed;
use semel_gate::settings::Lands;
use std::collections::BTreeSet;

#[tokio::test]
async fn a_replay_links_to_the_span_that_really_ran() {
    let (bed, receiver) = traced(|_| {}).await;
    bed.handler.says(503);
    for status in [503, 200, 200] {
        assert_eq!(bed.api("order-7").await.status, status);
    }
    let spans = receiver.spans(4 + 4 + 2).await;
    let [failed] = ended(&spans, "retryable")[..] else {
        panic!("{spans:#?}")
    };
    let [ran] = ended(&spans, "ran")[..] else {
        panic!("{spans:#?}")
    };
    let [replay] = ended(&spans, "replayed")[..] else {
        panic!("{spans:#?}")
    };
    assert_eq!(replay.links(), [ran.context()]);
    assert_eq!(replay.error(), None);
    assert!(ran.links().is_empty() && failed.links().is_empty());
    assert_ne!(
        replay.span.trace_id, ran.span.trace_id,
        "each has a trace of its own"
    );
    let claims = spans.iter().filter(|it| it.span.name == "claim");
    let answers: Vec<_> = claims
        .map(|it| it.attributes()["semel.claim"].clone())
        .collect();
    assert_eq!(answers, ["granted", "granted", "replayed"]);
}

#[tokio::test]
async fn the_link_leads_from_another_gate_too_and_no_client_sees_it() {
    let (first, receiver) = traced(|_| {}).await;
    first.api("order-7").await.is(200);
    let to = otlp(&receiver, PROTOCOLS[0]);
    let handler = Handler::start().await;
    let second = Bed::on(Arc::clone(&first.store), handler, |settings| {
        settings.otlp = Some(to)
    });
    let answer = second.await.api("order-7").await;
    assert_eq!(answer.headers["idempotent-replayed"], "true");
    assert!(
        !answer.headers.contains_key("semel-traceparent"),
        "{answer:?}"
    );
    let spans = receiver.spans(4 + 2).await;
    let replay = ended(&spans, "replayed")[0];
    assert_eq!(replay.links(), [ended(&spans, "ran")[0].context()]);
}

#[tokio::test]
async fn whoever_attached_to_a_run_links_to_it() {
    let (bed, receiver) = traced(|_| {}).await;
    let held = bed.hold(Sender::Task.sends("1", "{}")).await;
    let (_, attached) = bed.crowd(&Sender::Task.sends("1", "{}")).await;
    bed.go(held).await.is(200);
    for one in attached {
        assert_eq!(one.await.unwrap().status, 200);
    }
    let spans = receiver.spans(4 + 2 * 65).await;
    let ran = ended(&spans, "ran")[0].context();
    let replays = ended(&spans, "replayed");
    assert_eq!(replays.len(), 64);
    assert!(replays.iter().all(|it| it.links() == [ran.clone()]));
}

#[tokio::test]
async fn a_run_that_is_not_sampled_leaves_nothing_behind() {
    let (bed, receiver) = traced(|_| {}).await;
    let unsampled = Sender::Task
        .sends("1", "{}")
        .header("traceparent", UNSAMPLED);
    bed.ask(unsampled).await.is(200);
    let record = bed.record().await;
    let outcome = Outcome::decode(record.result.as_ref().unwrap()).unwrap();
    assert!(
        !outcome.headers.contains_key("semel-traceparent"),
        "{outcome:?}"
    );
    let sampled = Sender::Task.sends("1", "{}").header("traceparent", TRACE);
    assert_eq!(bed.ask(sampled).await.status, 200);
    let spans = receiver.spans(2).await;
    assert!(ended(&spans, "replayed")[0].links().is_empty());
}

// === Where no outcome of a run is heard ===

#[tokio::test]
async fn who_hears_that_it_runs_links_to_the_run_here_and_on_another_gate() {
    let no_patience = |settings: &mut Settings| {
        terms_of(&mut settings.routes[0], |terms| terms.wait = Duration::ZERO);
    };
    let (here, receiver) = traced(no_patience).await;
    let to = otlp(&receiver, PROTOCOLS[0]);
    let handler = Handler::start().await;
    let there = Bed::on(Arc::clone(&here.store), handler, |settings| {
        settings.otlp = Some(to);
        no_patience(settings);
    });
    let there = there.await;
    let held = here.hold(Sender::Task.sends("1", "{}")).await;
    for bed in [&here, &there] {
        bed.task("1").await.is_pause(409, "busy");
    }
    here.go(held).await.is(200);
    let spans = receiver.spans(4 + 2 * 2).await;
    let ran = ended(&spans, "ran")[0].context();
    let busy = ended(&spans, "busy");
    assert_eq!(busy.len(), 2, "{spans:#?}");
    assert!(busy.iter().all(|it| it.links() == [ran.clone()]));
}

#[tokio::test]
async fn other_work_under_the_same_key_links_to_what_began_under_it() {
    for sender in [Sender::Api, Sender::Task] {
        let (bed, receiver) = traced(|_| {}).await;
        bed.ask(sender.sends("1", "{}")).await.is(200);
        drop(bed.ask(sender.sends("1", "[]")).await);
        let spans = receiver.spans(4 + 2).await;
        let [mismatched] = ended(&spans, "mismatched")[..] else {
            panic!("{spans:#?}")
        };
        assert_eq!(mismatched.links(), [ended(&spans, "ran")[0].context()]);
    }
}

#[tokio::test]
async fn a_replay_of_what_the_handler_recorded_links_to_what_began_it() {
    let handlers_own = |settings: &mut Settings| {
        settings.routes[0].completes = Completes::Handler;
    };
    let (bed, receiver) = traced(handlers_own).await;
    let held = bed.hold(Sender::Task.sends("1", "{}")).await;
    bed.complete(Outcome::ok("done")).await;
    bed.go(held).await.is(200);
    bed.task("1").await.is_replay(200);
    let spans = receiver.spans(4 + 2).await;
    let replay = ended(&spans, "replayed")[0];
    assert_eq!(replay.links(), [ended(&spans, "ran")[0].context()]);
}

/// A gate that records no spans names its sender's; whoever is within that one anyway needs no link to it.
#[tokio::test]
async fn a_redelivery_within_the_span_that_began_it_does_not_link_to_it() {
    let (bed, receiver) = traced(|_| {}).await;
    let untraced = Bed::on(Arc::clone(&bed.store), Handler::start().await, |_| {}).await;
    let sent = |payload: &str| {
        let ask = Sender::Api.sends("1", payload);
        ask.header("traceparent", TRACE)
    };
    untraced.ask(sent("{}")).await.is(200);
    bed.ask(sent("[]")).await.is(422);
    bed.ask(Sender::Api.sends("1", "[]")).await.is(422);
    let spans = receiver.spans(2 + 2).await;
    let links: Vec<_> = ended(&spans, "mismatched")
        .iter()
        .map(|it| it.links())
        .collect();
    assert_eq!(links, [vec![], vec![TRACE.to_owned()]]);
}

#[tokio::test]
async fn a_store_that_cannot_be_asked_costs_the_link_alone() {
    let (bed, receiver) = traced(|_| {}).await;
    bed.api("1").await.is(200);
    bed.store.is(Down::OutcomesAndLooks);
    bed.ask(Sender::Api.sends("1", "[]")).await.is(422);
    let spans = receiver.spans(4 + 2).await;
    assert!(ended(&spans, "mismatched")[0].links().is_empty());
}

#[tokio::test]
async fn the_write_of_a_group_links_to_the_deliveries_whose_rows_it_made_durable() {
    const DELIVERIES: usize = 40;
    let receiver = Receiver::start().await;
    let to = otlp(&receiver, PROTOCOLS[0]);
    let land = LandingBed::with(Lands::Delivery, |settings| settings.otlp = Some(to)).await;
    let tasks: Vec<_> = (0..DELIVERIES)
        .map(|n| land.bed.begin(Sender::Task.sends(&n.to_string(), "{}")))
        .collect();
    for task in tasks {
        task.await.unwrap().is(204);
    }
    // Each has its own, a claim, a record and a landing, beside those of the groups.
    let mut spans = receiver.spans(4 * DELIVERIES + 1).await;
    let links = |spans: &[Received]| {
        let groups = spans.iter().filter(|it| it.span.name == "land group");
        groups.flat_map(Received::links).count()
    };
    while links(&spans) < DELIVERIES {
        spans = receiver.spans(spans.len() + 1).await;
    }
    let groups = spans.iter().filter(|it| it.span.name == "land group");
    let mut linked = BTreeSet::new();
    for group in groups {
        let rows = group.attributes()["semel.landing.rows"].clone();
        assert_eq!(rows, group.links().len().to_string());
        assert!(group.span.parent_span_id.is_empty(), "{group:?}");
        linked.extend(group.links());
    }
    let deliveries = ended(&spans, "ran").into_iter().map(Received::context);
    assert_eq!(linked, deliveries.collect());
}
