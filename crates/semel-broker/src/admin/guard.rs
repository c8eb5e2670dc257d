//! Who may use the admin API: nobody's web page, and, if a token was set, only who knows it.

use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::{HeaderMap, Uri};
use sha2::{Digest, Sha256};
use std::fmt;
use std::net::IpAddr;

/// Looks at who asks.
#[derive(Clone, Default)]
pub(crate) struct Guard {
    /// The digest of what has to be shown.
    token: Option<[u8; 32]>,
    /// Only this machine is served, so only its names may be used: a page whose own name suddenly
    /// leads here is turned away.
    loopback_only: bool,
}

/// Why somebody is turned away.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AccessDenied {
    #[error(
        "this request comes from a web page (it has an Origin): ask from a program, such as curl"
    )]
    FromWebPage,
    #[error("{0:?} is not a name of this machine: call it localhost or 127.0.0.1")]
    OtherHost(String),
    #[error("send the broker's token: Authorization: Bearer TOKEN")]
    Unknown,
}

// === impl Guard ===

impl Guard {
    /// `token` has to be shown by everybody if there is one; `loopback_only` when nobody else can
    /// connect.
    pub(crate) fn new(token: Option<&str>, loopback_only: bool) -> Self {
        Self {
            // An empty one is one that was not set: nobody could show it.
            token: token
                .filter(|it| !it.is_empty())
                .map(|it| Sha256::digest(it).into()),
            loopback_only,
        }
    }

    pub(crate) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), AccessDenied> {
        if headers.contains_key(ORIGIN) {
            return Err(AccessDenied::FromWebPage);
        }
        let host = host(uri, headers);
        if self.loopback_only && !is_this_machine(&host) {
            return Err(AccessDenied::OtherHost(host));
        }
        match self.token {
            Some(token) if !has_token(headers, &token) => Err(AccessDenied::Unknown),
            Some(_) | None => Ok(()),
        }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("token", &self.token.is_some())
            .field("loopback_only", &self.loopback_only)
            .finish()
    }
}

/// Whom the caller wanted to reach: HTTP/2 says so in the address, HTTP/1 in a header.
pub(crate) fn host(uri: &Uri, headers: &HeaderMap) -> String {
    let in_address = uri.authority().map(http::uri::Authority::as_str);
    let in_header = headers.get(HOST).and_then(|it| it.to_str().ok());
    in_address.or(in_header).unwrap_or_default().to_owned()
}

/// Whether this is a name of this machine, on every machine.
pub(crate) fn is_this_machine(authority: &str) -> bool {
    let Ok(authority) = authority.parse::<http::uri::Authority>() else {
        return false;
    };
    let host = authority.host().trim_end_matches('.').to_ascii_lowercase();
    let literal = host.trim_start_matches('[').trim_end_matches(']');
    match literal.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

/// Compares digests to the last byte: how long it takes tells nothing about the token.
fn has_token(headers: &HeaderMap, token: &[u8; 32]) -> bool {
    let shown = headers.get(AUTHORIZATION).map(http::HeaderValue::as_bytes);
    let Some((scheme, shown)) = shown.and_then(|it| it.split_at_checked(b"Bearer ".len())) else {
        return false;
    };
    let shown = Sha256::digest(shown);
    let differences = shown.iter().zip(token).fold(0, |sum, (a, b)| sum | (a ^ b));
    scheme.eq_ignore_ascii_case(b"Bearer ") && differences == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(guard: &Guard, headers: &[(&'static str, &str)]) -> Result<(), AccessDenied> {
        let pairs = headers
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        guard.check(&Uri::from_static("/_semel/"), &pairs.collect())
    }

    #[test]
    fn web_pages_are_turned_away() {
        for origin in ["http://localhost:3000", "https://evil.example", "null"] {
            let checked = check(&Guard::default(), &[("origin", origin)]);
            assert_eq!(checked, Err(AccessDenied::FromWebPage));
        }
    }

    #[test]
    fn on_loopback_only_its_names_are_answered() {
        let guard = Guard::new(None, true);
        for host in [
            "localhost",
            "LOCALHOST:8123",
            "localhost.:1",
            "broker.localhost:8123",
            "127.0.0.1:8123",
            "127.8.9.1",
            "[::1]:8123",
            "[::ffff:127.0.0.1]",
        ] {
            assert_eq!(check(&guard, &[("host", host)]), Ok(()), "{host}");
        }
        for host in [
            "evil.example:8123",
            "localhost.evil.example",
            "notlocalhost",
            "127.0.0.1.evil.example",
            "evil@10.0.0.1",
            "10.0.0.1",
            "0.0.0.0",
            "",
            "a b",
        ] {
            let refused = Err(AccessDenied::OtherHost(host.into()));
            assert_eq!(check(&guard, &[("host", host)]), refused);
        }
        assert_eq!(
            check(&guard, &[]),
            Err(AccessDenied::OtherHost(String::new()))
        );
        let everywhere = Guard::new(None, false);
        assert_eq!(check(&everywhere, &[("host", "broker.example")]), Ok(()));
    }

    #[test]
    fn http2_names_the_host_in_the_address() {
        let guard = Guard::new(None, true);
        let check = |uri| guard.check(&Uri::from_static(uri), &HeaderMap::new());
        assert_eq!(check("http://localhost:1/_semel/"), Ok(()));
        assert!(check("http://evil.example:1/_semel/").is_err());
    }

    #[test]
    fn a_token_has_to_be_shown_whole() {
        let guard = Guard::new(Some("s3cret"), false);
        assert!(!format!("{guard:?}").contains("s3cret"));
        for shown in ["Bearer s3cret", "bearer s3cret"] {
            assert_eq!(check(&guard, &[("authorization", shown)]), Ok(()));
        }
        for shown in [
            "",
            "s3cret",
            "Bearer",
            "Bearer ",
            "Bearer s3cre",
            "Basic s3cret",
        ] {
            let checked = check(&guard, &[("authorization", shown)]);
            assert_eq!(checked, Err(AccessDenied::Unknown), "{shown}");
        }
        assert_eq!(check(&guard, &[]), Err(AccessDenied::Unknown));
    }

    #[test]
    fn an_empty_token_is_none() {
        assert_eq!(check(&Guard::new(Some(""), false), &[]), Ok(()));
    }
}
