//! Asking over HTTP: the driver as a client of broker and gates.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{HeaderMap, Method, Request};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{self, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use std::time::Duration;
use tokio::time::timeout;

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Silence {
    /// Nobody was there: nothing was heard.
    Refused,
    /// The request may or may not have been heard.
    Unclear(String),
}

/// A client.
#[derive(Clone, Debug)]
pub(super) struct Asker(Client<HttpConnector, Full<Bytes>>);

/// An answer, read whole.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

// === impl Asker ===

impl Asker {
    pub(super) fn new() -> Self {
        let client = Client::builder(TokioExecutor::new())
            .retry_canceled_requests(false)
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(1))
            .build_http();
        Self(client)
    }

    /// Posts JSON.
    ///
    /// # Errors
    /// When no whole answer came in time: the request may or may not have been heard.
    pub(super) async fn post(
        &self,
        port: u16,
        path: &str,
        body: impl Into<Bytes>,
        within: Duration,
    ) -> Result<Answer, Silence> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(format!("http://127.0.0.1:{port}{path}"))
            .header("content-type", "application/json")
            .body(Full::new(body.into()))
            .expect("a port and a plain path are an address");
        let asking = async {
            let answer = self.0.request(request).await;
            let answer = answer.map_err(|error| Silence::by(&error))?;
            let (head, body) = answer.into_parts();
            let body = body.collect().await;
            Ok(Answer {
                status: head.status.as_u16(),
                headers: head.headers,
                body: body.map_err(Silence::unclear)?.to_bytes(),
            })
        };
        let answered = timeout(within, asking).await;
        answered.map_err(Silence::unclear)?
    }
}

// === impl Silence ===

impl Silence {
    fn by(error: &legacy::Error) -> Self {
        if error.is_connect() {
            Self::Refused
        } else {
            Self::unclear(error)
        }
    }

    fn unclear(error: impl std::fmt::Display) -> Self {
        Self::Unclear(error.to_string())
    }

    pub(super) fn words(&self) -> &str {
        match self {
            Self::Refused => "nobody was there",
            Self::Unclear(why) => why,
        }
    }

    /// Whether the request may have been heard.
    pub(super) const fn is_unclear(&self) -> bool {
        matches!(self, Self::Unclear(_))
    }
}

// === impl Answer ===

impl Answer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}
