//! A handler that cannot be reached: its work ages, and is parked by its age alone.

use super::{ONCE, once::closed_port};
use crate::support::prelude::*;

const HOUR: Duration = Duration::from_secs(3600);

async fn bed(park_after: Duration) -> Bed {
    let closed_port = closed_port().await;
    Bed::route(|route| {
        route.upstream = upstream(closed_port);
        terms_of(route, |terms| terms.park_after = Some(park_after));
    })
    .await
}

#[tokio::test]
async fn old_work_is_parked_although_no_run_began() {
    for sender in BROKERS {
        let bed = bed(Duration::ZERO).await;
        for _ in 0..2 {
            bed.deliver(sender, "n").await.is(200);
            assert_eq!(bed.reasons().await, [Reason::Parked]);
        }
        let record = bed.record().await;
        assert_eq!((record.state, record.attempts), (State::Parked, 0));
        assert!(!record.in_doubt, "nothing was sent");
    }
}

#[tokio::test]
async fn young_work_stays_with_its_sender() {
    for sender in BROKERS {
        let bed = bed(HOUR).await;
        for _ in 0..6 {
            let answer = bed.deliver(sender, "n").await;
            assert!(answer.status >= 500, "{answer:?}");
        }
        let record = bed.record().await;
        assert_eq!((record.state, record.attempts), (State::Waiting, 0));
        assert_eq!(bed.letters().await, []);
    }
}

#[tokio::test]
async fn an_api_client_receives_409_for_old_work() {
    let bed = bed(Duration::ZERO).await;
    bed.api("n").await.is_problem(409, "parked");
    assert_eq!(bed.letters().await, []);
}

#[tokio::test]
async fn a_gate_that_goes_down_parks_nothing() {
    for sender in ONCE {
        let bed = Bed::with(|settings| {
            settings.grace = Duration::ZERO;
            let route = &mut settings.routes[0];
            sender.declares(route);
            terms_of(route, |terms| terms.park_after = Some(Duration::ZERO));
        })
        .await;
        bed.store.hold_letters(true);
        let reply = bed.begin(sender.sends("n"));
        bed.store.puts(1).await;
        let (key, (served, handler, store)) = (bed.key().await, bed.stop());
        drop(within("the end", served).await.unwrap());
        store.hold_letters(false);
        store.outcomes(1).await;
        let record = store.kept().look(&key).await.unwrap().unwrap();
        assert_eq!((record.state, handler.count()), (State::Waiting, 0));
        drop(reply);
    }
}
