//! Clients that send no key yet: where a route lets them through, their requests are forwarded unprotected, and nobody
//! overlooks it.

use crate::delivery_log;
use crate::gate::{Gate, RouteState};
use crate::headers;
use crate::settings::{KeyMissing, Route, Source};
use crate::upstream::Reply;
use http::HeaderMap;
use semel::key::Part;

/// Whether a request has none of the headers that its key is made of, and need not yet. A header that is there in
/// another spelling is there: some handlers take it for the same.
pub(crate) fn lacks_key(route: &Route, headers: &HeaderMap) -> bool {
    match route.key_missing {
        KeyMissing::Refuse => false,
        KeyMissing::Pass => {
            let mut named = header_parts(route).peekable();
            let has = |name: &str| headers.contains_key(name) || headers::has(headers, name);
            named.peek().is_some() && !named.any(has)
        }
    }
}

fn header_parts(route: &Route) -> impl Iterator<Item = &str> {
    let parts = route.terms(Source::Api).key.parts().iter();
    parts.filter_map(|part| match part {
        Part::Named(name) => name.strip_prefix("header:"),
        Part::Pointer(_) | Part::Form(_) | Part::Body => None,
    })
}

/// Writes down that a request was forwarded unprotected, and hands its reply on.
pub(crate) fn unprotected(gate: &Gate, route: &RouteState, reply: Reply) -> Reply {
    let name = &route.settings.name;
    gate.metrics.senders.unprotected(name);
    delivery_log::write_unprotected(name, reply.status());
    reply
}
