//! For tests: a real HTTP handler on a port of its own, that answers as it is told and remembers what it was sent.

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// A handler that runs until the test ends.
#[derive(Clone, Debug)]
pub(crate) struct Handler {
    /// `http://127.0.0.1:port`
    pub(crate) url: String,
    seen: watch::Receiver<Vec<Seen>>,
    script: Arc<Script>,
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

#[derive(Debug)]
struct Script {
    /// The next answers; 200 when there are none.
    answers: Mutex<VecDeque<(u16, Option<String>)>>,
    /// While held, requests wait before they are answered.
    held: watch::Sender<bool>,
    seen: watch::Sender<Vec<Seen>>,
}

// === impl Handler ===

impl Handler {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, seen) = watch::channel(Vec::new());
        let script = Arc::new(Script {
            answers: Mutex::default(),
            held: watch::channel(false).0,
            seen: sender,
        });
        let router = Router::new()
            .fallback(answer)
            .with_state(Arc::clone(&script));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, seen, script }
    }

    /// Answers the next requests with these codes, and all later ones with 200.
    pub(crate) fn answer_next(&self, codes: &[u16]) {
        let mut answers = self.script.answers.lock().unwrap();
        answers.extend(codes.iter().map(|code| (*code, None)));
    }

    /// Answers the next request with a redirect.
    pub(crate) fn redirect_next(&self, code: u16, location: &str) {
        let mut answers = self.script.answers.lock().unwrap();
        answers.push_back((code, Some(location.into())));
    }

    /// Lets requests arrive but not be answered, until it is let go.
    pub(crate) fn hold(&self) {
        self.script.held.send_replace(true);
    }

    pub(crate) fn let_go(&self) {
        self.script.held.send_replace(false);
    }

    /// Everything that arrived so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.borrow().clone()
    }

    /// Waits until `count` requests have arrived; fails after ten seconds.
    pub(crate) async fn wait_for(&self, count: usize) -> Vec<Seen> {
        let mut seen = self.seen.clone();
        let waited = seen.wait_for(|seen| seen.len() >= count);
        let waited = tokio::time::timeout(Duration::from_secs(10), waited).await;
        assert!(
            waited.is_ok(),
            "{} requests arrived, not {count}",
            self.seen().len()
        );
        self.seen()
    }
}

// === impl Seen ===

impl Seen {
    /// A header's text, empty when it is not there.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }
}

async fn answer(State(script): State<Arc<Script>>, parts: Parts, body: Bytes) -> Response {
    script.seen.send_modify(|seen| {
        seen.push(Seen {
            method: parts.method,
            path: parts.uri.to_string(),
            headers: parts.headers,
            body,
        });
    });
    let (code, location) = script
        .answers
        .lock()
        .unwrap()
        .pop_front()
        .unwrap_or((200, None));
    let mut held = script.held.subscribe();
    held.wait_for(|held| !held).await.unwrap();
    let mut response = Response::new("done".into());
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    if let Some(location) = location {
        response
            .headers_mut()
            .insert("location", location.parse().unwrap());
    }
    response
}
