//! Draining, slots and other limits, and what operators see of it.

use crate::support::prelude::*;
use semel::Store;
use semel_gate::Unfinished;

fn hold(bed: &Bed) {
    bed.handler.will(Act::Hold(Say::new(200, "done")));
}

/// Waits until the gate says that it takes no more.
async fn draining(admin: SocketAddr) {
    let told = async || Ask::get("/readyz").send(admin).await.status != 200;
    until("draining", told).await;
}

/// Waits until a gate that was told to stop has nothing left to do.
async fn ends_well(served: JoinHandle<Unfinished>) {
    let left = within("the end", served).await.unwrap();
    assert_eq!(left, Unfinished::default());
}

// === Draining ===

#[tokio::test]
async fn a_drain_finishes_what_is_in_hand_and_takes_no_more() {
    let bed = Bed::new().await;
    let first = bed.hold(Sender::Task.sends("n", "{}")).await;
    let (gate, admin) = (bed.gate, bed.admin);
    let (served, handler, store) = bed.stop();
    draining(admin).await;
    let told = Ask::get("/readyz").send(admin).await;
    assert_eq!((told.status, told.text()), (503, "draining\n"));
    assert_eq!(Ask::get("/healthz").send(admin).await.status, 200);
    let new = TcpStream::connect(gate).await;
    assert!(new.is_err(), "a new connection was taken");
    assert!(!served.is_finished());
    handler.go();
    let answer = first.await.unwrap();
    answer.is(200).says("done");
    ends_well(served).await;
    store.outcomes(1).await;
}

#[tokio::test]
async fn an_idle_gate_stops_at_once() {
    let bed = Bed::new().await;
    bed.task("n").await.is(200);
    let (served, _handler, _store) = bed.stop();
    let left = tokio::time::timeout(Duration::from_secs(2), served).await;
    assert_eq!(left.unwrap().unwrap(), Unfinished::default());
}

#[tokio::test]
async fn a_drain_also_finishes_the_run_of_a_client_that_hung_up() {
    let bed = Bed::new().await;
    let first = bed.hold(Sender::Task.sends("n", "{}").h2c()).await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    let admin = bed.admin;
    let (served, handler, store) = bed.stop();
    draining(admin).await;
    handler.go();
    ends_well(served).await;
    store.outcomes(1).await;
}

#[tokio::test]
async fn a_run_over_the_grace_is_left_and_told() {
    let bed = Bed::with(|settings| settings.grace = Duration::from_millis(100)).await;
    let act = Act::Hang;
    let first = bed.begin_with(act, Sender::Task.sends("n", "{}")).await;
    let key = bed.key().await;
    let (served, handler, store) = bed.stop();
    let left = within("the end", served).await.unwrap();
    assert_eq!(left.runs, [("work".to_owned(), key)]);
    assert_eq!(handler.count(), 1);
    let record = store.kept().look(&key).await.unwrap();
    assert_eq!(record.unwrap().state, State::Running, "its lease lapses");
    first.abort();
}

#[tokio::test]
async fn what_waits_for_a_slot_when_time_is_up_is_sent_home_unclaimed() {
    let bed = Bed::with(|settings| {
        settings.grace = Duration::from_millis(200);
        settings.routes[0].concurrency = 1;
        // By its own patience it would wait longer than this test does.
        terms_of(&mut settings.routes[0], |terms| {
            (terms.wait, terms.timeout) = (Duration::from_secs(60), Duration::from_secs(60));
        });
    })
    .await;
    let act = Act::Hang;
    let first = bed.begin_with(act, Sender::Task.sends("one", "{}")).await;
    let second = bed.begin(Sender::Task.sends("two", "{}"));
    queued(&bed, 1).await;
    let (served, handler, store) = bed.stop();
    second.await.unwrap().is_problem(429, "full");
    let left = within("the end", served).await.unwrap();
    assert_eq!((left.runs.len(), handler.count()), (1, 1));
    let kept = Store::list(store.kept(), None, None, 10).await;
    assert_eq!(kept.unwrap().items.len(), 1);
    first.abort();
}

// === Slots ===

/// Waits until so many deliveries are in the queue.
async fn queued(bed: &Bed, count: usize) {
    let line = format!("semel_queued{{route=\"work\"}} {count}\n");
    bed.until_counted(&line).await;
}

#[tokio::test]
async fn runs_are_bounded_then_queued_then_refused() {
    let bed = Bed::route(|route| (route.concurrency, route.queue) = (2, 1)).await;
    for _ in 0..3 {
        hold(&bed);
    }
    let mut running = Vec::new();
    for name in ["1", "2"] {
        running.push(bed.begin(Sender::Task.sends(name, "{}")));
        bed.handler.arrived().await;
    }
    running.push(bed.begin(Sender::Task.sends("3", "{}")));
    queued(&bed, 1).await;
    bed.task("4").await.is_problem(429, "full");
    assert_eq!((bed.runs(), bed.records().await.len()), (2, 2));
    bed.handler.go();
    bed.handler.arrived().await;
    assert_eq!(bed.runs(), 3, "the queued one has its turn");
    bed.handler.go();
    bed.handler.go();
    for run in running {
        run.await.unwrap().is(200);
    }
    bed.task("4").await.is(200);
}

