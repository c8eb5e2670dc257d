//! A web page must not give a broker orders: its visitor's machine would carry them out.

use axum::response::{IntoResponse, Response};
use http::header::ORIGIN;
use http::{HeaderMap, StatusCode};

const SITE: &str = "sec-fetch-site";

/// Whether a browser sends this for a page, rather than for a person who typed the address.
pub(super) fn is_page(headers: &HeaderMap) -> bool {
    let site = headers.get(SITE);
    headers.contains_key(ORIGIN) || site.is_some_and(|it| it.as_bytes() != b"none")
}

pub(super) fn refused() -> Response {
    let why = "this comes from a web page: a broker takes orders from programs only\n";
    (StatusCode::FORBIDDEN, why).into_response()
}
