//! Who may ask at the admin address. Everything but the two health checks passes here.
//!
//! A web page in an operator's browser can send requests to a loopback address, under this name or
//! one that resolves to it: so `Host` is checked, and an act that a page asked for is refused.

use crate::gate::Gate;
use crate::operate::Refused;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use semel::Fingerprint;
use std::hint::black_box;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Answered to everybody who can reach the address: platforms ask without a token.
const OPEN: [&str; 2] = ["/healthz", "/readyz"];

pub(crate) async fn guard(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    if OPEN.contains(&request.uri().path()) {
        return next.run(request).await;
    }
    match admit(&gate, &request) {
        Ok(()) => next.run(request).await,
        Err(refused) => refused.into_response(),
    }
}

fn admit(gate: &Gate, request: &Request) -> Result<(), Refused> {
    let (listens, headers) = (gate.settings.admin, request.headers());
    if listens.ip().is_loopback() && !is_here(listens, request) {
        return Err(forbidden(
            "the Host of this request is not this address",
            "ask for 127.0.0.1 or localhost; nothing was done",
        ));
    }
    match &gate.settings.admin_token {
        Some(token) => shown(headers, &token.0)?,
        None if listens.ip().is_loopback() => {}
        None => {
            return Err(forbidden(
                "this admin address can be reached by others and asks for no token",
                "set `admin_token`, or let `admin` be a loopback address; nothing was done",
            ));
        }
    }
    let looks = [Method::GET, Method::HEAD].contains(request.method());
    if !looks && from_a_page(headers) {
        return Err(forbidden(
            "a web page asked for this",
            "acts are for the `semel` command and programs, which send neither Origin nor \
             Sec-Fetch-Site; nothing was done",
        ));
    }
    Ok(())
}

fn forbidden(error: &str, what_to_do: &str) -> Refused {
    Refused::new(StatusCode::FORBIDDEN, error, what_to_do)
}

/// Whether the request names a loopback address or the one we listen on.
fn is_here(listens: SocketAddr, request: &Request) -> bool {
    let host = match request.headers().get(HOST) {
        Some(host) => host.to_str().ok().and_then(|host| host.parse().ok()),
        None => request.uri().authority().cloned(),
    };
    let Some(host) = host.as_ref().map(Authority::host) else {
        return false;
    };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || bare
            .parse::<IpAddr>()
            .is_ok_and(|ip| ip.is_loopback() || ip == listens.ip())
}

fn shown(headers: &HeaderMap, token: &str) -> Result<(), Refused> {
    let given = headers
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    match given {
        Some(given) if is_same(given, token) => Ok(()),
        Some(_) | None => Err(Refused::new(
            StatusCode::UNAUTHORIZED,
            "this admin address asks for its token",
            "send `Authorization: Bearer …` with the gate's `admin_token` (`semel … --token`, or \
             SEMEL_ADMIN_TOKEN); nothing was done",
        )),
    }
}

/// Compares digests, all of their bytes: how long it takes says nothing of the token.
fn is_same(given: &str, token: &str) -> bool {
    let (given, token) = (
        Fingerprint::of(given.as_bytes()),
        Fingerprint::of(token.as_bytes()),
    );
    let pairs = given.as_bytes().iter().zip(token.as_bytes());
    black_box(pairs.fold(0, |differs, (a, b)| differs | (a ^ b))) == 0
}

fn from_a_page(headers: &HeaderMap) -> bool {
    let site = headers.get_all("sec-fetch-site").iter();
    let mut elsewhere = site.filter(|site| *site != "none" && *site != "same-origin");
    headers.contains_key(ORIGIN) || elsewhere.next().is_some()
}
