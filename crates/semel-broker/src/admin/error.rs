//! How the admin API refuses: `{"error": …, "retry_is_safe": …}`.

use super::guard::AccessDenied;
use crate::storage::StorageError;
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde_json::json;

/// Why something was not done.
#[derive(Debug)]
pub(super) struct AdminError {
    status: StatusCode,
    error: String,
    retry_is_safe: bool,
    /// What was still to be done.
    busy: Option<Vec<String>>,
}

// === impl AdminError ===

impl AdminError {
    /// The request has to be changed.
    pub(super) fn invalid(error: String) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error, false)
    }

    pub(super) fn not_found(error: String) -> Self {
        Self::new(StatusCode::NOT_FOUND, error, false)
    }

    pub(super) fn wrong_method(error: String) -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, error, false)
    }

    /// The broker could not do it.
    pub(super) fn failed(error: String) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, error, true)
    }

    /// The broker did a part of it.
    pub(super) fn half_done(error: String) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, error, false)
    }

    /// The time was over before everything was done.
    pub(super) fn still_busy(error: String, busy: Vec<String>) -> Self {
        Self {
            busy: Some(busy),
            ..Self::new(StatusCode::GATEWAY_TIMEOUT, error, true)
        }
    }

    fn new(status: StatusCode, error: String, retry_is_safe: bool) -> Self {
        Self {
            status,
            error,
            retry_is_safe,
            busy: None,
        }
    }
}

impl IntoResponse for AdminError {
    fn into_response(self) -> Response {
        let mut body = json!({ "error": self.error, "retry_is_safe": self.retry_is_safe });
        if let (Some(busy), Some(body)) = (self.busy, body.as_object_mut()) {
            body.insert("idle".into(), false.into());
            body.insert("busy".into(), busy.into());
        }
        (self.status, Json(body)).into_response()
    }
}

impl From<AccessDenied> for AdminError {
    fn from(refusal: AccessDenied) -> Self {
        let status = match refusal {
            AccessDenied::Unknown => StatusCode::UNAUTHORIZED,
            AccessDenied::FromWebPage | AccessDenied::OtherHost(_) => StatusCode::FORBIDDEN,
        };
        Self::new(status, refusal.to_string(), false)
    }
}

impl From<StorageError> for AdminError {
    fn from(error: StorageError) -> Self {
        Self::failed(error.to_string())
    }
}

impl From<QueryRejection> for AdminError {
    fn from(rejection: QueryRejection) -> Self {
        Self::invalid(rejection.body_text())
    }
}

/// Reads a request's body, whatever its content type; nothing at all is `{}`.
pub(super) fn read<T: DeserializeOwned>(body: &[u8], example: &str) -> Result<T, AdminError> {
    let body = match body {
        [] => b"{}",
        body => body,
    };
    serde_json::from_slice(body)
        .map_err(|error| AdminError::invalid(format!("{error}. Send JSON like {example}")))
}
