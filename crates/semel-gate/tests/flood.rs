//! Many requests of one client at once: answers it does not read, heads without bodies, bodies that take
//! long to read, handlers that say nothing.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may fail where it stands"
)]

mod support;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::net::SocketAddr;
use std::time::Duration;
use support::handler::Say;
use support::{Act, Bed, Sender, within};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

const SHORT: Duration = Duration::from_millis(300);

/// One HTTP/2 connection that lets in `window` bytes of each answer.
async fn connect(
    gate: SocketAddr,
    window: u32,
) -> (SendRequest<Full<Bytes>>, JoinHandle<hyper::Result<()>>) {
    let stream = TcpStream::connect(gate).await.unwrap();
    let (sender, connection) = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(window)
        .handshake(TokioIo::new(stream))
        .await
        .unwrap();
    (sender, tokio::spawn(connection))
}

/// Leaves one answer of `length` unread, and asks for small ones all the time.
async fn leaves_unread(length: usize) {
    let bed = Bed::with(|settings| {
        settings.limits.answer_idle_max = SHORT;
        settings.limits.idle_max = SHORT;
        settings.routes[0].answer_bytes_max = 1024 * 1024;
    })
    .await;
    bed.handler
        .will(Act::Say(Say::new(200, Bytes::from(vec![b'x'; length]))));
    let (mut sender, mut connection) = connect(bed.gate, 1).await;
    let unread = sender.send_request(Sender::Task.sends("unread", "{}").request(bed.gate));
    let unread = within("a reply", unread).await.unwrap();
    let refreshes = async {
        let mut beat = tokio::time::interval(SHORT / 4);
        for n in 0.. {
            beat.tick().await;
            bed.handler.will(Act::Say(Say::new(200, "")));
            let small = Sender::Task.sends(&n.to_string(), "{}").request(bed.gate);
            if let Ok(answer) = sender.send_request(small).await {
                assert_eq!(answer.status(), 200);
            }
        }
    };
    let ended = within("the end of the connection", async {
        tokio::select! {
            ended = &mut connection => drop(ended),
            () = refreshes => {}
        }
    });
    ended.await;
    let metrics = bed.admin("/metrics").await;
    let line = "semel_connections_cut_total{listener=\"deliveries\",reason=\"answer_unread\"} 1\n";
    assert!(metrics.text().contains(line), "{}", metrics.text());
    drop(unread);
}

#[tokio::test]
async fn small_answers_that_are_read_do_not_excuse_a_large_one_that_is_not() {
    leaves_unread(512 * 1024).await;
}

/// It fits into what hyper takes of an answer at a time.
#[tokio::test]
async fn an_answer_of_one_piece_is_read_or_cut_too() {
    leaves_unread(32 * 1024).await;
}
