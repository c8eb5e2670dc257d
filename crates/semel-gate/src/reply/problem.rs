//! Problems (RFC 9457): what went wrong, for whoever can act on it. They say nothing of any other
//! request.

use bytes::Bytes;
use http::StatusCode;
use serde_json::json;

/// A problem, with its place in `docs/errors.md`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    title: &'static str,
    detail: String,
}

impl Problem {
    pub(crate) const CONTENT_TYPE: &'static str = "application/problem+json";

    pub(crate) fn new(
        status: StatusCode,
        code: &'static str,
        title: &'static str,
        detail: impl Into<String>,
    ) -> Self {
        Self {
            status,
            code,
            title,
            detail: detail.into(),
        }
    }

    pub(crate) fn body(&self) -> Bytes {
        let body = json!({
            "type": format!("docs/errors.md#{}", self.code),
            "title": self.title,
            "status": self.status.as_u16(),
            "detail": self.detail,
        });
        Bytes::from(body.to_string())
    }
}
