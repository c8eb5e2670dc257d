//! The broker's clock, shown and put forward.

use super::Admin;
use super::error::{AdminError, read};
use crate::duration;
use axum::Json;
use axum::extract::State;
use bytes::Bytes;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;

const EXAMPLE: &str = r#"{"by": "7d"} or {"seconds": 30}"#;

/// `{"by": "7d"}` or `{"seconds": 30}`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AdvanceRequest {
    by: Option<String>,
    seconds: Option<u64>,
}

/// What the clock shows.
#[derive(Debug, Serialize)]
pub(super) struct ClockState {
    now: String,
    /// Microseconds since 1970.
    now_us: i64,
    /// How far it was put forward.
    ahead_ms: u64,
}

pub(super) async fn show(State(admin): State<Admin>) -> Json<ClockState> {
    Json(shown(&admin))
}

pub(super) async fn advance(
    State(admin): State<Admin>,
    body: Bytes,
) -> Result<Json<ClockState>, AdminError> {
    let by = advance_of(&body)?;
    let _alone = admin.0.change.lock().await;
    let later = admin.context().clock.now().plus(by);
    if Timestamp::from_microsecond(later.0).is_err() {
        let error = "the clock ends with the year 9999: put it forward by less";
        return Err(AdminError::invalid(error.into()));
    }
    let kept = admin.context().advance(by).await;
    kept.map_err(|error| {
        // Trying again would put it forward twice.
        AdminError::half_done(format!(
            "the clock was put forward, but a restart will not know: {error}"
        ))
    })?;
    Ok(Json(shown(&admin)))
}

pub(super) fn shown(admin: &Admin) -> ClockState {
    let clock = &admin.context().clock;
    let now = clock.now();
    let text = Timestamp::from_microsecond(now.0);
    ClockState {
        now: text.map_or_else(|_| String::new(), |it| format!("{it:.6}")),
        now_us: now.0,
        ahead_ms: u64::try_from(clock.ahead().as_millis()).unwrap_or(u64::MAX),
    }
}

fn advance_of(body: &[u8]) -> Result<Duration, AdminError> {
    let given: AdvanceRequest = read(body, EXAMPLE)?;
    match (given.by, given.seconds) {
        (Some(by), None) => duration(&by),
        (None, Some(seconds)) => Ok(Duration::from_secs(seconds)),
        (Some(_), Some(_)) | (None, None) => {
            Err(AdminError::invalid(format!("by how much? Send {EXAMPLE}")))
        }
    }
}

pub(super) fn duration(text: &str) -> Result<Duration, AdminError> {
    duration::parse_whole(text).ok_or_else(|| {
        AdminError::invalid(format!(
            "{text:?} is not a duration: write 500ms, 2s, 5m, 1h or 7d"
        ))
    })
}
