//! A gate that is its own handler would forward each request to itself until nothing is left.

use http::Uri;
use semel_gate::settings::Settings;
use std::net::{IpAddr, SocketAddr};

const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;

/// What is wrong with a handler's address that is one of the gate's own.
pub(crate) fn leads_to_gate(upstream: &Uri, settings: &Settings) -> Option<String> {
    let Settings {
        listen,
        admin,
        steps,
        ..
    } = settings;
    let listeners = [("listen", listen), ("admin", admin), ("steps", steps)];
    let (name, address) = listeners
        .into_iter()
        .find(|(_, address)| leads_to(upstream, **address))?;
    Some(format!(
        "`upstream` leads to the gate's own `{name}` {address}: name the handler's address, or give the gate another port"
    ))
}

fn leads_to(upstream: &Uri, listener: SocketAddr) -> bool {
    let default = match upstream.scheme_str() {
        Some("https") => HTTPS_PORT,
        Some(_) | None => HTTP_PORT,
    };
    let port = upstream.port_u16().unwrap_or(default);
    let host = upstream.host().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let here = listener.ip().is_unspecified() || listener.ip().is_loopback();
    let same = match host.parse::<IpAddr>() {
        Ok(ip) if ip.is_unspecified() => here,
        Ok(ip) => ip == listener.ip() || (ip.is_loopback() && listener.ip().is_unspecified()),
        Err(_) => host.eq_ignore_ascii_case("localhost") && here,
    };
    port == listener.port() && same
}
