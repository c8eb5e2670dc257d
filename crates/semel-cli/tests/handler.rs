//! Completion inside the handler's own transaction, end to end: one decrement, always, and the sender hears the truth.

use crate::support::python::Points;
use crate::support::sender::{deliver, send};
use crate::support::stock::{Pair, Stock, Terms, order, truth};
use crate::support::wait_for;
use semel_rig::http::Answer;

/// Where a run can stand, in order.
const POINTS: [&str; 4] = [
    "before-complete",
    "before-commit",
    "before-answer",
    "after-answer",
];

/// Runs each case in a thread of its own: most of the time is spent waiting for leases.
fn each<T: Sync>(cases: &[T], judge: impl Fn(&T) + Sync) {
    std::thread::scope(|scope| {
        for case in cases {
            let judge = &judge;
            scope.spawn(move || judge(case));
        }
    });
}

#[test]
fn a_handler_killed_at_any_point_decrements_once() {
    let stock = Stock::new();
    each(&POINTS, |point| {
        let (points, item) = (Points::new(), format!("killed-handler-{point}"));
        let Pair { gate, mut handler } = stock.pair(&points, Terms::LONG);
        stock.put(&item);
        let first = send(gate.port, order(&item).header("X-At", *point));
        points.wait_reached(point);
        handler.kill();
        let first = first.join().unwrap().unwrap();
        match *point {
            "before-complete" | "before-commit" => {
                assert_eq!(first.status, 502, "{point}: {first:?}");
                assert_eq!(stock.taken(&item), 0, "{point}");
            }
            // It is committed: the sender hears so, also from a handler that never answered.
            _ => assert_eq!(
                (first.status, &*first.body),
                (200, &*truth(&item)),
                "{point}"
            ),
        }
        handler.again();
        stock.settle(point, gate.port, &item);
    });
}

#[test]
fn a_gate_killed_at_any_point_of_the_handler_decrements_once() {
    let stock = Stock::new();
    each(&POINTS, |point| {
        let (points, item) = (Points::new(), format!("killed-gate-{point}"));
        let Pair { mut gate, handler } = stock.pair(&points, Terms::LONG);
        stock.put(&item);
        let first = send(gate.port, order(&item).header("X-At", *point));
        points.wait_reached(point);
        gate.kill();
        if let Ok(first) = first.join().unwrap() {
            assert_eq!((*point, &*first.body), ("after-answer", &*truth(&item)));
        }
        gate.again();
        points.go(point);
        stock.settle(point, gate.port, &item);
        drop(handler);
    });
}

#[test]
fn a_gate_and_its_handler_killed_together_decrement_once() {
    let stock = Stock::new();
    each(&POINTS, |point| {
        let (points, item) = (Points::new(), format!("killed-both-{point}"));
        let Pair {
            mut gate,
            mut handler,
        } = stock.pair(&points, Terms::SHORT_LEASE);
        stock.put(&item);
        let first = send(gate.port, order(&item).header("X-At", *point));
        points.wait_reached(point);
        gate.kill();
        handler.kill();
        if let Ok(first) = first.join().unwrap() {
            assert_eq!((*point, &*first.body), ("after-answer", &*truth(&item)));
        }
        handler.again();
        gate.again();
        stock.settle(point, gate.port, &item);
    });
}

/// How an overtaken run lost its right.
#[derive(Clone, Copy, Debug)]
enum Lost {
    /// The handler stood still for longer than it may take.
    Timeout,
    /// Its gate was killed, and the lease lapsed.
    Lapse,
}

#[test]
fn a_run_overtaken_while_it_stood_still_rolls_back() {
    let cases = [
        ("begun", Lost::Timeout),
        ("begun", Lost::Lapse),
        ("before-complete", Lost::Timeout),
        ("before-complete", Lost::Lapse),
    ];
    each(&cases, |&(point, lost)| {
        let stock = Stock::new();
        let item = format!("overtaken-{point}-{lost:?}");
        let (points, other_points) = (Points::new(), Points::new());
        let terms = match lost {
            Lost::Timeout => Terms::SHORT,
            Lost::Lapse => Terms::SHORT_LEASE,
        };
        let mut paused = stock.pair(&points, terms);
        let other = stock.pair(&other_points, Terms::SHORT_LEASE);
        stock.put(&item);
        let first = send(paused.gate.port, order(&item).header("X-At", point));
        points.wait_reached(point);
        paused.handler.process().pause().unwrap();
        match lost {
            Lost::Timeout => assert_eq!(first.join().unwrap().unwrap().status, 504, "{item}"),
            Lost::Lapse => {
                paused.gate.kill();
                assert!(first.join().unwrap().is_err(), "{item}");
            }
        }
        let second = {
            let (port, request) = (other.gate.port, order(&item));
            std::thread::spawn(move || deliver(port, &request))
        };
        if point == "before-complete" {
            // The second run has the right, but the paused transaction still holds the item.
            wait_for("the second run at the item", || waits_for_item(&stock));
            go_on(&paused, &points, point);
        }
        assert_eq!(second.join().unwrap().body, truth(&item), "{item}");
        // Where nothing was in the way of the second run, the first goes on only now.
        go_on(&paused, &points, point);
        wait_for("the end of the overtaken run", || {
            let log = paused.handler.log();
            log.contains("rolled back: semel.complete: stale")
        });
        stock.settle(&item, other.gate.port, &item);
    });
}

/// Lets a paused run go on.
fn go_on(paused: &Pair, points: &Points, point: &str) {
    points.go(point);
    paused.handler.process().resume().unwrap();
}

