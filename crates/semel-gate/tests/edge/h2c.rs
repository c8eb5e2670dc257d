//! Handlers over HTTP/2 without TLS: what is in doubt, and what is not.

use super::http2_handler::{
    Ends, Http2Handler, INTERNAL_ERROR, LastStream, NO_ERROR, REFUSED_STREAM,
};
use crate::http2;
use crate::support::prelude::*;
use hyper::body::Incoming;

const BOTH: [InDoubt; 2] = [InDoubt::Retry, InDoubt::Park];

async fn before(handler: SocketAddr, in_doubt: InDoubt) -> Bed {
    Bed::route(|route| {
        route.upstream = upstream(handler);
        route.upstream.h2c = true;
        route.in_doubt = in_doubt;
        // Pings come first.
        terms_of(route, |terms| terms.timeout = Duration::from_secs(3600));
    })
    .await
}

#[tokio::test]
async fn where_doubt_is_parked_every_run_has_a_connection_of_its_own() {
    for (in_doubt, connections) in [(InDoubt::Park, [1, 2, 3]), (InDoubt::Retry, [1, 1, 1])] {
        let mut handler = Http2Handler::start().await;
        let bed = before(handler.address, in_doubt).await;
        for connection in connections {
            let name = bed.records().await.len().to_string();
            bed.task(&name).await.is(200);
            assert_eq!(handler.arrived().await, connection, "{in_doubt:?}");
        }
    }
}

#[tokio::test]
async fn what_the_handler_did_not_look_at_is_not_in_doubt() {
    for in_doubt in BOTH {
        for ends in [
            Ends::Reset(REFUSED_STREAM),
            Ends::GoAway(LastStream::Before, NO_ERROR),
            Ends::GoAway(LastStream::Before, INTERNAL_ERROR),
        ] {
            let mut handler = Http2Handler::start().await;
            let bed = before(handler.address, in_doubt).await;
            handler.will(ends);
            let answer = bed.task("n").await;
            answer.is_problem(502, "handler-unreachable");
            answer.tells("nothing was run");
            let record = bed.record().await;
            let counted = (record.state, record.attempts);
            assert_eq!(counted, (State::Waiting, 0), "{ends:?}");
            assert_eq!(bed.letters().await, []);
            bed.task("n").await.is(200);
            assert_eq!(bed.record().await.state, State::Succeeded);
            assert_eq!(
                (handler.arrived().await, handler.unseen()),
                (1, 1),
                "{ends:?}"
            );
        }
    }
}

#[tokio::test]
async fn what_the_handler_may_have_looked_at_is_in_doubt() {
    for ends in [
        Ends::Reset(NO_ERROR),
        Ends::Reset(INTERNAL_ERROR),
        Ends::Close,
        Ends::GoAway(LastStream::Own, NO_ERROR),
        Ends::GoAway(LastStream::Own, INTERNAL_ERROR),
    ] {
        let mut handler = Http2Handler::start().await;
        let bed = before(handler.address, InDoubt::Park).await;
        handler.will(ends);
        bed.api("k").await.is_problem(409, "parked");
        assert_eq!(bed.record().await.state, State::Parked, "{ends:?}");
        bed.api("k").await.is_problem(409, "parked");
        assert_eq!(
            (handler.arrived().await, handler.unseen()),
            (1, 0),
            "{ends:?}"
        );
    }
}

#[tokio::test]
async fn a_handler_that_went_away_between_runs_is_reached_anew() {
    let mut handler = Http2Handler::start().await;
    let bed = before(handler.address, InDoubt::Park).await;
    for connection in 1..=5 {
        handler.will(Ends::AnswerAndGo);
        bed.task(&connection.to_string()).await.is(200);
        assert_eq!(handler.arrived().await, connection);
    }
}

