//! An operator's requests to a gate at its admin address.

use crate::admin_client::{AdminClient, AdminServer, Call};
use http::StatusCode;
use semel_gate::operate::Refused;
use serde_json::{Map, Value};
use std::time::Duration;

pub(super) const GATE: AdminServer = AdminServer {
    name: "gate",
    find_it: "start one (`semel gate`), name its admin address (--admin, SEMEL_ADMIN, or `admin` in \
              semel.toml), or ask its store directly (--store)",
    broke: ": look first whether it was done; a retry is safe",
    speaks: "a gate's admin address does: name that one with --admin",
};

pub(super) async fn send(
    client: &AdminClient,
    call: Call,
    within: Option<Duration>,
) -> anyhow::Result<Value> {
    let (status, answer) = client.ask(call, within).await?;
    if status.is_success() {
        Ok(answer)
    } else {
        Err(refused(status, answer).into())
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