/// Whether a run waits for what another transaction holds; the database has one item.
fn waits_for_item(stock: &Stock) -> bool {
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                   AND wait_event_type = 'Lock' AND query LIKE 'UPDATE stock %'";
    stock.ask(waiting) != "0"
}

#[test]
fn a_run_that_stood_still_before_its_commit_is_waited_for() {
    let stock = Stock::new();
    let (points, other_points) = (Points::new(), Points::new());
    let paused = stock.pair(&points, Terms::SHORT);
    let other = stock.pair(&other_points, Terms::SHORT_LEASE);
    stock.put("lamp");
    let first = send(
        paused.gate.port,
        order("lamp").header("X-At", "before-commit"),
    );
    points.wait_reached("before-commit");
    paused.handler.process().pause().unwrap();
    // The transaction holds the record: nobody can take over, nobody can fail it.
    let busy = order("lamp").send_blocking(other.gate.port).unwrap();
    assert_eq!(busy.status, 409, "{busy:?}");
    wait_for("the gate to try to record a timeout", || {
        paused.gate.log().contains("an outcome is not recorded yet")
    });
    go_on(&paused, &points, "before-commit");
    let first = first.join().unwrap().unwrap();
    assert_eq!((first.status, first.body), (200, truth("lamp")));
    stock.settle("paused before its commit", other.gate.port, "lamp");
}

/// One delivery to a handler that misbehaves as told.
fn first_answer(stock: &Stock, pair: &Pair, item: &str, how: &str) -> Answer {
    stock.put(item);
    let first = order(item).header("X-How", how);
    first.send_blocking(pair.gate.port).unwrap()
}

#[test]
fn a_sender_hears_what_was_committed_not_what_was_said() {
    let stock = Stock::new();
    let pair = stock.pair(&Points::new(), Terms::LONG);

    let first = first_answer(&stock, &pair, "chair", "commit-then-500");
    assert_eq!((first.status, first.body.clone()), (200, truth("chair")));
    assert_eq!(first.header("content-type"), Some("application/json"));
    assert_eq!(first.header("x-broken"), None, "{first:?}");
    stock.settle("committed, then answered 500", pair.gate.port, "chair");

    let first = first_answer(&stock, &pair, "table", "roll-back-then-200");
    assert_eq!(first.status, 502, "{first:?}");
    assert!(first.body.contains("not-completed"), "{first:?}");
    assert_eq!(stock.taken("table"), 0);
    stock.settle("rolled back, then answered 200", pair.gate.port, "table");
}

#[test]
fn a_commit_after_the_answer_is_waited_for() {
    let stock = Stock::new();
    let points = Points::new();
    let pair = stock.pair(&points, Terms::LONG);
    stock.put("lamp");
    let first = send(
        pair.gate.port,
        order("lamp").header("X-How", "answer-then-commit"),
    );
    points.wait_reached("before-late-commit");
    wait_for("the gate to meet the open transaction", || {
        pair.gate.log().contains("an outcome is not recorded yet")
    });
    points.go("before-late-commit");
    let first = first.join().unwrap().unwrap();
    assert_eq!((first.status, first.body), (200, truth("lamp")));
    stock.settle("committed after the answer", pair.gate.port, "lamp");
}

#[test]
fn a_completion_after_the_answer_is_too_late() {
    let stock = Stock::new();
    let points = Points::new();
    let pair = stock.pair(&points, Terms::LONG);
    stock.put("lamp");
    let request = order("lamp").header("X-How", "answer-then-complete");
    let first = request.send_blocking(pair.gate.port).unwrap();
    assert_eq!(first.status, 502, "{first:?}");
    points.go("before-late-complete");
    wait_for("the late run to roll back", || {
        let log = pair.handler.log();
        log.contains("rolled back: semel.complete: stale")
    });
    assert_eq!(stock.taken("lamp"), 0);
    stock.settle("completed after the answer", pair.gate.port, "lamp");
}

#[test]
fn an_order_that_cannot_be_filled_changes_nothing_for_good() {
    let stock = Stock::new();
    let pair = stock.pair(&Points::new(), Terms::LONG);
    let mut too_much = order("lamp");
    stock.put("lamp");
    too_much.body = r#"{"item": "lamp", "pieces": 11}"#.into();
    for (request, status) in [(order("sofa"), 404), (too_much.clone(), 409)] {
        let first = request.send_blocking(pair.gate.port).unwrap();
        assert_eq!(first.status, status, "{first:?}");
        assert_eq!(first.header("retry-after"), None, "{first:?}");
        let again = request.send_blocking(pair.gate.port).unwrap();
        assert_eq!((again.status, &again.body), (status, &first.body));
        assert_eq!(again.header("idempotent-replayed"), Some("true"));
    }
    // New pieces do not change an answer for good.
    testbed::query(&stock.database, "UPDATE stock SET pieces = 100").unwrap();
    assert_eq!(too_much.send_blocking(pair.gate.port).unwrap().status, 409);
    assert_eq!(stock.ask("SELECT pieces FROM stock"), "100");
}

#[test]
fn a_task_that_cannot_be_done_is_acknowledged_and_kept_as_one_letter() {
    let stock = Stock::new();
    let pair = stock.pair(&Points::new(), Terms::LONG);
    let task = order("sofa")
        .path("/tasks")
        .header("X-CloudTasks-QueueName", "stock")
        .header("X-CloudTasks-TaskName", "1");
    for _ in 0..2 {
        assert_eq!(task.send_blocking(pair.gate.port).unwrap().status, 200);
    }
    assert_eq!(stock.ask("SELECT count(*) FROM semel.letter"), "1");
}