/// Time moves only when the handler has the request: from then on nothing but its silence passes.
#[tokio::test]
async fn a_handler_that_is_gone_without_a_word_is_noticed_long_before_the_timeout() {
    for (in_doubt, state) in [
        (InDoubt::Retry, State::Waiting),
        (InDoubt::Park, State::Parked),
    ] {
        let mut handler = Http2Handler::start().await;
        let bed = before(handler.address, in_doubt).await;
        handler.will(Ends::Silence);
        let asking = tokio::spawn(Sender::Api.sends("k", "{}").send_unbounded(bed.gate));
        handler.arrived().await;
        tokio::time::pause();
        let begun = tokio::time::Instant::now();
        let answer = asking.await.unwrap();
        let waited = begun.elapsed();
        tokio::time::resume();
        assert!(answer.status == 502 || answer.status == 409, "{answer:?}");
        assert!(waited < Duration::from_secs(60), "{waited:?}");
        let record = bed.record().await;
        assert_eq!((record.state, record.attempts), (state, 1));
    }
}

/// A handler that tells `:authority`, `Host` and path of each request.
async fn naming() -> (SocketAddr, mpsc::UnboundedReceiver<[Option<String>; 3]>) {
    let (tell, told) = mpsc::unbounded_channel();
    let address = http2::handler(move |request: Request<Incoming>| {
        let host = request.headers().get("host");
        let host = host.map(|host| host.to_str().unwrap().to_owned());
        let authority = request.uri().authority().map(ToString::to_string);
        let path = Some(request.uri().path_and_query().unwrap().to_string());
        tell.send([authority, host, path]).unwrap();
        async { Response::new("done".to_owned()) }
    });
    (address.await, told)
}

#[tokio::test]
async fn the_handler_hears_one_host_the_one_that_its_sender_named() {
    let (address, mut told) = naming().await;
    for in_doubt in BOTH {
        let bed = before(address, in_doubt).await;
        let raw = Sender::Task.sends("1", "{}").path("/w%6frk?x=%6f").raw();
        let reply = exchange(bed.gate, raw).await;
        reply.is(200);
        let heard = within("a request", told.recv()).await.unwrap();
        let expected = [Some("gate".into()), None, Some("/work?x=%6f".into())];
        assert_eq!(heard, expected);

        let nameless = "POST /work HTTP/1.0\r\nx-cloudtasks-queuename: q\r\nx-cloudtasks-taskname: 2\r\n\
                        content-length: 0\r\n\r\n";
        let reply = exchange(bed.gate, nameless.as_bytes()).await;
        assert!(reply.contains(" 200 OK"), "{reply}");
        let heard = within("a request", told.recv()).await.unwrap();
        let expected = [Some(address.to_string()), None, Some("/work".into())];
        assert_eq!(heard, expected);
    }
}

#[tokio::test]
async fn large_bodies_cross_whole_over_a_connection_that_nobody_else_uses() {
    // It answers three times what it got.
    let address = http2::handler(|request: Request<Incoming>| async {
        let body = request.into_body().collect().await.unwrap().to_bytes();
        Response::new(Full::new(Bytes::from(body.repeat(3))))
    })
    .await;
    for in_doubt in BOTH {
        let bed = before(address, in_doubt).await;
        let body = "x".repeat(900_000);
        let answer = bed.ask(Sender::Api.sends("k", &body)).await;
        answer.is(200);
        assert_eq!(answer.body.len(), 3 * body.len());
        let replay = bed.ask(Sender::Api.sends("k", &body)).await;
        replay.is_replay(200).has("semel-body", "not-kept");
    }
}

#[tokio::test]
async fn a_named_host_is_never_connected_to() {
    let (address, mut told) = naming().await;
    let mut elsewhere = Http2Handler::start().await;
    let bed = before(address, InDoubt::Park).await;
    let raw = format!(
        "POST /work HTTP/1.1\r\nhost: {}\r\nx-cloudtasks-queuename: q\r\nx-cloudtasks-taskname: 1\r\n\
         content-length: 0\r\n\r\n",
        elsewhere.address
    );
    exchange(bed.gate, raw).await.is(200);
    within("a request", told.recv()).await.unwrap();
    assert_eq!(elsewhere.unseen(), 0);
}
