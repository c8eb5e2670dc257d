//! Bodies that are announced and not sent, sent by single bytes, or sent by one sender for all the
//! room there is.

use crate::http2;
use crate::support::deliveries::SUBSCRIPTION;
use crate::support::prelude::*;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http_body::Frame;
use http_body_util::StreamBody;
use http_body_util::combinators::UnsyncBoxBody;
use std::convert::Infallible;

type BoxBody = UnsyncBoxBody<Bytes, Infallible>;

const MIB: usize = 1024 * 1024;

/// The defaults of a gate.
fn defaults(settings: &mut Settings) {
    settings.bodies_bytes_max = 256 * MIB;
    settings.routes[0].body_bytes_max = 16 * MIB;
}

/// A request that announces a body, as bytes on the wire; the gate says when it begins to read it.
fn announced(name: &str, length: usize) -> String {
    format!(
        "POST /work HTTP/1.1\r\nhost: gate\r\nx-cloudtasks-queuename: q\r\nx-cloudtasks-taskname: {name}\r\n\
         expect: 100-continue\r\ncontent-length: {length}\r\n\r\n"
    )
}

/// Announces a body and sends one byte of it, once the gate reads.
async fn stalled(gate: SocketAddr, name: &str, length: usize) -> TcpStream {
    let mut stream = connect(gate, announced(name, length)).await;
    let mut said = [0; 25];
    let reads = within("a reader", stream.read_exact(&mut said)).await;
    reads.unwrap();
    assert_eq!(&said, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"x").await.unwrap();
    stream
}

/// Everybody else gets through.
async fn others_are_served(bed: &Bed) {
    for sender in SENDERS {
        let honest = sender.sends("honest", &"x".repeat(MIB));
        bed.ask(honest).await.is(200);
    }
}

/// A body of which the sender announces `length` and sends `sent` bytes, then no more.
fn partial(name: &str, length: usize, sent: usize) -> Request<BoxBody> {
    let first = Ok(Frame::data(Bytes::from(vec![b'x'; sent])));
    let first = futures_util::stream::once(async { first });
    let rest = if sent < length {
        futures_util::stream::pending().left_stream()
    } else {
        futures_util::stream::empty().right_stream()
    };
    Request::post("http://gate/work")
        .header("X-CloudTasks-QueueName", "orders")
        .header("X-CloudTasks-TaskName", name)
        .header("Content-Length", length)
        .body(BoxBody::new(StreamBody::new(first.chain(rest))))
        .unwrap()
}

#[tokio::test]
async fn announced_bytes_take_no_room() {
    let bed = Bed::with(defaults).await;
    let mut attackers = Vec::new();
    for n in 0..17 {
        attackers.push(stalled(bed.gate, &format!("attacker-{n}"), 16 * MIB).await);
    }
    others_are_served(&bed).await;
    drop(attackers);
}

#[tokio::test]
async fn announced_bytes_of_one_http2_connection_take_no_room() {
    let bed = Bed::with(defaults).await;
    let (mut client, _connection) = http2::connect(bed.gate, 65_535).await;
    let mut streams = Vec::new();
    for n in 0..17 {
        let attack = partial(&format!("attacker-{n}"), 16 * MIB, 1);
        streams.push(tokio::spawn(client.send_request(attack)));
    }
    // Its own next request is read after those.
    let last = client.send_request(partial("last", 1, 1));
    let whole = within("a reply", last).await.unwrap();
    assert_eq!(whole.status(), 200);
    others_are_served(&bed).await;
    for stream in streams {
        assert!(!stream.is_finished());
        stream.abort();
    }
}

#[tokio::test]
async fn a_fair_client_gets_through_while_another_holds_its_part() {
    const BODY: usize = 256 * 1024;
    let bed = Bed::with(|settings| {
        settings.bodies_bytes_max = 16 * BODY;
        settings.routes[0].body_bytes_max = BODY;
        settings.limits.room_within = Duration::from_millis(200);
    })
    .await;
    let (mut client, _connection) = http2::connect(bed.gate, 65_535).await;
    let mut streams = FuturesUnordered::new();
    for n in 0..20 {
        let greedy = partial(&format!("greedy-{n}"), BODY, BODY - 1);
        streams.push(client.send_request(greedy));
    }
    // The first answer is a refusal: the others hold all that one connection may.
    let refused = within("a refusal", streams.next()).await.unwrap().unwrap();
    assert_eq!(refused.status(), 409);
    let fair: Vec<_> = (0..8)
        .map(|n| bed.begin(Sender::Task.sends(&format!("fair-{n}"), &"x".repeat(BODY))))
        .collect();
    for asked in fair {
        asked.await.unwrap().is(200);
    }
    drop(streams);
}

