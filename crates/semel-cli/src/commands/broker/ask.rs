//! Asking a running broker at its admin API.

use super::Mistake;
use crate::args::broker::{Ask, BrokerDesk};
use crate::commands::operate::{found, printed};
use crate::desk::Unreachable;
use crate::table::{Column, table, text};
use anyhow::{Context, anyhow};
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use semel_broker::Fault;
use serde_json::{Value, json};
use std::time::Duration;

const CONNECT_WITHIN: Duration = Duration::from_secs(3);

/// Ten thousand dispatches, and room.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

const COLUMNS: [Column; 8] = [
    ("NUMBER", "number"),
    ("RESOURCE", "resource"),
    ("ID", "id"),
    ("ATTEMPT", "attempt"),
    ("RESULT", "result"),
    ("STATUS", "status"),
    ("TOOK (US)", "took_us"),
    ("FAULTS", "faults"),
];

/// One question: method, path and body.
type Question = (Method, String, Value);

pub(super) async fn ask(ask: &Ask) -> anyhow::Result<()> {
    let (desk, question) = spoken(ask);
    let told = send(desk, question).await;
    match ask {
        Ask::History { .. } => found(desk.json, told, "dispatches", |rows| table(&COLUMNS, rows)),
        Ask::WaitIdle { .. } => printed(desk.json, told, |told| {
            let waited = told.get("waited_ms").map(text).unwrap_or_default();
            format!("idle after {waited} ms\n")
        }),
        Ask::Reset { .. } => printed(desk.json, told, |_| "everything was taken away\n".into()),
        Ask::Advance { .. } => printed(desk.json, told, |told| {
            let now = told.get("now").map(text).unwrap_or_default();
            format!("the broker's clock shows {now}\n")
        }),
        Ask::Faults { .. } => printed(desk.json, told, faults),
    }
}

/// A question as the admin API understands it.
fn spoken(ask: &Ask) -> (&BrokerDesk, Question) {
    match ask {
        Ask::History {
            desk,
            resource,
            id,
            after,
            limit,
        } => {
            let mut query = url::form_urlencoded::Serializer::new(String::new());
            query.append_pair("limit", &limit.to_string());
            query.append_pair("resource", resource.as_deref().unwrap_or_default());
            query.append_pair("id", id.as_deref().unwrap_or_default());
            if let Some(after) = after {
                query.append_pair("after", &after.to_string());
            }
            let path = format!("history?{}", query.finish());
            (desk, (Method::GET, path, Value::Null))
        }
        Ask::WaitIdle {
            desk,
            timeout,
            pull,
        } => {
            let body = json!({"timeout": timeout, "pull": pull});
            (desk, (Method::POST, "wait-idle".into(), body))
        }
        Ask::Reset { desk } => (desk, (Method::POST, "reset".into(), Value::Null)),
        Ask::Advance { desk, by } => {
            let body = json!({"by": by});
            (desk, (Method::POST, "clock/advance".into(), body))
        }
        Ask::Faults {
            desk,
            faults,
            add,
            clear,
        } => {
            let method = match (faults.is_empty(), add, clear) {
                (true, _, true) => Method::DELETE,
                (true, _, false) => Method::GET,
                (false, true, _) => Method::POST,
                (false, false, _) => Method::PUT,
            };
            let faults: Vec<_> = faults.iter().map(Fault::to_string).collect();
            let body = match method {
                Method::GET | Method::DELETE => Value::Null,
                _ => json!({"faults": faults}),
            };
            (desk, (method, "faults".into(), body))
        }
    }
}

async fn send(desk: &BrokerDesk, (method, path, body): Question) -> anyhow::Result<Value> {
    let mut connector = HttpConnector::new();
    connector.set_connect_timeout(Some(CONNECT_WITHIN));
    let client = Client::builder(TokioExecutor::new())
        // An act must not be sent twice.
        .retry_canceled_requests(false)
        .build::<_, Full<Bytes>>(connector);
    let response = client.request(request(desk, method, &path, &body)?).await;
    let response = response.map_err(|error| unreachable(desk, &error))?;
    let status = response.status();
    let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX);
    let body = body.collect().await;
    let body = body.map_err(|error| Unreachable(format!("{} broke off: {error}", desk.url)))?;
    let body = body.to_bytes();
    if body.is_empty() && status.is_success() {
        return Ok(Value::Null);
    }
    let told: Value = serde_json::from_slice(&body).map_err(|_| {
        Unreachable(format!(
            "{} answered {status}, but not as a broker does",
            desk.url
        ))
    })?;
    if status.is_success() {
        Ok(told)
    } else {
        Err(refused(status, &told))
    }
}

fn request(
    desk: &BrokerDesk,
    method: Method,
    path: &str,
    body: &Value,
) -> anyhow::Result<Request<Full<Bytes>>> {
    let base = desk.url.to_string();
    let base = base.trim_end_matches('/');
    let mut request = Request::builder()
        .method(method)
        .uri(format!("{base}/_semel/{path}"))
        .header(CONTENT_TYPE, "application/json");
    if let Some(token) = &desk.admin_token {
        let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
            .context("the token is no header value")?;
        value.set_sensitive(true);
        request = request.header(AUTHORIZATION, value);
    }
    let body = if body.is_null() {
        Bytes::new()
    } else {
        body.to_string().into()
    };
    Ok(request.body(Full::new(body))?)
}

fn unreachable(desk: &BrokerDesk, error: &hyper_util::client::legacy::Error) -> Unreachable {
    let url = &desk.url;
    Unreachable(if error.is_connect() {
        format!(
            "there is no broker at {url}: start one (`semel broker`), or name it with --url; nothing was done"
        )
    } else {
        format!("the broker at {url} did not answer ({error})")
    })
}

/// What the broker refused, and what is still to be done if that is why.
fn refused(status: StatusCode, told: &Value) -> anyhow::Error {
    let says = told.get("error").map(text).unwrap_or_default();
    let busy = told.get("busy").and_then(Value::as_array);
    let busy: String = busy
        .into_iter()
        .flatten()
        .map(|it| format!("\n  {}", text(it)))
        .collect();
    if status == StatusCode::BAD_REQUEST {
        Mistake(says).into()
    } else {
        anyhow!("{says}{busy}")
    }
}

fn faults(told: &Value) -> String {
    let list = told.get("faults").and_then(Value::as_array);
    let list: String = list
        .into_iter()
        .flatten()
        .map(|it| format!("{}\n", text(it)))
        .collect();
    if list.is_empty() {
        "nothing goes wrong\n".into()
    } else {
        let seed = told.get("seed").map(text).unwrap_or_default();
        format!("{list}seed {seed}\n")
    }
}
