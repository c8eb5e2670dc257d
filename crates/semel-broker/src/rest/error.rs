//! Refusals, as Google's front end words them: a status is a code, its name, a message and details.

use super::JSON;
use crate::proto;
use crate::status::cut;
use axum::response::{Html, IntoResponse, Response};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use prost::Message;
use serde::Serialize;
use serde_json::{Value, json};
use tonic::{Code, Status};

/// Why there is no answer.
#[derive(Debug)]
pub(crate) struct ErrorResponse {
    code: Code,
    message: String,
    details: Vec<Value>,
}

/// One mistake in a request.
#[derive(Debug)]
pub(crate) struct Violation {
    /// Where it is; empty for the request itself.
    pub(crate) field: String,
    pub(crate) description: String,
}

#[derive(Serialize)]
struct Body<'a> {
    error: ErrorBody<'a>,
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    code: u16,
    message: &'a str,
    status: &'static str,
    #[serde(skip_serializing_if = "<[Value]>::is_empty")]
    details: &'a [Value],
}

/// How much of a malformed body is shown before and after the mistake.
const CONTEXT_BYTES: usize = 20;

// === impl ErrorResponse ===

impl ErrorResponse {
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self {
            code: Code::InvalidArgument,
            message: message.into(),
            details: Vec::new(),
        }
    }

    /// All mistakes of a request together.
    pub(crate) fn violations(violations: &[Violation]) -> Self {
        let messages: Vec<_> = violations.iter().map(|it| &*it.description).collect();
        let message = messages.join("\n");
        let encoded = violations.iter().map(|it| {
            let (field, description) = (cut(&it.field), cut(&it.description));
            match field.is_empty() {
                true => json!({"description": description}),
                false => json!({"field": field, "description": description}),
            }
        });
        Self {
            details: vec![json!({
                "@type": "type.googleapis.com/google.rpc.BadRequest",
                "fieldViolations": encoded.collect::<Vec<_>>(),
            })],
            ..Self::invalid(message)
        }
    }

    /// A body that is not JSON; the message points at where it stops being so.
    pub(crate) fn malformed(body: &[u8], error: &serde_json::Error) -> Self {
        let lines = body.split_inclusive(|byte| *byte == b'\n');
        let before: usize = lines
            .take(error.line().saturating_sub(1))
            .map(<[u8]>::len)
            .sum();
        let at = (before + error.column().saturating_sub(1)).min(body.len());
        let from = at.saturating_sub(CONTEXT_BYTES);
        let to = (at + CONTEXT_BYTES).min(body.len());
        let shown = String::from_utf8_lossy(body.get(from..to).unwrap_or_default());
        let (what, at) = if error.is_eof() {
            ("Unexpected end of string.", to)
        } else {
            ("Unexpected token.", at)
        };
        Self::invalid(format!(
            "Invalid JSON payload received. {what}\n{shown}\n{:>width$}",
            "^",
            width = at - from + 1
        ))
    }

    pub(crate) fn response(&self) -> Response {
        let (status, name) = http_status(self.code);
        let body = Body {
            error: ErrorBody {
                code: status,
                message: &cut(&self.message),
                status: name,
                details: &self.details,
            },
        };
        let mut json = serde_json::to_vec_pretty(&body).expect("texts and numbers can be written");
        json.push(b'\n');
        let status = StatusCode::from_u16(status).expect("all of them are statuses");
        (status, [(CONTENT_TYPE, JSON)], json).into_response()
    }
}

impl From<Status> for ErrorResponse {
    fn from(status: Status) -> Self {
        Self {
            code: status.code(),
            details: details(status.details()),
            message: status.message().into(),
        }
    }
}

impl From<serde_json::Error> for ErrorResponse {
    /// An answer that cannot be written is a fault of ours.
    fn from(_: serde_json::Error) -> Self {
        Status::internal("Internal error encountered.").into()
    }
}

/// The details of a status: those whose types we know.
fn details(status: &[u8]) -> Vec<Value> {
    let status = proto::rpc::Status::decode(status).unwrap_or_default();
    let any = proto::descriptor("google.protobuf.Any");
    let details = status.details.iter();
    let encoded = details.map(|it| serde_json::to_value(proto::dynamic(any.clone(), it)));
    encoded.filter_map(Result::ok).collect()
}

/// What a page says that is not there: paths and methods no service has.
pub(crate) fn unmapped(path: &str) -> Response {
    let escaped = path
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let page = format!(
        "<!DOCTYPE html>\n<html lang=en>\n<meta charset=utf-8>\n<title>Error 404 (Not Found)</title>\n\
         <p><b>404.</b> The requested URL <code>{escaped}</code> was not found on this server.\n"
    );
    (StatusCode::NOT_FOUND, Html(page)).into_response()
}

/// HTTP's code, and the name.
fn http_status(code: Code) -> (u16, &'static str) {
    match code {
        Code::Ok => (200, "OK"),
        Code::Cancelled => (499, "CANCELLED"),
        Code::Unknown => (500, "UNKNOWN"),
        Code::InvalidArgument => (400, "INVALID_ARGUMENT"),
        Code::DeadlineExceeded => (504, "DEADLINE_EXCEEDED"),
        Code::NotFound => (404, "NOT_FOUND"),
        Code::AlreadyExists => (409, "ALREADY_EXISTS"),
        Code::PermissionDenied => (403, "PERMISSION_DENIED"),
        Code::ResourceExhausted => (429, "RESOURCE_EXHAUSTED"),
        Code::FailedPrecondition => (400, "FAILED_PRECONDITION"),
        Code::Aborted => (409, "ABORTED"),
        Code::OutOfRange => (400, "OUT_OF_RANGE"),
        Code::Unimplemented => (501, "UNIMPLEMENTED"),
        Code::Internal => (500, "INTERNAL"),
        Code::Unavailable => (503, "UNAVAILABLE"),
        Code::DataLoss => (500, "DATA_LOSS"),
        Code::Unauthenticated => (401, "UNAUTHENTICATED"),
    }
}
