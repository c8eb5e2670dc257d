//! Handlers that are away, late, torn off, or answer more than is kept.

use crate::http2;
use crate::support::prelude::*;
use http::Version;
use hyper::body::Incoming;
use semel::outcome::Body;

/// An address where nobody listens.
fn nobody() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], semel_rig::free_port().unwrap()))
}

#[tokio::test]
async fn a_refused_connection_is_released_at_once_and_does_not_count() {
    for in_doubt in [InDoubt::Retry, InDoubt::Park] {
        let away = nobody();
        let bed = Bed::route(|route| {
            route.upstream = upstream(away);
            route.in_doubt = in_doubt;
            route.max_attempts = 1;
        })
        .await;
        for sender in SENDERS {
            for _ in 0..2 {
                refused(&bed, sender.sends("n", "{}"), 502, "handler-unreachable").await;
            }
        }
        for (_, record) in bed.records().await {
            assert_eq!((record.state, record.attempts), (State::Waiting, 0));
        }
        assert_eq!(bed.letters().await, []);
        let back = Handler::at(away).await;
        bed.task("n").await.is(200);
        assert_eq!(back.arrived().await.header("semel-attempt"), Some("1"));
    }
}

#[tokio::test]
async fn a_handler_that_is_torn_off_is_in_doubt_and_counts() {
    for act in [Act::CutRequest, Act::Close, Act::CutHead, Act::CutBody] {
        let bed = Bed::new().await;
        bed.handler.will(act.clone());
        let large = "x".repeat(900_000);
        let answer = bed.ask(Sender::Task.sends("n", &large)).await;
        answer.is_problem(502, "handler-unreachable");
        answer.tells("unknown");
        let record = bed.record().await;
        let counted = (record.state, record.attempts);
        assert_eq!(counted, (State::Waiting, 1), "{act:?}");
        bed.ask(Sender::Task.sends("n", &large)).await.is(200);
        assert_eq!(bed.runs(), 2, "{act:?}");
    }
}

#[tokio::test]
async fn a_handler_over_its_time_is_in_doubt_and_hears_that_nobody_listens() {
    let bed = Bed::terms(|terms| terms.timeout = Duration::from_millis(200)).await;
    let never = Act::Halves(Bytes::from_static(b"half"), Bytes::from_static(b"never"));
    for act in [Act::Hang, Act::Hold(Say::new(200, "late")), never] {
        bed.handler.will(act);
        bed.task("n").await.is_problem(504, "handler-timeout");
        assert_eq!(bed.record().await.state, State::Waiting);
    }
    assert_eq!(bed.record().await.attempts, 3);
    bed.task("n").await.is(200);
}

#[tokio::test]
async fn a_slow_handler_keeps_its_lease_by_renewal() {
    let bed = Bed::terms(|terms| terms.lease = Duration::from_millis(150)).await;
    let first = bed.hold(Sender::Task.sends("n", "{}")).await;
    let begun = bed.record().await;
    // Three leases long: time itself is tested here.
    tokio::time::sleep(Duration::from_millis(450)).await;
    let now = bed.record().await;
    assert_eq!((now.state, now.fence), (State::Running, begun.fence));
    assert!(now.lease_until > begun.lease_until);
    bed.go(first).await.is(200);
    assert_eq!(bed.runs(), 1);
}

#[tokio::test]
async fn a_large_answer_is_recorded_then_streamed_whole_to_the_first_caller_only() {
    let bed = Bed::new().await;
    let (one, other) = (vec![b'a'; 70_000], vec![b'b'; 200_000]);
    let whole = [one.clone(), other.clone()].concat();
    bed.handler.will(Act::Halves(one.into(), other.into()));
    let first = bed.begin(Sender::Api.sends("k", "{}"));
    bed.store.outcomes(1).await;
    let replay = bed.api("k").await;
    replay.is_replay(200).has("semel-body", "not-kept").says("");
    assert!(!first.is_finished(), "the other half is still to come");
    let first = bed.go(first).await;
    first.is(200).lacks("semel-body");
    assert!(first.body == whole, "{} bytes", first.body.len());
    assert_eq!(bed.runs(), 1);
}

#[tokio::test]
async fn an_answer_of_just_the_limit_is_kept() {
    let bed = Bed::route(|route| route.answer_bytes_max = 1000).await;
    bed.handler.answers(Say::new(200, vec![b'a'; 1000]));
    bed.api("k").await.is(200);
    let replay = bed.api("k").await;
    replay.is_replay(200);
    assert_eq!(replay.body.len(), 1000);
}

#[tokio::test]
async fn a_large_answer_of_an_operators_limit_over_the_librarys_is_kept_too() {
    let bed = Bed::route(|route| route.answer_bytes_max = 2 * 1024 * 1024).await;
    let body = vec![b'a'; 1_500_000];
    bed.handler.answers(Say::new(200, body.clone()));
    let first = bed.api("k").await;
    first.is(200);
    assert!(first.body == body, "{} bytes", first.body.len());
    let replay = bed.api("k").await;
    replay.is_replay(200);
    assert!(replay.body == body, "{} bytes", replay.body.len());
}

