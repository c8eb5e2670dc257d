//! Waiting until nothing is left to be done.

use super::clock::duration;
use super::error::{AdminError, read};
use super::{Admin, Service};
use axum::Json;
use axum::extract::State;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

const EXAMPLE: &str = r#"{"timeout": "30s", "pull": false}"#;

/// How long is waited when nothing is said.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How much of what is left is named.
const NAMED_MAX: usize = 100;

/// `{"timeout": "30s", "pull": false}`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WaitIdleRequest {
    /// By the machine's clock.
    timeout: Option<String>,
    /// Whether what waits for somebody who pulls counts.
    #[serde(default)]
    pull: bool,
}

pub(super) async fn wait(
    State(admin): State<Admin>,
    body: Bytes,
) -> Result<Json<Value>, AdminError> {
    let given: WaitIdleRequest = read(&body, EXAMPLE)?;
    let timeout = given.timeout.as_deref().map_or(Ok(TIMEOUT), duration)?;
    let began = Instant::now();
    let quiet = until_idle(&admin.0.services, given.pull);
    if tokio::time::timeout(timeout, quiet).await.is_err() {
        return Err(still_busy(&admin, timeout, given.pull));
    }
    let waited_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(Json(json!({ "idle": true, "waited_ms": waited_ms })))
}

/// Work may go from a service that is looked at later to one that was looked at before: a handler of the one gives
/// something to the other, and is done. So it is quiet only if all are found idle twice, and nothing changed meanwhile.
async fn until_idle(services: &[Arc<dyn Service>], pull: bool) {
    let is_busy = || services.iter().any(|it| !it.busy(pull, 1).is_empty());
    // Listens before it looks, so that no change falls in between.
    let mut changes: Vec<_> = services.iter().map(|it| it.changes()).collect();
    loop {
        for seen in &mut changes {
            seen.mark_unchanged();
        }
        if is_busy() || is_busy() {
            any_change(&changes).await;
        } else if !changes.iter().any(|it| it.has_changed().unwrap_or(false)) {
            return;
        }
    }
}

async fn any_change(changes: &[watch::Receiver<u64>]) {
    let mut waiting = JoinSet::new();
    for changes in changes {
        let mut changes = changes.clone();
        waiting.spawn(async move {
            // A service that has gone changes no more.
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        });
    }
    waiting.join_next().await;
}

fn still_busy(admin: &Admin, timeout: Duration, pull: bool) -> AdminError {
    let services = admin.0.services.iter();
    let mut busy: Vec<_> = services.flat_map(|it| it.busy(pull, NAMED_MAX)).collect();
    busy.truncate(NAMED_MAX);
    let error = format!(
        "after {timeout:?} something is still to be done. Wait longer, or look at GET /_semel/history for what fails"
    );
    AdminError::still_busy(error, busy)
}