#[tokio::test]
async fn a_body_by_single_bytes_is_cut() {
    let bed = Bed::limits(|limits| limits.body_slow_for = Duration::from_millis(300)).await;
    let stream = stalled(bed.gate, "drip", 1000).await;
    let said = dripping(stream, b"x", Duration::from_millis(20)).await;
    said.is_problem("", 408, "body-too-slow");
    assert_eq!((bed.runs(), bed.records().await.len()), (0, 0));
    let line = "semel_bodies_refused_total{reason=\"too_slow\"} 1\n";
    bed.counts(line).await;
}

#[tokio::test]
async fn a_body_that_takes_for_ever_is_cut_whatever_its_rate() {
    let bed = Bed::limits(|limits| limits.body_within = Duration::from_millis(300)).await;
    let stream = stalled(bed.gate, "endless", MIB).await;
    let said = dripping(stream, &[b'x'; 1024], Duration::from_millis(10)).await;
    said.is(408);
}

#[tokio::test]
async fn a_passed_body_that_stops_is_cut() {
    let bed = Bed::with(|settings| {
        settings.limits.body_idle_max = Duration::from_millis(200);
        pass(settings, &["/pass"]);
    })
    .await;
    let raw = announced("n", 100).replace("/work", "/pass");
    let said = closed(connect(bed.gate, raw).await).await;
    said.is_problem("", 408, "body-too-slow");
    let raw =
        "POST /pass HTTP/1.1\r\nhost: gate\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\nzz\r\n";
    let said = exchange(bed.gate, raw).await;
    said.is_problem("", 400, "body-broken");
}

/// Holds most of the room.
async fn held(bed: &Bed) -> JoinHandle<Answer> {
    let large = Sender::Task.sends("first", &"x".repeat(80_000));
    bed.hold(large).await
}

#[tokio::test]
async fn without_room_brokers_hear_409_and_clients_429() {
    let bed = Bed::with(|settings| {
        settings.bodies_bytes_max = 100_000;
        settings.limits.room_within = Duration::from_millis(50);
    })
    .await;
    let first = held(&bed).await;
    let large = "x".repeat(80_000);
    let cases = [
        (Sender::Task.sends("n", &large), 409),
        (Sender::Event.sends("n", &large), 409),
        (unwrapped(&large), 409),
        (Sender::Api.sends("n", &large), 429),
    ];
    for (ask, status) in cases {
        bed.ask(ask).await.is_pause(status, "no-room");
    }
    assert_eq!(bed.records().await.len(), 1);
    bed.task("small").await.is(200);
    bed.go(first).await.is(200);
    bed.ask(Sender::Task.sends("n", &large)).await.is(200);
    let line = "semel_bodies_refused_total{reason=\"no_room\"} 4\n";
    bed.counts(line).await;
}

/// An unwrapped push, known by its metadata.
fn unwrapped(body: &str) -> Ask {
    Ask::post("/work")
        .header("x-goog-pubsub-message-id", "7")
        .header("x-goog-pubsub-subscription-name", SUBSCRIPTION)
        .body(body.to_owned())
}

#[tokio::test]
async fn a_body_waits_for_room_before_it_is_refused() {
    let bed = Bed::with(|settings| {
        settings.bodies_bytes_max = 100_000;
        settings.limits.room_within = Duration::from_secs(10);
    })
    .await;
    let first = held(&bed).await;
    let second = bed.begin(Sender::Task.sends("second", &"x".repeat(80_000)));
    bed.task("small").await.is(200);
    assert!(!second.is_finished());
    bed.go(first).await.is(200);
    second.await.unwrap().is(200);
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_before_it_is_sent() {
    let bed = Bed::new().await;
    let mut stream = connect(bed.gate, announced("n", 2 * MIB)).await;
    let mut head = [0; 12];
    let read = within("a reply", stream.read_exact(&mut head)).await;
    read.unwrap();
    assert_eq!(&head, b"HTTP/1.1 413");
}