#[tokio::test]
async fn a_large_refusal_reaches_a_broker_whole() {
    for sender in BROKERS {
        let bed = Bed::new().await;
        let body = vec![b'a'; 100_000];
        bed.handler.answers(Say::new(500, body.clone()));
        let answer = bed.deliver(sender, "n").await;
        answer.is(500);
        assert!(answer.body == body, "{} bytes", answer.body.len());
        let kept = Outcome::decode(&bed.record().await.result.unwrap()).unwrap();
        assert_eq!(kept.body, Body::NotKept);
    }
}

#[tokio::test]
async fn a_client_that_hangs_up_leaves_its_run_and_record_as_they_would_have_been() {
    let bed = Bed::new().await;
    bed.handler.will(Act::Hold(Say::new(201, "done")));
    let ask = Sender::Api.sends("k", "{}");
    let client = connect(bed.gate, ask.raw()).await;
    bed.handler.arrived().await;
    drop(client);
    bed.handler.go();
    bed.store.outcomes(1).await;
    bed.ask(ask).await.is_replay(201).says("done");
    assert_eq!(bed.runs(), 1);
}

#[tokio::test]
async fn a_client_over_http2_that_hangs_up_leaves_its_run_too() {
    let bed = Bed::new().await;
    let act = Act::Hold(Say::new(201, "done"));
    let first = bed
        .begin_with(act, Sender::Api.sends("k", "{}").h2c())
        .await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    bed.handler.go();
    bed.store.outcomes(1).await;
    bed.api("k").await.is_replay(201);
    assert_eq!(bed.runs(), 1);
}

#[tokio::test]
async fn a_kept_connection_is_used_again() {
    let bed = Bed::new().await;
    for name in ["1", "2", "3"] {
        bed.task(name).await.is(200);
        assert_eq!(bed.handler.arrived().await.connection, 1);
    }
}

#[tokio::test]
async fn a_kept_connection_that_the_handler_closed_between_requests_is_no_failure() {
    let bed = Bed::new().await;
    for name in 1..=5 {
        bed.handler.will(Act::SayAndClose(Say::new(200, "done")));
        bed.task(&name.to_string()).await.is(200);
        assert_eq!(bed.handler.arrived().await.connection, name);
    }
    assert_eq!(bed.runs(), 5);
}

#[tokio::test]
async fn where_doubt_is_parked_every_run_has_a_connection_of_its_own() {
    let bed = Bed::route(|route| route.in_doubt = InDoubt::Park).await;
    for connection in 1..=3 {
        bed.task(&connection.to_string()).await.is(200);
        assert_eq!(bed.handler.arrived().await.connection, connection);
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed_by_the_gate() {
    let bed = Bed::new().await;
    let back = format!("http://{}/work", bed.handler.address);
    bed.handler
        .answers(Say::new(307, "").header("location", &back));
    bed.api("k").await.is(307).has("location", &back);
    assert_eq!(bed.runs(), 1);
}

#[tokio::test]
async fn deliveries_come_in_over_http2() {
    for sender in SENDERS {
        let bed = Bed::new().await;
        let ask = || sender.sends("n", "{}").h2c();
        bed.ask(ask()).await.is(200).says("run 1");
        bed.ask(ask()).await.is_replay(200);
        assert_eq!(bed.handler.arrived().await.path, "/work");
        assert_eq!(bed.runs(), 1);
    }
}

#[tokio::test]
async fn handlers_are_reached_over_http2_where_the_route_says_so() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let address = http2::handler(move |request: Request<Incoming>| {
        let tell = tell.clone();
        async move {
            let key = request.headers()["semel-key"].to_str().unwrap().to_owned();
            let version = request.version();
            let body = request.into_body().collect().await.unwrap().to_bytes();
            tell.send((version, key, body)).unwrap();
            let said = Response::builder().status(201).header("set-cookie", "a=b");
            said.body("two".to_owned()).unwrap()
        }
    })
    .await;
    for in_doubt in [InDoubt::Retry, InDoubt::Park] {
        let bed = Bed::route(|route| {
            route.upstream = upstream(address);
            route.upstream.h2c = true;
            route.in_doubt = in_doubt;
        })
        .await;
        let answer = bed.ask(Sender::Api.sends("k", "payload")).await;
        answer.is(201).says("two");
        let (version, key, body) = within("a request", told.recv()).await.unwrap();
        assert_eq!((version, body), (Version::HTTP_2, Bytes::from("payload")));
        assert_eq!(key, bed.records().await[0].0.to_string());
        let again = Sender::Api.sends("k", "payload");
        bed.ask(again).await.is_replay(201);
    }
}

#[tokio::test]
async fn a_refused_connection_over_http2_is_released_at_once_too() {
    let away = nobody();
    let bed = Bed::route(|route| {
        route.upstream = upstream(away);
        route.upstream.h2c = true;
        route.in_doubt = InDoubt::Park;
    })
    .await;
    bed.task("n").await.is(502);
    let record = bed.record().await;
    assert_eq!((record.state, record.attempts), (State::Waiting, 0));
}
