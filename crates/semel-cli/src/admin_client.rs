//! Calls to an admin address: a gate's, or a broker's.

use anyhow::Context;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use std::time::Duration;

const CONNECT_WITHIN: Duration = Duration::from_secs(3);

/// A letter's body is at most 16 MiB by default, and grows as JSON.
const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;

/// An admin address.
#[derive(Debug)]
pub(crate) struct AdminClient {
    base: Uri,
    authorization: Option<HeaderValue>,
    client: Client<HttpConnector, Full<Bytes>>,
}

/// A call: method, path and body.
pub(crate) type Call = (Method, String, Option<Value>);

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum CallError {
    /// Nobody listens there: nothing was done.
    NotConnected,
    /// The connection broke; whether anything was done is unknown.
    Broken(String),
}

// === impl AdminClient ===

impl AdminClient {
    pub(crate) fn new(base: Uri, token: Option<&str>) -> anyhow::Result<Self> {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT_WITHIN));
        let client = Client::builder(TokioExecutor::new())
            // An act must not be sent twice.
            .retry_canceled_requests(false)
            .build(connector);
        let authorization = token.map(bearer).transpose()?;
        Ok(Self {
            base,
            authorization,
            client,
        })
    }

    pub(crate) const fn base(&self) -> &Uri {
        &self.base
    }

    pub(crate) async fn call(&self, call: Call) -> Result<(StatusCode, Bytes), CallError> {
        let broken = |error: &dyn std::error::Error| CallError::Broken(error.to_string());
        let request = self.request(call).map_err(|error| broken(&error))?;
        let response = self.client.request(request).await.map_err(|error| {
            if error.is_connect() {
                CallError::NotConnected
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

fn bearer(token: &str) -> anyhow::Result<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
        .context("the token cannot be a header value")?;
    value.set_sensitive(true);
    Ok(value)
}
