//! Asking a running broker at its admin API.

use super::InvalidInput;
use crate::admin_client::{AdminClient, AdminServer, Call};
use crate::args::broker::{BrokerRequest, BrokerTarget};
use crate::commands::operate::{found, printed};
use crate::table::{Column, member, table, text};
use anyhow::anyhow;
use http::{Method, StatusCode};
use semel_broker::Fault;
use serde_json::{Value, json};

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

const BROKER: AdminServer = AdminServer {
    name: "broker",
    find_it: "start one (`semel broker`), or name it with --url",
    broke: "",
    speaks: "a broker does",
};

pub(super) async fn ask(ask: &BrokerRequest) -> anyhow::Result<()> {
    let (target, question) = http_parts(ask);
    let answer = send(target, question).await;
    match ask {
        BrokerRequest::History { .. } => found(target.json, answer, "dispatches", |rows| {
            table(&COLUMNS, rows)
        }),
        BrokerRequest::WaitIdle { .. } => printed(target.json, answer, |answer| {
            format!("idle after {} ms\n", member(answer, "waited_ms"))
        }),
        BrokerRequest::Reset { .. } => printed(target.json, answer, |_| {
            "everything was taken away\n".into()
        }),
        BrokerRequest::Advance { .. } => printed(target.json, answer, |answer| {
            format!("the broker's clock shows {}\n", member(answer, "now"))
        }),
        BrokerRequest::Faults { .. } => printed(target.json, answer, faults),
    }
}

/// A question as the admin API understands it.
fn http_parts(ask: &BrokerRequest) -> (&BrokerTarget, Call) {
    match ask {
        BrokerRequest::History {
            target,
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
            (target, (Method::GET, path, None))
        }
        BrokerRequest::WaitIdle {
            target,
            timeout,
            pull,
        } => {
            let body = json!({"timeout": timeout, "pull": pull});
            (target, (Method::POST, "wait-idle".into(), Some(body)))
        }
        BrokerRequest::Reset { target } => (target, (Method::POST, "reset".into(), None)),
        BrokerRequest::Advance { target, by } => {
            let body = json!({"by": by});
            (target, (Method::POST, "clock/advance".into(), Some(body)))
        }
        BrokerRequest::Faults {
            target,
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
                Method::GET | Method::DELETE => None,
                _ => Some(json!({"faults": faults})),
            };
            (target, (method, "faults".into(), body))
        }
    }
}

async fn send(target: &BrokerTarget, (method, path, body): Call) -> anyhow::Result<Value> {
    let client = AdminClient::new(&BROKER, target.url.clone(), target.admin_token.as_ref())?;
    let call = (method, format!("/_semel/{path}"), body);
    let (status, answer) = client.ask(call, None).await?;
    if status.is_success() {
        Ok(answer)
    } else {
        Err(refused(status, &answer))
    }
}

/// What the broker refused, and what is still to be done if that is why.
fn refused(status: StatusCode, answer: &Value) -> anyhow::Error {
    let says = member(answer, "error");
    let busy = answer.get("busy").and_then(Value::as_array);
    let busy: String = busy
        .into_iter()
        .flatten()
        .map(|it| format!("\n  {}", text(it)))
        .collect();
    if status == StatusCode::BAD_REQUEST {
        InvalidInput(says).into()
    } else {
        anyhow!("{says}{busy}")
    }
}

fn faults(answer: &Value) -> String {
    let list = answer.get("faults").and_then(Value::as_array);
    let list: String = list
        .into_iter()
        .flatten()
        .map(|it| format!("{}\n", text(it)))
        .collect();
    if list.is_empty() {
        "nothing goes wrong\n".into()
    } else {
        format!("{list}seed {}\n", member(answer, "seed"))
    }
}
