//! The quota: a quarter of it is reserved for attempts that may be the last.

use super::{COUNTED, ONCE, UNCOUNTED, unkept};
use crate::support::prelude::*;

#[tokio::test]
async fn early_attempts_leave_a_quarter_to_last_ones() {
    for sender in COUNTED {
        let bed = sender.bed(|route| route.letters.count_max = 4).await;
        for number in 0..4 {
            bed.handler.says(500);
            bed.ask(sender.sends(&format!("early-{number}"), 1))
                .await
                .is(500);
        }
        assert_eq!(bed.letters().await.len(), 3, "{sender:?}");
        // Its sender delivers it again.
        unkept(&bed, 0).await;
        bed.handler.says(500);
        bed.ask(sender.last("last")).await.is(200);
        assert_eq!(bed.letters().await.len(), 4);
        bed.handler.says(500);
        let answer = bed.ask(sender.last("one-too-many")).await;
        // Its console shows the status of the last attempt.
        if sender.declared.source == Source::CloudTasks {
            answer.is(500).says("said 500");
        } else {
            answer.is_problem(409, "letters-full");
        }
        unkept(&bed, 1).await;
        assert_eq!(bed.letters().await.len(), 4);
    }
}

#[tokio::test]
async fn what_does_not_fit_runs_all_the_same_and_is_counted_unless_it_succeeds() {
    for sender in ONCE.into_iter().chain(UNCOUNTED) {
        let bed = sender.bed(|route| route.letters.count_max = 0).await;
        bed.ask(sender.sends("good")).await.is(200);
        unkept(&bed, 0).await;
        bed.handler.says(500);
        let answer = bed.ask(sender.sends("bad")).await;
        let is_once = sender.attempts.most == Some(1);
        if is_once && sender.source != Source::CloudTasks {
            answer.is_problem(409, "letters-full");
        } else {
            answer.is(500);
        }
        unkept(&bed, 1).await;
        assert_eq!(
            (bed.runs(), bed.letters().await.len()),
            (2, 0),
            "{sender:?}"
        );
    }
}

/// A payload that needs more memory to be read than the gate has.
fn costly() -> String {
    let members: Vec<_> = (1000..6000).map(|n| format!("\"{n}\":1")).collect();
    format!("{{\"id\":1,{}}}", members.join(","))
}

async fn small(change: impl FnOnce(&mut Route)) -> Bed {
    Bed::with(|settings| {
        settings.bodies_bytes_max = 100_000;
        settings.limits.room_within = Duration::from_millis(50);
        change(&mut settings.routes[0]);
        keyed_by(&mut settings.routes[0], "/id");
    })
    .await
}

#[tokio::test]
async fn what_cannot_be_read_for_want_of_memory_becomes_no_letter() {
    let [github, task, _, event] = ONCE;
    for sender in [github, task, event] {
        let bed = small(|route| sender.declares(route)).await;
        refused(&bed, (sender.form)("n", &costly()), 409, "no-room").await;
        assert_eq!((bed.runs(), bed.letters().await.len()), (0, 0));
        unkept(&bed, 1).await;
    }
    let [task, _] = COUNTED;
    let bed = small(|route| task.declared.declares(route)).await;
    for (number, count) in [(1, 0), (task.most, 1)] {
        let ask = (task.attempt)("n", &costly(), number);
        refused(&bed, ask, 409, "no-room").await;
        unkept(&bed, count).await;
    }
    assert_eq!(bed.letters().await, []);
}

#[tokio::test]
async fn a_body_that_is_not_read_for_want_of_memory_is_counted() {
    let [task, _] = COUNTED;
    let bed = small(|route| task.declared.declares(route)).await;
    let large = format!("{{\"id\":1,\"text\":\"{}\"}}", "x".repeat(80_000));
    let held = bed.hold((task.attempt)("first", &large, 1)).await;
    for (number, count) in [(1, 0), (task.most, 1)] {
        let ask = (task.attempt)("n", &large, number);
        refused(&bed, ask, 409, "no-room").await;
        unkept(&bed, count).await;
    }
    bed.go(held).await.is(200);
}
