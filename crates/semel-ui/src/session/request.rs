//! What a browser says of its request.

use super::Hosts;
use axum::extract::{ConnectInfo, Request};
use http::header::{HOST, HeaderMap, ORIGIN};
use http::uri::Authority;
use std::net::{IpAddr, SocketAddr};

/// Whether the page itself sends this. Browsers say so, and no page can make them lie: in `Sec-Fetch-Site` where the
/// connection is safe, in `Origin` always. Who says neither is no page.
pub(super) fn is_same_origin(headers: &HeaderMap, hosts: &Hosts) -> bool {
    if let Some(site) = headers.get("sec-fetch-site") {
        return site == "same-origin";
    }
    let Some(origin) = origin(headers) else {
        return false;
    };
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    // Behind a proxy our own name may be another than the one that the browser knows.
    host.is_some_and(|host| host.eq_ignore_ascii_case(origin.as_str())) || hosts.is_listed(&origin)
}

/// Whether the browser speaks TLS, with whoever is in front of us.
pub(super) fn is_https(headers: &HeaderMap) -> bool {
    let says = |name: &str, word: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.is_some_and(|value| value.trim_start().to_ascii_lowercase().starts_with(word))
    };
    says("origin", "https://") || says("x-forwarded-proto", "https")
}

pub(super) fn peer(request: &Request) -> Option<IpAddr> {
    let info = request.extensions().get::<ConnectInfo<SocketAddr>>();
    info.map(|ConnectInfo(peer)| peer.ip())
}

fn origin(headers: &HeaderMap) -> Option<Authority> {
    let origin = headers.get(ORIGIN)?.to_str().ok()?;
    let authority = origin
        .strip_prefix("http://")
        .or_else(|| origin.strip_prefix("https://"))?;
    authority.parse().ok()
}