#[tokio::test]
async fn settled_keys_are_answered_although_all_slots_are_taken() {
    // A second gate has nothing in its memory, so its answers come from the store.
    let settled = Bed::route(|route| route.final_statuses = vec![422..=422]).await;
    for sender in SENDERS {
        settled.deliver(sender, "good").await.is(200);
        settled.handler.says(422);
        settled.deliver(sender, "bad").await;
    }
    let handler = Handler::start().await;
    let bed = Bed::on(std::sync::Arc::clone(&settled.store), handler, |settings| {
        let route = &mut settings.routes[0];
        (route.concurrency, route.queue) = (1, 0);
    })
    .await;
    let first = bed.hold(Sender::Task.sends("open", "{}")).await;
    for sender in SENDERS {
        bed.deliver(sender, "new").await.is(429);
        bed.deliver(sender, "good").await.is_replay(200);
        let failed = if sender == Sender::Api { 422 } else { 200 };
        bed.deliver(sender, "bad").await.is_replay(failed);
    }
    bed.ask(Sender::Api.sends("good", "other")).await.is(422);
    bed.go(first).await.is(200);
    assert_eq!(bed.runs(), 1);
}

#[tokio::test]
async fn duplicates_that_wait_hold_no_slot() {
    let bed = Bed::route(|route| (route.concurrency, route.queue) = (2, 0)).await;
    let first = bed.hold(Sender::Task.sends("1", "{}")).await;
    let (_, attached) = bed.crowd(&Sender::Task.sends("1", "{}")).await;
    bed.task("2").await.is(200);
    bed.go(first).await.is(200);
    for other in attached {
        other.await.unwrap().is_replay(200);
    }
    assert_eq!(bed.runs(), 2);
}

#[tokio::test]
async fn waiters_over_the_limit_hear_409_at_once() {
    for sender in SENDERS {
        let bed = Bed::new().await;
        let first = bed.hold(sender.sends("n", "{}")).await;
        let (one_too_many, attached) = bed.crowd(&sender.sends("n", "{}")).await;
        one_too_many.is_pause(409, "busy");
        bed.go(first).await.is(200);
        for other in attached {
            other.await.unwrap().is_replay(200);
        }
        assert_eq!(bed.runs(), 1);
    }
}

#[tokio::test]
async fn a_slot_comes_back_however_a_run_ends() {
    let bed = Bed::route(|route| {
        (route.concurrency, route.queue) = (1, 0);
        terms_of(route, |terms| terms.timeout = Duration::from_millis(100));
    })
    .await;
    for (n, act) in [Act::Hang, Act::Close, Act::CutHead]
        .into_iter()
        .enumerate()
    {
        bed.handler.will(act);
        let answer = bed.task(&n.to_string()).await;
        assert!(answer.status == 502 || answer.status == 504, "{answer:?}");
    }
    bed.task("good").await.is(200);
}

// === What operators see ===

#[tokio::test]
async fn health_is_being_alive_and_readiness_is_reaching_the_store() {
    let bed = Bed::new().await;
    assert_eq!(bed.admin("/healthz").await.status, 200);
    assert_eq!(bed.admin("/readyz").await.status, 200);
    bed.store.is(Down::Everything);
    assert_eq!(bed.admin("/healthz").await.status, 200);
    let told = bed.admin("/readyz").await;
    assert_eq!(told.status, 503);
    told.tells("store");
    bed.store.is(Down::Nothing);
    assert_eq!(bed.admin("/readyz").await.status, 200);
}

#[tokio::test]
async fn metrics_count_deliveries_duplicates_letters_and_runs() {
    let bed = Bed::route(|route| route.final_statuses = vec![422..=422]).await;
    let none = "semel_duplicates_prevented_total{route=\"work\"} 0";
    bed.counts(none).await;

    for sender in BROKERS {
        bed.deliver(sender, "good").await.is(200);
        bed.deliver(sender, "good").await.is_replay(200);
    }
    bed.handler.says(422).says(500);
    bed.task("bad").await.is(200);
    bed.task("again").await.is(500);
    hold(&bed);
    let running = bed.begin(Sender::Task.sends("running", "{}"));
    while bed.handler.arrived().await.header("x-cloudtasks-taskname") != Some("running") {}

    let metrics = bed.admin("/metrics").await;
    for line in [
        "semel_deliveries_total{route=\"work\",outcome=\"ran\"} 3",
        "semel_deliveries_total{route=\"work\",outcome=\"replayed\"} 3",
        "semel_deliveries_total{route=\"work\",outcome=\"failed\"} 1",
        "semel_deliveries_total{route=\"work\",outcome=\"retryable\"} 1",
        "semel_duplicates_prevented_total{route=\"work\"} 3",
        "semel_letters_kept_total{route=\"work\",reason=\"failed\"} 1",
        "semel_runs_in_hand{route=\"work\"} 1",
        "semel_queued{route=\"work\"} 0",
        "semel_own_seconds_count{route=\"work\"} 8",
        "semel_upstream_seconds_count{route=\"work\"} 5",
    ] {
        let found = metrics.text().lines().any(|other| other == line);
        assert!(found, "{line} is not in\n{}", metrics.text());
    }
    let (key, _) = bed.records().await[0];
    let is_label = metrics.text().contains(&key.to_string());
    assert!(!is_label, "a key is no label");
    bed.go(running).await.is(200);
}
