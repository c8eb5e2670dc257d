//! Sources, naming and replies without a server, as another front end uses them.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod support;

use bytes::Bytes;
use http::{Request, Response};
use semel::letter::Reason;
use semel::memory::MemoryStore;
use semel::{Outcome, Semel};
use semel_gate::disposition::Disposition;
use semel_gate::naming::{self, NamingError};
use semel_gate::reply::{self, HandlerAnswer, ReplyBody};
use semel_gate::settings::Route;
use semel_gate::source;
use std::convert::Infallible;
use support::{Ask, BROKERS, SENDERS, Sender, here, route};

/// A function that takes a request and gives a reply: delivery → key → claim → run → record → reply.
async fn function(
    semel: &Semel,
    route: &Route,
    request: &Request<Bytes>,
) -> (Disposition, Response<ReplyBody<Infallible>>) {
    let source = source::sender(&route.sources, request);
    let identity = source::read(source, request)
        .map_err(NamingError::Invalid)
        .and_then(|delivery| naming::name("test", route, request, &delivery, &mut |_| true));
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

fn request(ask: &Ask) -> Request<Bytes> {
    let mut request = Request::builder().method(&ask.method).uri(&ask.path);
    for (name, value) in &ask.headers {
        request = request.header(name, value);
    }
    request.body(ask.body.clone()).unwrap()
}

fn body(reply: Response<ReplyBody<Infallible>>) -> Bytes {
    match reply.into_body() {
        ReplyBody::Whole(body) => body,
        ReplyBody::Streamed(_, rest) => match rest {},
    }
}

#[tokio::test]
async fn each_sender_is_read_named_run_once_and_answered() {
    let (semel, route) = (
        Semel::new(MemoryStore::new()),
        route("work", "/work", here()),
    );
    for sender in SENDERS {
        let request = request(&sender.sends("n", "{}"));
        let (first, reply) = function(&semel, &route, &request).await;
        assert_eq!((first.word(), reply.status().as_u16()), ("ran", 200));
        assert_eq!(body(reply), "done", "{sender:?}");
        let (second, reply) = function(&semel, &route, &request).await;
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
        let (told, reply) = function(&semel, &route, &request(&sender.sends("n", "{}"))).await;
        assert_eq!(told.letter(), Some(Reason::Invalid), "{sender:?}");
        assert_eq!((told.word(), reply.status().as_u16()), ("invalid", 200));
    }
    let (told, reply) = function(&semel, &route, &request(&Sender::Api.sends("n", "{}"))).await;
    assert_eq!((told.letter(), reply.status().as_u16()), (None, 400));
}
