//! Whose deliveries a route takes: a client that poses as a broker fills no store.

use crate::support::prelude::*;

#[tokio::test]
async fn a_route_of_api_clients_takes_no_brokers_delivery() {
    for sender in BROKERS {
        let bed = Bed::route(|route| route.sources = vec![Source::Api]).await;
        let answer = bed.deliver(sender, "n").await;
        assert_eq!(answer.status, 400, "{answer:?}");
        assert_eq!(bed.runs(), 0);
        assert_eq!(bed.letters().await, []);
    }
}

#[tokio::test]
async fn a_route_takes_those_that_it_names_and_no_others() {
    let bed = Bed::route(|route| route.sources = vec![Source::Api, Source::PubSub]).await;
    bed.api("k").await.is(200);
    bed.deliver(Sender::Push, "m").await.is(200);
    assert_eq!(bed.runs(), 2);
    for other in [Sender::Task, Sender::Event] {
        // Read as an API client's, which names neither key nor caller.
        let answer = bed.ask(other.sends("n", "{}")).await;
        assert_eq!(answer.status, 400, "{answer:?}");
    }
    assert_eq!(bed.runs(), 2);
    assert_eq!(bed.letters().await, []);
}

#[tokio::test]
async fn a_route_of_brokers_refuses_what_has_none_of_their_forms() {
    let brokers = vec![Source::CloudTasks, Source::PubSub];
    let bed = Bed::route(|route| route.sources = brokers.clone()).await;
    for stranger in [Sender::Api, Sender::Event] {
        refused(&bed, stranger.sends("k", "{}"), 400, "source-unknown").await;
    }
    bed.task("t").await.is(200);
    assert_eq!((bed.runs(), bed.letters().await.len()), (1, 0));
}
