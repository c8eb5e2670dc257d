//! What an HTTP client does on real sockets.

mod forbidden;
mod redirects;
mod sockets;

use super::*;
use crate::handler::Handler;

const LONG: Duration = Duration::from_secs(3600);

fn http_client() -> HttpClient {
    HttpClient::new(Clock::start(Duration::ZERO))
}

fn call(url: &str) -> OutgoingRequest {
    OutgoingRequest {
        method: Method::POST,
        url: url.parse().unwrap(),
        headers: HeaderMap::new(),
        body: Bytes::from_static(b"0123456789"),
        deadline: LONG,
        redirects: Redirects::Follow,
        cut: None,
    }
}

fn status(code: u16) -> Answer {
    Answer::Status {
        code,
        retry_after: None,
    }
}

fn reason(answer: Answer) -> String {
    match answer {
        Answer::Unreachable(why) => why,
        Answer::Status { .. } | Answer::TimedOut | Answer::Cut => panic!("{answer:?}"),
    }
}

#[tokio::test]
async fn a_handler_gets_what_it_was_sent() {
    let handler = Handler::start().await;
    let mut call = call(&format!("{}/a%20b?c=d#e", handler.url));
    call.headers.insert("x-mine", "1".parse().unwrap());
    call.headers.insert("host", "elsewhere".parse().unwrap());
    call.headers.insert("content-length", "3".parse().unwrap());
    let chunked = "chunked".parse().unwrap();
    call.headers.insert("transfer-encoding", chunked);
    assert_eq!(http_client().deliver(call).await, status(200));
    let seen = &handler.seen()[0];
    assert_eq!(seen.path, "/a%20b?c=d");
    assert_eq!(seen.body, "0123456789");
    let mut names: Vec<_> = seen.headers.keys().map(|name| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["content-length", "host", "x-mine"]);
    assert_eq!(seen.header("content-length"), "10");
    assert_eq!(seen.header("host"), &handler.url["http://".len()..]);
}

#[tokio::test]
async fn an_empty_post_says_that_it_is_empty() {
    let handler = Handler::start().await;
    let http_client = http_client();
    for method in [Method::POST, Method::PUT, Method::GET] {
        let mut call = call(&handler.url);
        call.method = method;
        call.body = Bytes::new();
        assert_eq!(http_client.deliver(call).await, status(200));
    }
    let lengths: Vec<_> = handler
        .seen()
        .iter()
        .map(|seen| seen.header("content-length").to_owned())
        .collect();
    assert_eq!(lengths, ["0", "0", ""]);
}

#[tokio::test]
async fn putting_the_clock_forward_past_the_deadline_ends_a_call() {
    let handler = Handler::start().await;
    handler.hold();
    let clock = Clock::start(Duration::ZERO);
    let http_client = HttpClient::new(clock.clone());
    let call = call(&handler.url);
    let waiting = tokio::spawn(async move { http_client.deliver(call).await });
    handler.wait_for(1).await;
    assert!(!waiting.is_finished());
    clock.advance(LONG);
    assert_eq!(waiting.await.unwrap(), Answer::TimedOut);
}

#[tokio::test]
async fn a_nobody_is_named() {
    let why = reason(http_client().deliver(call("http://127.0.0.1:1/x")).await);
    assert!(why.contains("no connection to 127.0.0.1:1"), "{why}");
    let why = reason(http_client().deliver(call("http://nobody.invalid/")).await);
    assert!(why.contains("nobody.invalid was not found"), "{why}");
    let why = reason(http_client().deliver(call("ftp://127.0.0.1/")).await);
    assert!(why.contains("only http and https"), "{why}");
}

#[test]
fn a_wish_for_a_pause_is_seconds_or_a_date() {
    let http_client = http_client();
    assert_eq!(http_client.pause("7"), Some(Duration::from_secs(7)));
    assert_eq!(http_client.pause("soon"), None);
    assert_eq!(http_client.pause("-1"), None);
    let past = http_client.pause("Sun, 06 Nov 1994 08:49:37 GMT");
    assert_eq!(past, Some(Duration::ZERO));
    // A handler knows nothing of the clock that was put forward.
    http_client.clock.advance(LONG * 2);
    let later = http_client.clock.wall().plus(LONG);
    let later = jiff::Timestamp::from_microsecond(later.0).unwrap();
    let later = later.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    let pause = http_client.pause(&later).unwrap();
    assert!(pause <= LONG && pause > LONG - Duration::from_secs(5));
}
