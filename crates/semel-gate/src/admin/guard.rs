//! Who may ask at the admin address. Everything but the two health checks and the page passes here; the page has a guard
//! of its own, which knows people.
//!
//! A web page in an operator's browser can send requests to a loopback address, under this name or
//! one that resolves to it: so `Host` is checked, and an act that a page asked for is refused, as is a look that a page of
//! another site asked for.

use crate::gate::Gate;
use crate::operate::Refused;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::ORIGIN;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use semel_ui::{Denied, Role, WAIT_SECONDS};
use std::net::SocketAddr;
use std::sync::Arc;

/// Answered to everybody who can reach the address: platforms ask without a token.
const OPEN: [&str; 2] = ["/healthz", "/readyz"];

/// Lets in whoever may come in, with its role as an extension of the request.
pub(crate) async fn guard(
    State(gate): State<Arc<Gate>>,
    mut request: Request,
    next: Next,
) -> Response {
    if OPEN.contains(&request.uri().path()) {
        return next.run(request).await;
    }
    match admit(&gate, &request) {
        Ok(role) => {
            request.extensions_mut().insert(role);
            next.run(request).await
        }
        Err(refused) => refused.into_response(),
    }
}

fn admit(gate: &Gate, request: &Request) -> Result<Role, Refused> {
    let (access, headers) = (&gate.access, request.headers());
    if access.hosts().loopback_only() && !access.hosts().admit(request.uri(), headers) {
        return Err(forbidden(
            "the Host of this request is not this address",
            "ask for 127.0.0.1 or localhost, or list the name in `admin_hosts`; nothing was done",
        ));
    }
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let peer = peer.map(|ConnectInfo(peer)| peer.ip());
    let role = access.bearer(headers, peer).map_err(denied)?;
    if [Method::GET, Method::HEAD].contains(request.method()) {
        return looks(headers).map(|()| role);
    }
    if from_a_page(headers) {
        return Err(forbidden(
            "a web page asked for this",
            "acts are for the `semel` command and programs, which send neither Origin nor \
             Sec-Fetch-Site; nothing was done",
        ));
    }
    match role {
        Role::Act => Ok(role),
        Role::View => Err(forbidden(
            "this token may look, not act",
            "show the gate's `admin_token`, not its `admin_view_token`; nothing was done",
        )),
    }
}

/// What a page of another site can have a browser ask, without a token: it could not read the answer, but hold streams
/// open and have the store searched.
fn looks(headers: &HeaderMap) -> Result<(), Refused> {
    let sites = headers.get_all("sec-fetch-site").iter();
    let is_elsewhere = sites.into_iter().any(|site| site == "cross-site");
    if !is_elsewhere || semel_ui::bearer(headers).is_some() {
        return Ok(());
    }
    Err(forbidden(
        "a page of another site asked for this",
        "open the address itself, or use the `semel` command; nothing was told",
    ))
}

fn denied(denied: Denied) -> Refused {
    match denied {
        Denied::Open => forbidden(
            "this admin address can be reached by others and asks for no token",
            "set `admin_token`, or let `admin` be a loopback address; nothing was done",
        ),
        Denied::TooMany => too_many(),
        Denied::Unknown => Refused::new(
            StatusCode::UNAUTHORIZED,
            "this admin address asks for its token",
            "send `Authorization: Bearer …` with the gate's `admin_token` (`semel … --token`, or \
             SEMEL_ADMIN_TOKEN); nothing was done",
        ),
    }
}

fn too_many() -> Refused {
    Refused::new(
        StatusCode::TOO_MANY_REQUESTS,
        "too many wrong tokens came from this address within a minute",
        format!(
            "show the gate's `admin_token` or `admin_view_token`, which is taken at any time, or wait {WAIT_SECONDS} \
             seconds; nothing was done"
        ),
    )
}

fn forbidden(error: &str, what_to_do: &str) -> Refused {
    Refused::new(StatusCode::FORBIDDEN, error, what_to_do)
}

fn from_a_page(headers: &HeaderMap) -> bool {
    let site = headers.get_all("sec-fetch-site").iter();
    let mut elsewhere = site.filter(|site| *site != "none" && *site != "same-origin");
    headers.contains_key(ORIGIN) || elsewhere.next().is_some()
}
