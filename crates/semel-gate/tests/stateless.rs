//! Routes without records: each delivery runs, and the handler is told what tells deliveries and work apart.

use crate::support::prelude::*;
use jiff::Timestamp;
use semel_gate::settings::{OnExhausted, RecordKeeping};

fn stateless(route: &mut Route) {
    route.record = RecordKeeping::None;
    route.on_invalid = OnInvalid::Reject;
    route.on_exhausted = OnExhausted::Nack;
}

/// A gate whose store answers nothing.
async fn bed(change: impl FnOnce(&mut Route)) -> Bed {
    let bed = Bed::route(|route| {
        stateless(route);
        change(route);
    })
    .await;
    bed.store.is(Down::Everything);
    bed
}

#[tokio::test]
async fn every_delivery_runs_and_the_store_is_not_asked() {
    for sender in SENDERS {
        let bed = bed(|_| {}).await;
        bed.deliver(sender, "n").await.is(200).says("run 1");
        bed.deliver(sender, "n").await.is(200).says("run 2");
        assert_eq!(bed.runs(), 2);
    }
}

#[tokio::test]
async fn the_handler_is_told_which_work_and_which_delivery_it_is() {
    let bed = bed(|route| keyed_by(route, "/order")).await;
    let push = |id: &str| {
        let body = json!({
            "message": {
                "data": "eyJvcmRlciI6N30=", "messageId": id, "publishTime": "2026-11-17T10:00:00.5Z",
            },
            "subscription": "projects/shop/subscriptions/orders",
            "deliveryAttempt": 3,
        });
        Ask::post("/work").body(body.to_string())
    };
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let one = push("m1").header("traceparent", trace);
    let one = bed.forwards(one.header("Semel-Delivery", "forged")).await;
    let other = bed.forwards(push("m2")).await;
    one.has("semel-message-id", "m1")
        .has("semel-source", "pubsub")
        .has("semel-attempt", "3")
        .has("semel-published-at", "2026-11-17T10:00:00.500000Z")
        .has("traceparent", trace);
    for same in ["semel-key", "idempotency-key", "semel-fingerprint"] {
        assert!(one.header(same).is_some(), "{same}");
        assert_eq!(one.header(same), other.header(same), "{same}");
    }
    assert_eq!(one.header("semel-key"), one.header("idempotency-key"));
    assert_eq!(one.header("semel-delivery").unwrap().len(), 32);
    assert_ne!(one.header("semel-delivery"), other.header("semel-delivery"));
    let at = |seen: &Seen, name: &str| seen.header(name).unwrap().parse::<Timestamp>().unwrap();
    assert!(at(&one, "semel-received-at") > at(&one, "semel-published-at"));
    for absent in ["semel-fence", "semel-steps"] {
        assert_eq!(one.header(absent), None, "{absent}");
    }
}

#[tokio::test]
async fn what_a_sender_does_not_say_is_left_out_or_is_the_arrival() {
    let bed = bed(|_| {}).await;
    let seen = bed.forwards(Sender::Api.sends("k", "{}")).await;
    for absent in ["semel-attempt", "semel-message-id"] {
        assert_eq!(seen.header(absent), None, "{absent}");
    }
    let published = seen.header("semel-published-at");
    assert_eq!(published, seen.header("semel-received-at"));
    // An id that is no header is not the handler's.
    let odd = Ask::post("/work").body(envelope("a\nb", "{}", &json!({})));
    assert_eq!(bed.forwards(odd).await.header("semel-message-id"), None);
}

#[tokio::test]
async fn the_sender_hears_the_handler() {
    for sender in BROKERS {
        let bed =
            bed(|route| terms_of(route, |terms| terms.timeout = Duration::from_millis(150))).await;
        bed.handler.says(202).says(422).says(500);
        bed.handler.will(Act::Hang).will(Act::Close);
        for status in [202, 422, 500, 504, 502] {
            bed.deliver(sender, "n").await.is(status);
        }
        bed.handler
            .answers(Say::new(303, "").header("location", "/x"));
        refused(&bed, sender.sends("n", "{}"), 502, "redirect").await;
    }
    let bed = bed(|_| {}).await;
    bed.handler.says(422);
    bed.api("k").await.is(422).says("said 422");
    bed.api("k").await.is(200);
}

#[tokio::test]
async fn an_invalid_delivery_is_refused_and_nothing_is_kept() {
    let bed = bed(|route| keyed_by(route, "/order")).await;
    for sender in SENDERS {
        refused(&bed, sender.sends("n", "{}"), 400, "key-part-missing").await;
    }
    assert_eq!(bed.runs(), 0);
}

#[tokio::test]
async fn who_finds_no_slot_waits_and_one_too_many_hears_429() {
    let bed = bed(|route| (route.concurrency, route.queue) = (1, 1)).await;
    let held = bed.hold(Sender::Task.sends("a", "{}")).await;
    let queued = bed.begin(Sender::Task.sends("a", "{}"));
    bed.until_counted("semel_queued{route=\"work\"} 1").await;
    bed.task("a").await.is_problem(429, "full");
    bed.go(held).await.is(200);
    queued.await.unwrap().is(200);
}

#[tokio::test]
async fn the_handler_is_cut_off_before_its_sender_gives_up() {
    let deadline = Duration::from_millis(1_200);
    let bed = bed(|route| terms_of(route, |terms| terms.deadline = Some(deadline))).await;
    bed.handler.will(Act::Hang);
    bed.task("a").await.is_problem(504, "handler-timeout");
    bed.task("a").await.is(200);
}

#[tokio::test]
async fn it_is_counted_like_any_other() {
    let bed = bed(|_| {}).await;
    bed.task("t").await.is(200);
    bed.handler.says(500);
    bed.task("t").await.is(500);
    for line in [
        "semel_deliveries_total{route=\"work\",outcome=\"ran\"} 1",
        "semel_deliveries_total{route=\"work\",outcome=\"retryable\"} 1",
        "semel_upstream_seconds_count{route=\"work\"} 2",
    ] {
        bed.counts(line).await;
    }
}
