//! Calls to an admin address: a gate's, or a broker's.

use anyhow::Context;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use semel_gate::settings::Secret;
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;

const CONNECT_WITHIN: Duration = Duration::from_secs(3);

/// A letter's body is at most 16 MiB by default, and grows as JSON.
const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;

/// An admin address.
#[derive(Debug)]
pub(crate) struct AdminClient {
    server: &'static AdminServer,
    base: Uri,
    authorization: Option<HeaderValue>,
    client: Client<HttpConnector, Full<Bytes>>,
}

/// Who answers at an admin address, in words for whoever hears that nobody did.
#[derive(Debug)]
pub(crate) struct AdminServer {
    pub(crate) name: &'static str,
    /// What to do when nobody is there.
    pub(crate) find_it: &'static str,
    /// What to do when the connection broke, and whether anything was done is unknown.
    pub(crate) broke: &'static str,
    /// What an answer that is not JSON is not like.
    pub(crate) speaks: &'static str,
}

/// A call: method, path and body.
pub(crate) type Call = (Method, String, Option<Value>);

/// Nobody was there to ask. A retry is safe.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unreachable(pub(crate) String);

/// Why there is no answer.
enum NoAnswer {
    /// Nobody listens there: nothing was done.
    NotConnected,
    /// The connection broke; whether anything was done is unknown.
    Broken(String),
}

// === impl AdminClient ===

impl AdminClient {
    pub(crate) fn new(
        server: &'static AdminServer,
        base: Uri,
        token: Option<&Secret>,
    ) -> anyhow::Result<Self> {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT_WITHIN));
        let client = Client::builder(TokioExecutor::new())
            // An act must not be sent twice.
            .retry_canceled_requests(false)
            .build(connector);
        let authorization = token.map(bearer).transpose()?;
        Ok(Self {
            server,
            base,
            authorization,
            client,
        })
    }

    /// What is answered; nothing is `null`. Waits for ever unless a limit is given.
    pub(crate) async fn ask(
        &self,
        call: Call,
        within: Option<Duration>,
    ) -> Result<(StatusCode, Value), Unreachable> {
        let (AdminServer { name, find_it, .. }, base) = (self.server, &self.base);
        let answer = self.call(call);
        let answer = match within {
            None => answer.await,
            Some(within) => timeout(within, answer).await.unwrap_or_else(|_| {
                let late = format!("no answer within {within:?}");
                Err(NoAnswer::Broken(late))
            }),
        };
        let (status, body) = answer.map_err(|error| match error {
            NoAnswer::NotConnected => Unreachable(format!(
                "there is no {name} at {base}: {find_it}; nothing was done"
            )),
            NoAnswer::Broken(why) => Unreachable(format!(
                "the {name} at {base} did not answer ({why}){}",
                self.server.broke
            )),
        })?;
        if body.is_empty() && status.is_success() {
            return Ok((status, Value::Null));
        }
        let json = serde_json::from_slice(&body).map_err(|_| {
            let speaks = self.server.speaks;
            Unreachable(format!("{base} answered {status}, but not as {speaks}"))
        })?;
        Ok((status, json))
    }

    /// Where it asks.
    pub(crate) const fn base(&self) -> &Uri {
        &self.base
    }

    /// Asks for an answer that does not end.
    pub(crate) async fn open(&self, path: &str) -> Result<Incoming, Unreachable> {
        let (AdminServer { name, .. }, base) = (self.server, &self.base);
        let away =
            |why: String| Unreachable(format!("the {name} at {base} does not answer ({why})"));
        let request = self.request((Method::GET, path.into(), None));
        let request = request.map_err(|error| away(error.to_string()))?;
        let response = timeout(CONNECT_WITHIN, self.client.request(request)).await;
        let response = response.map_err(|_| away(format!("not within {CONNECT_WITHIN:?}")))?;
        let response = response.map_err(|error| away(error.to_string()))?;
        match response.status() {
            StatusCode::OK => Ok(response.into_body()),
            status => Err(away(format!("it says {status}"))),
        }
    }

    async fn call(&self, call: Call) -> Result<(StatusCode, Bytes), NoAnswer> {
        let broken = |error: &dyn std::error::Error| NoAnswer::Broken(error.to_string());
        let request = self.request(call).map_err(|error| broken(&error))?;
        let response = self.client.request(request).await.map_err(|error| {
            if error.is_connect() {
                NoAnswer::NotConnected
            } else {
                broken(&error)
            }
        })?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX);
        let body = body.collect().await;
        let body = body.map_err(|error| broken(error.as_ref()))?;
        Ok((status, body.to_bytes()))
    }

    fn request(&self, (method, path, body): Call) -> Result<Request<Full<Bytes>>, http::Error> {
        let base = self.base.to_string();
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", base.trim_end_matches('/')))
            .header(CONTENT_TYPE, "application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let body = body.map_or_else(Bytes::new, |body| body.to_string().into());
        request.body(Full::new(body))
    }
}

fn bearer(Secret(token): &Secret) -> anyhow::Result<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
        .context("the token cannot be a header value")?;
    value.set_sensitive(true);
    Ok(value)
}
