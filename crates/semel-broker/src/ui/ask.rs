//! Asking this broker, without a connection.

use axum::Router;
use axum::body::Body;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::Value;
use std::fmt;
use tower::ServiceExt;

/// A program inside, which knows the broker's token.
#[derive(Clone)]
pub(crate) struct Ask {
    router: Router,
    token: Option<String>,
}

/// What the broker refused, in its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failed {
    pub(super) status: StatusCode,
    pub(super) says: String,
}

// === impl Ask ===

impl Ask {
    pub(crate) fn new(router: Router, token: Option<String>) -> Self {
        Self { router, token }
    }

    pub(super) async fn get(&self, path: &str) -> Result<Value, Failed> {
        self.send(Method::GET, path, &Value::Null).await
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> Result<Value, Failed> {
        self.send(Method::POST, path, body).await
    }

    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<Value, Failed> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, "localhost")
            .header(CONTENT_TYPE, "application/json");
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        let body = if body.is_null() {
            Body::empty()
        } else {
            Body::from(body.to_string())
        };
        let request = request
            .body(body)
            .map_err(|error| Failed::new(StatusCode::BAD_REQUEST, error))?;
        let Ok(response) = self.router.clone().oneshot(request).await;
        let (parts, body) = response.into_parts();
        let failed = |error| Failed::new(StatusCode::INTERNAL_SERVER_ERROR, error);
        let body = body.collect().await.map_err(failed)?.to_bytes();
        let json = serde_json::from_slice(&body);
        match (parts.status.is_success(), json) {
            (true, json) => Ok(json.unwrap_or_default()),
            (false, json) => Err(Failed {
                status: parts.status,
                says: words(&json.unwrap_or_default(), parts.status),
            }),
        }
    }
}

impl fmt::Debug for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ask")
    }
}

// === impl Failed ===

impl Failed {
    pub(super) fn new(status: StatusCode, error: impl fmt::Display) -> Self {
        Self {
            status,
            says: error.to_string(),
        }
    }
}

/// Google's interface has its words in `error.message`, our own in `error`.
fn words(json: &Value, status: StatusCode) -> String {
    let error = json.get("error");
    let message = error.and_then(|it| it.get("message").unwrap_or(it).as_str());
    message.map_or_else(|| status.to_string(), Into::into)
}
