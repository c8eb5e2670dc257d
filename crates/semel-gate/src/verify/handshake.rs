//! The handshake of CloudEvents webhooks: a sender asks with OPTIONS whether it may deliver, and is told so if the
//! route names its origin. It says nothing of who delivers later: that is what `verify` is for.

use crate::gate::{Gate, RouteMatch};
use crate::path::ParsedPath;
use crate::refusal;
use crate::settings::Source;
use bytes::Bytes;
use http::header::{ALLOW, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Response};

const REQUEST_ORIGIN: &str = "webhook-request-origin";
const REQUEST_RATE: &str = "webhook-request-rate";
const ALLOWED_ORIGIN: HeaderName = HeaderName::from_static("webhook-allowed-origin");
const ALLOWED_RATE: HeaderName = HeaderName::from_static("webhook-allowed-rate");

/// The answer to a handshake; none when the request is not one that a route of CloudEvents gets. A URL to call back
/// (`WebHook-Request-Callback`) is never called: it could lead anywhere.
pub(crate) fn answer(
    gate: &Gate,
    method: &Method,
    path: &ParsedPath,
    headers: &HeaderMap,
) -> Option<Response<Bytes>> {
    if *method != Method::OPTIONS || !headers.contains_key(REQUEST_ORIGIN) {
        return None;
    }
    // It asks about deliveries, which are posted.
    let route = match gate.find_route(&Method::POST, path) {
        RouteMatch::Protected(route) => &route.settings,
        RouteMatch::Pass(_)
        | RouteMatch::OtherMethod
        | RouteMatch::Unknown
        | RouteMatch::Ambiguous(_) => return None,
    };
    if !route.sources.contains(&Source::CloudEvents) {
        return None;
    }
    let mut origins = headers.get_all(REQUEST_ORIGIN).iter();
    let named = |origin: &&HeaderValue| route.webhook_origins.iter().any(|known| *origin == known);
    match (origins.next().filter(named), origins.next()) {
        (Some(origin), None) => Some(allowed(origin, headers)),
        (Some(_) | None, _) => {
            tracing::warn!(
                route = route.name,
                "a webhook's handshake was refused: its origin is not in `webhook_origins`"
            );
            Some(refusal::WEBHOOK_ORIGIN.reply())
        }
    }
}

fn allowed(origin: &HeaderValue, headers: &HeaderMap) -> Response<Bytes> {
    let mut answer = Response::new(Bytes::new());
    let reply = answer.headers_mut();
    reply.insert(ALLOWED_ORIGIN, origin.clone());
    reply.insert(ALLOW, HeaderValue::from_static("POST"));
    // The gate's own limits answer 429 when they are reached; no rate is promised.
    if headers.contains_key(REQUEST_RATE) {
        reply.insert(ALLOWED_RATE, HeaderValue::from_static("*"));
    }
    answer
}
