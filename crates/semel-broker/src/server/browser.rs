//! A web page must not give a broker orders: its visitor's machine would carry them out.

use crate::admin::{host, is_this_machine};
use crate::settings::HOSTS_OF_CONTAINERS;
use axum::response::{IntoResponse, Response};
use http::header::ORIGIN;
use http::{HeaderMap, Method, Request, StatusCode};

const SITE: &str = "sec-fetch-site";

/// Why a request is not taken, if it is not. Who serves this machine only knows what it can be called.
pub(super) fn refused<B>(request: &Request<B>, loopback_only: bool) -> Option<Response> {
    if is_own_page(request.uri().path()) {
        return None;
    }
    let why = if is_page(request.headers()) {
        "this comes from a web page: a broker takes orders from programs only\n"
    } else if loopback_only && is_astray(request) {
        "this is not a name of this machine: call it localhost or 127.0.0.1\n"
    } else {
        return None;
    };
    Some((StatusCode::FORBIDDEN, why).into_response())
}

/// Our own page has a guard that knows whose requests are its own.
fn is_own_page(path: &str) -> bool {
    path == "/ui" || path.starts_with("/ui/")
}

/// Whether a browser sends this for a page, rather than for a person who typed the address.
fn is_page(headers: &HeaderMap) -> bool {
    let site = headers.get(SITE);
    headers.contains_key(ORIGIN) || site.is_some_and(|it| it.as_bytes() != b"none")
}

/// Whether this may come from a page whose own name suddenly leads here. When such a page only reads, nothing but the
/// name it calls us by gives it away.
fn is_astray<B>(request: &Request<B>) -> bool {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let called = host(request.uri(), request.headers());
    let name = called.rsplit_once(':').map_or(&*called, |(name, _)| name);
    let is_known = called.is_empty() || HOSTS_OF_CONTAINERS.contains(&name);
    reads && !is_known && !is_this_machine(&called)
}
