//! The sender's last attempt at work that is still running.

use super::{ended, outlasts, short_deadline};
use crate::support::prelude::*;
use semel_gate::settings::SenderAttempts;

const ATTEMPTS: u32 = 3;

fn counted(route: &mut Route) {
    terms_of(route, |terms| {
        terms.sender_attempts = SenderAttempts {
            most: Some(ATTEMPTS),
            declared: true,
        };
    });
}

fn last() -> Ask {
    let before = (ATTEMPTS - 1).to_string();
    Sender::Task
        .sends("n", "{}")
        .header("X-CloudTasks-TaskRetryCount", &before)
}

#[tokio::test]
async fn one_that_runs_on_is_acknowledged_with_its_letter() {
    let bed = Bed::route(|route| {
        counted(route);
        terms_of(route, short_deadline);
    })
    .await;
    let act = Act::Hold(Say::new(200, "done"));
    let first = bed.begin_with(act, last()).await;
    first.await.unwrap().is(200);
    assert_eq!(bed.reasons().await, [Reason::Unfinished]);
    bed.handler.go();
    ended(&bed, "ran").await;
    assert_eq!((bed.runs(), bed.letters().await.len()), (1, 0));
}

#[tokio::test]
async fn a_duplicate_of_what_still_runs_is_acknowledged_with_its_letter() {
    let bed = Bed::route(|route| {
        counted(route);
        terms_of(route, short_deadline);
        route.final_statuses = vec![422..=422];
    })
    .await;
    outlasts(&bed, Say::new(422, "no"), Sender::Task).await;
    bed.ask(last()).await.is(200);
    assert_eq!(bed.reasons().await, [Reason::Unfinished]);
    bed.handler.go();
    until("the end", async || {
        bed.record().await.state == State::Failed
    })
    .await;
    assert_eq!((bed.runs(), bed.letters().await.len()), (1, 1));
}
