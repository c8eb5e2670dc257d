//! What the other end of a connection sees.

use super::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};

const PATIENCE: Duration = Duration::from_secs(10);

async fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/x", listener.local_addr().unwrap());
    (listener, url)
}

/// Everything that comes on one connection, until it ends.
async fn all_of(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await;
    read.expect("the connection ends").unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Reads a request with a body of ten bytes.
async fn read_request(stream: &mut TcpStream) {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"0123456789") {
        assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0);
    }
}

#[tokio::test]
async fn a_cut_leaves_the_beginning_of_a_request() {
    let (listener, url) = listen().await;
    let http_client = http_client();
    for (cut, body) in [(0, ""), (4, "0123"), (10, "0123456789"), (99, "0123456789")] {
        let mut call = call(&url);
        call.cut = Some(cut);
        call.headers.insert("x-mine", "1".parse().unwrap());
        let (answer, accepted) = tokio::join!(http_client.deliver(call), listener.accept());
        assert_eq!(answer, Answer::Cut);
        let text = all_of(accepted.unwrap().0).await;
        let (head, sent) = text.split_once("\r\n\r\n").unwrap();
        let host = listener.local_addr().unwrap();
        let expected =
            format!("POST /x HTTP/1.1\r\nhost: {host}\r\nx-mine: 1\r\ncontent-length: 10");
        assert_eq!((head, sent), (&*expected, body));
    }
}

/// A server that answers with 200 and counts connections.
async fn counting() -> (String, Arc<AtomicUsize>) {
    let (listener, url) = listen().await;
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            counted.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(answer_all(stream));
        }
    });
    (url, connections)
}

async fn answer_all(mut stream: TcpStream) {
    loop {
        read_request(&mut stream).await;
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
        stream.write_all(answer).await.unwrap();
    }
}

#[tokio::test]
async fn connections_are_used_again() {
    let (url, connections) = counting().await;
    let http_client = http_client();
    for _ in 0..50 {
        assert_eq!(http_client.deliver(call(&url)).await, status(200));
    }
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn an_endless_answer_is_cut_off() {
    let (listener, url) = listen().await;
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_request(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        let mut written = 0_u64;
        while stream.write_all(&[b'x'; 65536]).await.is_ok() {
            written += 65536;
        }
        written
    });
    let http_client = http_client();
    assert_eq!(http_client.deliver(call(&url)).await, status(200));
    let written = tokio::time::timeout(PATIENCE, server).await;
    let written = written.expect("the connection ends").unwrap();
    // What the buffers of two sockets hold, and no more.
    assert!(written < 64 << 20, "{written}");
}

#[tokio::test]
async fn a_deadline_cuts_the_connection_of_a_slow_answer() {
    let (listener, url) = listen().await;
    let clock = Clock::start(Duration::ZERO);
    let http_client = HttpClient::new(clock.clone());
    let calling = tokio::spawn(async move { http_client.deliver(call(&url)).await });
    let (mut stream, _) = listener.accept().await.unwrap();
    read_request(&mut stream).await;
    let beginning = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n0";
    stream.write_all(beginning).await.unwrap();
    clock.advance(LONG);
    assert_eq!(calling.await.unwrap(), Answer::TimedOut);
    assert_eq!(all_of(stream).await, "");
}

#[tokio::test]
async fn a_connection_that_breaks_is_no_answer_and_nothing_is_sent_again() {
    let (listener, url) = listen().await;
    let http_client = http_client();
    for beginning in [
        "",
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n012",
        "what?\r\n\r\n",
    ] {
        let server = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            read_request(&mut stream).await;
            stream.write_all(beginning.as_bytes()).await.unwrap();
        };
        let (answer, ()) = tokio::join!(http_client.deliver(call(&url)), server);
        let why = reason(answer);
        assert!(why.starts_with("http://127.0.0.1:"), "{why}");
    }
    let again = tokio::time::timeout(Duration::from_millis(50), listener.accept());
    assert!(again.await.is_err(), "nobody called again");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_calls_at_once_share_few_connections() {
    let (url, connections) = counting().await;
    let http_client = Arc::new(http_client());
    let callers = (0..64).map(|_| {
        let (http_client, url) = (Arc::clone(&http_client), url.clone());
        tokio::spawn(async move {
            for _ in 0..50 {
                assert_eq!(http_client.deliver(call(&url)).await, status(200));
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
    // Some are opened while another becomes free.
    let connections = connections.load(Ordering::SeqCst);
    assert!(connections <= 2 * 64, "{connections}");
}
