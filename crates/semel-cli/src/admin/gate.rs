//! An operator's requests to a gate at its admin address.

use super::{AdminRequest, Unreachable};
use crate::admin_client::{AdminClient, Call, CallError};
use http::{Method, StatusCode};
use semel_gate::operate::Refused;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// How long an answer may take; a redrive takes as long as its handler.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

pub(super) async fn send(client: &AdminClient, request: &AdminRequest) -> anyhow::Result<Value> {
    let answer = client.call(http_parts(request));
    let answer = match request {
        AdminRequest::Redrive { .. } => answer.await,
        AdminRequest::Records { .. }
        | AdminRequest::Record { .. }
        | AdminRequest::Release(_)
        | AdminRequest::Forget(_)
        | AdminRequest::Resolve(..)
        | AdminRequest::Letters { .. }
        | AdminRequest::Letter(_)
        | AdminRequest::Discard(_) => {
            let answer = tokio::time::timeout(ANSWER_WITHIN, answer).await;
            let late = || CallError::Broken(format!("no answer within {ANSWER_WITHIN:?}"));
            answer.unwrap_or_else(|_| Err(late()))
        }
    };
    let (status, body) = answer.map_err(|error| unreachable(client, &error))?;
    let answer: Value = serde_json::from_slice(&body).map_err(|_| {
        let admin = client.base();
        Unreachable(format!(
            "{admin} answered {status}, but not as a gate's admin address does: name that one with --admin"
        ))
    })?;
    if status.is_success() {
        Ok(answer)
    } else {
        Err(refused(status, answer).into())
    }
}

fn unreachable(client: &AdminClient, error: &CallError) -> Unreachable {
    let admin = client.base();
    Unreachable(match error {
        CallError::NotConnected => format!(
            "there is no gate at {admin}: start one (`semel gate`), name its admin address (--admin, SEMEL_ADMIN), or ask \
             its store directly (--store); nothing was done"
        ),
        CallError::Broken(why) => format!(
            "the gate at {admin} did not answer ({why}): look first whether it was done; a retry is safe"
        ),
    })
}

/// A request as the admin address understands it.
fn http_parts(request: &AdminRequest) -> Call {
    let next = |after: &Option<String>| {
        after
            .as_ref()
            .map_or_else(String::new, |after| format!("&after={after}"))
    };
    let get = |path| (Method::GET, path, None);
    let post = |path| (Method::POST, path, None);
    match request {
        AdminRequest::Records {
            state,
            after,
            limit,
        } => {
            let state = state.map_or_else(String::new, |state| format!("&state={state}"));
            get(format!("/records?limit={limit}{state}{}", next(after)))
        }
        AdminRequest::Record { key, body } => get(format!("/records/{key}?body={body}")),
        AdminRequest::Release(key) => post(format!("/records/{key}/release")),
        AdminRequest::Forget(key) => post(format!("/records/{key}/forget")),
        AdminRequest::Resolve(key, verdict, fence) => (
            Method::POST,
            format!("/records/{key}/resolve"),
            Some(json!({"as": verdict.word(), "fence": fence.map(|fence| fence.0)})),
        ),
        AdminRequest::Letters { after, limit } => {
            get(format!("/letters?limit={limit}{}", next(after)))
        }
        AdminRequest::Letter(id) => get(format!("/letters/{id}")),
        AdminRequest::Redrive { id, run_again } => {
            post(format!("/letters/{id}/redrive?run_again={run_again}"))
        }
        AdminRequest::Discard(id) => post(format!("/letters/{id}/discard")),
    }
}

/// A refusal, read back from the gate's answer.
fn refused(status: StatusCode, answer: Value) -> Refused {
    let mut details = match answer {
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
