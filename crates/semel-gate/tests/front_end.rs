//! Sources, naming and replies without a server, as another front end uses them.

use crate::support::prelude::*;
use semel::memory::MemoryStore;
use semel::protocol::Ending;
use semel::{Ended, Recorded, Semel};
use semel_gate::disposition::Disposition;
use semel_gate::naming::{self, NamedRequest};
use semel_gate::reply::{self, HandlerAnswer, ReplyBody};
use std::convert::Infallible;

type Reply = Response<ReplyBody<Infallible>>;

/// A function that takes a request and gives a reply: delivery → key → claim → run → record → reply.
async fn function(semel: &Semel, route: &Route, ask: &Ask) -> (Disposition, Reply) {
    let NamedRequest {
        source, identity, ..
    } = named(route, ask);
    let disposition = match identity {
        Ok(identity) => {
            let work = naming::work(route, source, identity);
            let ended = semel.run(work, |_| async { Ok(Outcome::ok("done")) }).await;
            Disposition::of_run(source, ended)
        }
        Err(error) => Disposition::of_unnamed(source, route.on_invalid, error),
    };
    let reply = reply::reply(source, &disposition, HandlerAnswer::default());
    (disposition, reply)
}

fn named(route: &Route, ask: &Ask) -> NamedRequest {
    let mut request = Request::builder().method(&ask.method).uri(&ask.path);
    for (name, value) in &ask.headers {
        request = request.header(name, value);
    }
    let request = request.body(ask.body.clone()).unwrap();
    NamedRequest::read("test", route, &request, &mut |_| true)
}

fn body(reply: Reply) -> Bytes {
    match reply.into_body() {
        ReplyBody::Whole(body) => body,
        ReplyBody::Streamed(_, rest) => match rest {},
    }
}

#[tokio::test]
async fn each_sender_is_read_named_run_once_and_answered() {
    let semel = Semel::new(MemoryStore::new());
    let route = route("work", "/work", here());
    for sender in SENDERS {
        let ask = sender.sends("n", "{}");
        let (first, reply) = function(&semel, &route, &ask).await;
        assert_eq!((first.word(), reply.status().as_u16()), ("ran", 200));
        assert_eq!(body(reply), "done", "{sender:?}");
        let (second, reply) = function(&semel, &route, &ask).await;
        assert_eq!((second.word(), second.is_duplicate()), ("replayed", true));
        assert_eq!(reply.headers()["idempotent-replayed"], "true");
        let told = if sender == Sender::Api { "done" } else { "" };
        assert_eq!(body(reply), told, "{sender:?}");
    }
}

#[tokio::test]
async fn what_has_no_key_is_a_letter_of_a_broker_and_a_mistake_of_a_client() {
    let semel = Semel::new(MemoryStore::new());
    let mut route = route("work", "/work", here());
    route.require = vec!["/missing".into()];
    for sender in BROKERS {
        let (told, reply) = function(&semel, &route, &sender.sends("n", "{}")).await;
        assert_eq!(told.letter(), Some(Reason::Invalid), "{sender:?}");
        assert_eq!((told.word(), reply.status().as_u16()), ("invalid", 200));
    }
    let (told, reply) = function(&semel, &route, &Sender::Api.sends("n", "{}")).await;
    assert_eq!((told.letter(), reply.status().as_u16()), (None, 400));
}

/// No server, no store and no runtime: what was sent gives a name, and what became of it a reply.
#[test]
fn requests_are_named_and_answered_by_pure_functions() {
    let route = route("work", "/work", here());
    let redirect = Outcome::new(303, "moved").with_header("location", "/elsewhere");
    for (sender, source, told) in [
        (Sender::Push, Source::PubSub, [200, 200, 200]),
        (Sender::Task, Source::CloudTasks, [200, 200, 200]),
        (Sender::Api, Source::Api, [303, 303, 422]),
    ] {
        let read = |payload| named(&route, &sender.sends("n", payload));
        let requests = [read("one"), read("one"), read("two")];
        assert!(requests.iter().all(|request| request.source == source));
        let [first, again, other] = requests.map(|request| request.identity.unwrap());
        assert_eq!(first, again, "{sender:?}");
        assert_eq!(first.key, other.key, "{sender:?}");
        assert_ne!(first.fingerprint, other.fingerprint, "{sender:?}");

        let recorded = Arc::new(Recorded {
            ending: Ending::Succeeded,
            outcome: redirect.clone(),
        });
        let ended = [
            Ended::Ran(Arc::clone(&recorded)),
            Ended::Replayed(recorded),
            Ended::Mismatched,
        ];
        let disposed = ended.map(|ended| Disposition::of_run(source, Ok(ended)));
        let letters = disposed.each_ref().map(Disposition::letter);
        let mismatched = source.is_broker().then_some(Reason::Mismatched);
        assert_eq!(letters, [None, None, mismatched], "{sender:?}");
        let reply = |it| reply::reply::<Infallible>(source, it, HandlerAnswer::default());
        let [first, again, other] = disposed.each_ref().map(reply);
        let statuses = [&first, &again, &other].map(|reply| reply.status().as_u16());
        assert_eq!(statuses, told, "{sender:?}");
        let location = first.headers().get("location");
        assert_eq!(location.is_some(), sender == Sender::Api, "{sender:?}");
        assert_eq!(again.headers()["idempotent-replayed"], "true");
        assert_eq!(body(first), "moved", "{sender:?}");
    }
}
