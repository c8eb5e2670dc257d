//! Every route, and every kind of mistake, against services that only remember what they were asked.

mod echo;
mod routes;
mod forms;
mod mistakes;

use crate::clock::Clock;
use crate::interface::Refusals;
use axum::Router;
use axum::body::Body;
use echo::Echo;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tower::ServiceExt;

/// Both services behind REST.
#[derive(Debug)]
struct TestRest {
    echo: Arc<Echo>,
    router: Router,
}

/// An answer.
#[derive(Debug)]
struct TestResponse {
    status: StatusCode,
    headers: HeaderMap,
    text: String,
}

// === impl TestRest ===

impl TestRest {
    fn new() -> Self {
        let echo = Arc::new(Echo::default());
        let refusals = Arc::new(Refusals::new(Clock::start(Duration::ZERO)));
        let methods = echo::methods(&echo, &refusals);
        let router = super::router(methods, echo::buffer(&echo), &refusals);
        Self { echo, router }
    }

    async fn ask(&self, method: &str, path: &str, body: impl Into<Body>) -> TestResponse {
        let request = Request::builder().method(method).uri(path);
        self.send(request.body(body.into()).unwrap()).await
    }

    async fn send(&self, request: Request<Body>) -> TestResponse {
        let answer = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = answer.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        TestResponse {
            status: parts.status,
            headers: parts.headers,
            text: String::from_utf8(body.to_vec()).unwrap(),
        }
    }

    /// What the services were asked last.
    fn asked(&self) -> String {
        self.echo.asked()
    }
}

// === impl TestResponse ===

impl TestResponse {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }
}
