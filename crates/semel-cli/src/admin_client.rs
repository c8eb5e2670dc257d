//! Asking a gate at its admin address.

use crate::desk::{Ask, Unreachable};
use anyhow::Context;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use semel_gate::operate::Refused;
use serde_json::{Map, Value, json};
use std::time::Duration;

const CONNECT_WITHIN: Duration = Duration::from_secs(3);

/// How long an answer may take; a redrive takes as long as its handler.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// A letter's body is at most 16 MiB by default, and grows as JSON.
const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;

/// A gate's admin address.
#[derive(Debug)]
pub(crate) struct AdminClient {
    admin: Uri,
    token: Option<String>,
    client: Client<HttpConnector, Full<Bytes>>,
}

// === impl AdminClient ===

impl AdminClient {
    pub(crate) fn new(admin: Uri, token: Option<String>) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT_WITHIN));
        let client = Client::builder(TokioExecutor::new())
            // An act must not be sent twice.
            .retry_canceled_requests(false)
            .build(connector);
        Self {
            admin,
            token,
            client,
        }
    }

    pub(crate) async fn ask(&self, ask: &Ask) -> anyhow::Result<Value> {
        let request = self.request(ask)?;
        let answer = self.send(request);
        let (status, body) = match ask {
            Ask::Redrive { .. } => answer.await?,
            Ask::Records { .. }
            | Ask::Record { .. }
            | Ask::Release(_)
            | Ask::Forget(_)
            | Ask::Resolve(..)
            | Ask::Letters { .. }
            | Ask::Letter(_)
            | Ask::Discard(_) => {
                let answer = tokio::time::timeout(ANSWER_WITHIN, answer).await;
                answer
                    .map_err(|_| self.silent(&format!("no answer within {ANSWER_WITHIN:?}")))??
            }
        };
        let told: Value = serde_json::from_slice(&body).map_err(|_| {
            let admin = &self.admin;
            Unreachable(format!(
                "{admin} answered {status}, but not as a gate's admin address does: name that one with --admin"
            ))
        })?;
        if status.is_success() {
            Ok(told)
        } else {
            Err(refused(status, told).into())
        }
    }

    fn request(&self, ask: &Ask) -> anyhow::Result<Request<Full<Bytes>>> {
        let (method, path, body) = spoken(ask);
        let base = self.admin.to_string();
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", base.trim_end_matches('/')));
        if let Some(token) = &self.token {
            let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
                .context("the token is no header value")?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        let body = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
        Ok(request
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body))?)
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> anyhow::Result<(StatusCode, Bytes)> {
        let response = self.client.request(request).await.map_err(|error| {
            if error.is_connect() {
                self.absent()
            } else {
                self.silent(&error.to_string())
            }
        })?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX);
        let body = body.collect().await;
        let body = body.map_err(|error| self.silent(&error.to_string()))?;
        Ok((status, body.to_bytes()))
    }

    fn absent(&self) -> Unreachable {
        Unreachable(format!(
            "there is no gate at {}: start one (`semel gate`), name its admin address (--admin, SEMEL_ADMIN), or ask \
             its store directly (--store); nothing was done",
            self.admin
        ))
    }

    fn silent(&self, why: &str) -> Unreachable {
        Unreachable(format!(
            "the gate at {} did not answer ({why}): look first whether it was done; a retry is safe",
            self.admin
        ))
    }
}

/// A question as the admin address understands it.
fn spoken(ask: &Ask) -> (Method, String, Option<Value>) {
    let next = |after: &Option<String>| {
        after
            .as_ref()
            .map_or_else(String::new, |after| format!("&after={after}"))
    };
    let get = |path| (Method::GET, path, None);
    let post = |path| (Method::POST, path, None);
    match ask {
        Ask::Records {
            state,
            after,
            limit,
        } => {
            let state = state.map_or_else(String::new, |state| format!("&state={state}"));
            get(format!("/records?limit={limit}{state}{}", next(after)))
        }
        Ask::Record { key, body } => get(format!("/records/{key}?body={body}")),
        Ask::Release(key) => post(format!("/records/{key}/release")),
        Ask::Forget(key) => post(format!("/records/{key}/forget")),
        Ask::Resolve(key, verdict, fence) => (
            Method::POST,
            format!("/records/{key}/resolve"),
            Some(json!({"as": verdict.word(), "fence": fence.map(|fence| fence.0)})),
        ),
        Ask::Letters { after, limit } => get(format!("/letters?limit={limit}{}", next(after))),
        Ask::Letter(id) => get(format!("/letters/{id}")),
        Ask::Redrive { id, run_again } => {
            post(format!("/letters/{id}/redrive?run_again={run_again}"))
        }
        Ask::Discard(id) => post(format!("/letters/{id}/discard")),
    }
}

/// A refusal, read back from what the gate said.
fn refused(status: StatusCode, told: Value) -> Refused {
    let mut details = match told {
        Value::Object(details) => details,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    };
    let mut text = |name: &str| match details.remove(name) {
        Some(Value::String(text)) => text,
        Some(_) | None => format!("the gate answered {status}"),
    };
    let (error, what_to_do) = (text("error"), text("what_to_do"));
    Refused {
        details,
        ..Refused::new(status, error, what_to_do)
    }
}
