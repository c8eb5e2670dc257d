//! `max_in_doubt`: it parks a sick piece of work, and nothing while the handler is sick.

use crate::letters::Aging;
use crate::support::prelude::*;

const MAX: u32 = 3;
const MINUTES: Duration = Duration::from_secs(600);

async fn bed() -> Bed {
    Bed::terms(|terms| terms.max_in_doubt = MAX).await
}

/// Delivers this work, whose run is cut.
async fn cut(bed: &Bed, name: &str) -> Answer {
    bed.handler.will(Act::Close);
    bed.task(name).await
}

/// The same on a store whose clock a test moves, with a minimum age of doubts.
async fn aging() -> Aging {
    Aging::with(|settings| {
        let route = &mut settings.routes[0];
        route.in_doubt = InDoubt::Retry;
        terms_of(route, |terms| {
            terms.retention = 10 * MINUTES;
            (terms.max_in_doubt, terms.doubt_age) = (MAX, MINUTES);
        });
    })
    .await
}

#[tokio::test]
async fn a_sick_handler_parks_nothing() {
    let bed = aging().await;
    for _ in 0..2 {
        for _ in 0..MAX {
            for work in 0..20 {
                cut(&bed, &format!("n-{work}")).await.is(502);
            }
        }
        bed.pass(MINUTES);
    }
    let records = bed.records().await;
    let waiting = records
        .iter()
        .filter(|(_, record)| record.state == State::Waiting);
    assert_eq!(waiting.count(), 20);
    assert_eq!(bed.letters().await, []);
}

#[tokio::test]
async fn sick_work_is_parked_once_other_work_has_succeeded() {
    let bed = bed().await;
    for _ in 0..MAX {
        cut(&bed, "sick").await.is(502);
    }
    bed.task("other").await.is(200);
    cut(&bed, "sick").await.is(200);
    assert_eq!(bed.reasons().await, [Reason::Parked]);
    let runs = bed.runs();
    bed.task("sick").await.is(200);
    assert_eq!(bed.runs(), runs, "it is not run again");
}

#[tokio::test]
async fn a_success_before_the_first_doubt_says_nothing() {
    let bed = aging().await;
    bed.task("other").await.is(200);
    // For the gate it is long ago.
    tokio::time::pause();
    tokio::time::advance(2 * MINUTES).await;
    tokio::time::resume();
    bed.pass(2 * MINUTES);
    for _ in 0..2 {
        for _ in 0..MAX {
            cut(&bed, "sick").await.is(502);
        }
        bed.pass(MINUTES);
    }
    assert_eq!(bed.letters().await, []);
}

#[tokio::test]
async fn fewer_doubts_than_the_limit_park_nothing() {
    let bed = bed().await;
    cut(&bed, "sick").await.is(502);
    for number in 2..MAX {
        bed.task(&format!("other-{number}")).await.is(200);
        cut(&bed, "sick").await.is(502);
    }
    bed.task("other").await.is(200);
    assert_eq!(bed.letters().await, []);
    cut(&bed, "sick").await.is(200);
    assert_eq!(bed.reasons().await, [Reason::Parked]);
}

#[tokio::test]
async fn the_first_doubt_must_be_old_enough() {
    let bed = aging().await;
    for _ in 0..MAX {
        cut(&bed, "sick").await.is(502);
    }
    bed.task("other").await.is(200);
    bed.pass(MINUTES / 2);
    cut(&bed, "sick").await.is(502);
    bed.pass(MINUTES / 2);
    cut(&bed, "sick").await.is(200);
    assert_eq!(bed.reasons().await, [Reason::Parked]);
}
