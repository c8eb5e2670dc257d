//! By which names we may be called. A web page's own name can be made to resolve to this address; then the browser
//! takes us for that page's server, and only the name gives it away.

use http::header::HOST;
use http::uri::Authority;
use http::{HeaderMap, Uri};
use std::net::IpAddr;

/// By which names we may be called: those of loopback, the address that we listen on, and those that were listed.
#[derive(Clone, Debug)]
pub struct Hosts {
    listens: IpAddr,
    names: Vec<String>,
}

// === impl Hosts ===

impl Hosts {
    /// For whoever listens there, and is also called these names.
    #[must_use]
    pub fn new(listens: IpAddr, names: &[String]) -> Self {
        Self {
            listens: listens.to_canonical(),
            names: names.iter().map(|name| plain(name)).collect(),
        }
    }

    /// Whether only this machine can reach us.
    #[must_use]
    pub fn loopback_only(&self) -> bool {
        self.listens.is_loopback()
    }

    /// Whether every name that a request calls us by is ours. HTTP/2 says it in the address, HTTP/1 in a header.
    #[must_use]
    pub fn admit(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let in_header = headers.get_all(HOST).iter();
        let in_header = in_header.map(|host| host.to_str().ok().and_then(|host| host.parse().ok()));
        let mut called = uri
            .authority()
            .cloned()
            .map(Some)
            .into_iter()
            .chain(in_header)
            .peekable();
        called.peek().is_some() && called.all(|it| it.is_some_and(|it| self.has(&it)))
    }

    /// Whether this is a name that was listed.
    #[must_use]
    pub fn is_listed(&self, called: &Authority) -> bool {
        !called.as_str().contains('@') && self.names.contains(&plain(called.host()))
    }

    /// Whether this is one of our names, whatever the port.
    #[must_use]
    pub fn has(&self, called: &Authority) -> bool {
        let host = plain(called.host());
        if self.names.contains(&host) || host == "localhost" || host.ends_with(".localhost") {
            return !called.as_str().contains('@');
        }
        let literal = host.trim_start_matches('[').trim_end_matches(']');
        let Ok(address) = literal.parse::<IpAddr>() else {
            return false;
        };
        let address = address.to_canonical();
        // No name resolves to another address's literal: where others reach us, any literal is somebody who typed it.
        !called.as_str().contains('@')
            && (address.is_loopback() || address == self.listens || !self.loopback_only())
    }
}

fn plain(host: &str) -> String {
    host.trim_end_matches('.').to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(listens: &str) -> Hosts {
        Hosts::new(listens.parse().unwrap(), &["Ops.example".into()])
    }

    fn admits(hosts: &Hosts, uri: &'static str, host: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        if let Some(host) = host {
            headers.insert(HOST, host.parse().unwrap());
        }
        hosts.admit(&Uri::from_static(uri), &headers)
    }

    #[test]
    fn on_loopback_only_its_names_and_the_listed_ones_are_ours() {
        let hosts = hosts("127.0.0.1");
        let ours = "localhost LOCALHOST:8 localhost. gate.localhost:8 127.0.0.1:8 127.8.9.1 [::1]:8 \
                    [::ffff:127.0.0.1] ops.example OPS.example:443 ops.example.";
        for host in ours.split_whitespace() {
            assert!(admits(&hosts, "/", Some(host)), "{host}");
        }
        let others = "evil.example localhost.evil.example notlocalhost 127.0.0.1.evil.example 10.0.0.1 0.0.0.0 \
                      evil@localhost evil@127.0.0.1 x.ops.example";
        for host in others.split_whitespace().chain(["", "a b"]) {
            assert!(!admits(&hosts, "/", Some(host)), "{host}");
        }
        assert!(!admits(&hosts, "/", None));
    }

    #[test]
    fn where_others_reach_us_addresses_are_names_too() {
        let hosts = hosts("0.0.0.0");
        assert!(
            admits(&hosts, "/", Some("10.1.2.3:9")) && admits(&hosts, "/", Some("ops.example"))
        );
        assert!(!admits(&hosts, "/", Some("evil.example")));
    }

    #[test]
    fn the_address_of_a_request_counts_as_its_header_does() {
        let hosts = hosts("127.0.0.1");
        assert!(admits(&hosts, "http://localhost:1/ui", None));
        assert!(!admits(&hosts, "http://evil.example/ui", None));
        assert!(!admits(&hosts, "http://evil.example/ui", Some("localhost")));
        assert!(!admits(&hosts, "http://localhost/ui", Some("evil.example")));
    }
}
