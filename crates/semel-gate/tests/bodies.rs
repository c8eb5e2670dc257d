//! Bodies that are announced and not sent, sent by single bytes, or sent by one sender for all the
//! room there is.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may fail where it stands"
)]

mod support;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use semel_gate::settings::{Pass, Settings};
use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;
use support::handler::Say;
use support::{Act, Ask, Bed, Sender, within};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const MIB: usize = 1024 * 1024;

/// The defaults of a gate.
fn usual(settings: &mut Settings) {
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
    let mut stream = TcpStream::connect(gate).await.unwrap();
    stream
        .write_all(announced(name, length).as_bytes())
        .await
        .unwrap();
    let mut said = [0; 25];
    within("a reader", stream.read_exact(&mut said))
        .await
        .unwrap();
    assert_eq!(&said, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"x").await.unwrap();
    stream
}

/// A client with one HTTP/2 connection.
struct Client {
    sender: SendRequest<UnsyncBoxBody<Bytes, Infallible>>,
    gate: SocketAddr,
}

impl Client {
    async fn connect(gate: SocketAddr) -> Self {
        let stream = TcpStream::connect(gate).await.unwrap();
        let (sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
                .await
                .unwrap();
        tokio::spawn(connection);
        Self { sender, gate }
    }

    /// Announces a body of `length` and sends `sent` bytes of it, then no more.
    fn sends(
        &mut self,
        name: &str,
        length: usize,
        sent: usize,
    ) -> impl Future<Output = hyper::Result<Response<Incoming>>> + use<> {
        let first = Ok(Frame::data(Bytes::from(vec![b'x'; sent])));
        let first = futures_util::stream::once(async { first });
        let rest = if sent < length {
            futures_util::stream::pending().left_stream()
        } else {
            futures_util::stream::empty().right_stream()
        };
        let body = StreamBody::new(first.chain(rest));
        let request = Request::post(format!("http://{}/work", self.gate))
            .header("X-CloudTasks-QueueName", "orders")
            .header("X-CloudTasks-TaskName", name)
            .header("Content-Length", length)
            .body(UnsyncBoxBody::new(body))
            .unwrap();
        self.sender.send_request(request)
    }
}

#[tokio::test]
async fn announced_bytes_take_no_room() {
    let bed = Bed::with(usual).await;
    let mut attackers = Vec::new();
    for n in 0..17 {
        attackers.push(stalled(bed.gate, &format!("attacker-{n}"), 16 * MIB).await);
    }
    for sender in support::SENDERS {
        bed.ask(sender.sends("honest", &"x".repeat(MIB)))
            .await
            .is(200);
    }
    drop(attackers);
}

#[tokio::test]
async fn announced_bytes_of_one_http2_connection_take_no_room() {
    let bed = Bed::with(usual).await;
    let mut client = Client::connect(bed.gate).await;
    let streams: Vec<_> = (0..17)
        .map(|n| client.sends(&format!("attacker-{n}"), 16 * MIB, 1))
        .collect();
    let streams: Vec<_> = streams.into_iter().map(tokio::spawn).collect();
    // Its own next request is read after those.
    let whole = within("a reply", client.sends("last", 1, 1)).await.unwrap();
    assert_eq!(whole.status(), 200);
    for sender in support::SENDERS {
        bed.ask(sender.sends("honest", &"x".repeat(MIB)))
            .await
            .is(200);
    }
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
    let mut client = Client::connect(bed.gate).await;
    let mut streams = FuturesUnordered::new();
    for n in 0..20 {
        streams.push(client.sends(&format!("greedy-{n}"), BODY, BODY - 1));
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
    let bed = Bed::with(|settings| {
        settings.limits.body_slow_for = Duration::from_millis(300);
    })
    .await;
    let stream = stalled(bed.gate, "drip", 1000).await;
    let (mut from, mut to) = stream.into_split();
    let drips = async {
        let mut beat = tokio::time::interval(Duration::from_millis(20));
        loop {
            beat.tick().await;
            if to.write_all(b"x").await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    };
    let mut said = Vec::new();
    let ended = within("the end of the connection", from.read_to_end(&mut said));
    tokio::select! {
        ended = ended => drop(ended),
        () = drips => {}
    }
    let said = String::from_utf8_lossy(&said);
    assert!(said.starts_with("HTTP/1.1 408"), "{said}");
    assert!(said.contains("errors.md#body-too-slow"), "{said}");
    assert_eq!((bed.runs(), bed.records().await.len()), (0, 0));
    let metrics = bed.admin("/metrics").await;
    let line = "semel_bodies_refused_total{reason=\"too_slow\"} 1\n";
    assert!(metrics.text().contains(line), "{}", metrics.text());
}

#[tokio::test]
async fn a_body_that_takes_for_ever_is_cut_whatever_its_rate() {
    let bed = Bed::with(|settings| {
        settings.limits.body_within = Duration::from_millis(300);
    })
    .await;
    let stream = stalled(bed.gate, "endless", MIB).await;
    let (mut from, mut to) = stream.into_split();
    let pieces = async {
        let mut beat = tokio::time::interval(Duration::from_millis(10));
        for _ in 0..MIB / 1024 - 1 {
            beat.tick().await;
            if to.write_all(&[b'x'; 1024]).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    };
    let mut head = [0; 12];
    let read = within("a reply", from.read_exact(&mut head));
    tokio::select! {
        read = read => drop(read.unwrap()),
        () = pieces => {}
    }
    assert_eq!(&head, b"HTTP/1.1 408");
}

#[tokio::test]
async fn a_passed_body_that_stops_is_cut() {
    let bed = Bed::with(|settings| {
        settings.limits.body_idle_max = Duration::from_millis(200);
        settings.pass = Some(Pass {
            paths: vec!["/pass".parse().unwrap()],
            upstream: settings.routes[0].upstream.clone(),
        });
    })
    .await;
    let raw = announced("n", 100).replace("/work", "/pass");
    let mut stream = TcpStream::connect(bed.gate).await.unwrap();
    stream.write_all(raw.as_bytes()).await.unwrap();
    let mut said = String::new();
    drop(
        within(
            "the end of the connection",
            stream.read_to_string(&mut said),
        )
        .await,
    );
    assert!(said.contains("HTTP/1.1 408"), "{said}");
    assert!(said.contains("errors.md#body-too-slow"), "{said}");
    let raw =
        "POST /pass HTTP/1.1\r\nhost: gate\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\nzz\r\n";
    let said = support::client::exchange(bed.gate, raw.as_bytes()).await;
    assert!(said.contains("HTTP/1.1 400"), "{said}");
    assert!(said.contains("errors.md#body-broken"), "{said}");
}

/// Holds most of the room.
async fn held(bed: &Bed) -> tokio::task::JoinHandle<support::Answer> {
    bed.handler.will(Act::Hold(Say::new(200, "done")));
    let first = bed.begin(Sender::Task.sends("first", &"x".repeat(80_000)));
    bed.handler.arrived().await;
    first
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
        let answer = bed.ask(ask).await;
        answer.is_problem(status, "no-room");
        answer.retry_after();
    }
    assert_eq!(bed.records().await.len(), 1);
    bed.ask(Sender::Task.sends("small", "{}")).await.is(200);
    bed.handler.go();
    first.await.unwrap().is(200);
    bed.ask(Sender::Task.sends("n", &large)).await.is(200);
    let metrics = bed.admin("/metrics").await;
    let line = "semel_bodies_refused_total{reason=\"no_room\"} 4\n";
    assert!(metrics.text().contains(line), "{}", metrics.text());
}

/// An unwrapped push, known by its metadata.
fn unwrapped(body: &str) -> Ask {
    Ask::post("/work")
        .header("x-goog-pubsub-message-id", "7")
        .header(
            "x-goog-pubsub-subscription-name",
            support::deliveries::SUBSCRIPTION,
        )
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
    bed.ask(Sender::Task.sends("small", "{}")).await.is(200);
    assert!(!second.is_finished());
    bed.handler.go();
    first.await.unwrap().is(200);
    second.await.unwrap().is(200);
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_before_it_is_sent() {
    let bed = Bed::new().await;
    let mut stream = TcpStream::connect(bed.gate).await.unwrap();
    let raw = announced("n", 2 * MIB);
    stream.write_all(raw.as_bytes()).await.unwrap();
    let mut head = [0; 12];
    within("a reply", stream.read_exact(&mut head))
        .await
        .unwrap();
    assert_eq!(&head, b"HTTP/1.1 413");
}
