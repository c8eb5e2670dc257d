//! Headers that cross the gate, in both directions: less what belongs to one connection, less ours, and
//! less every other spelling of a name that somebody relies on.
//!
//! CGI-style servers (WSGI, FastCGI, PHP) know a header by a variable in which every character but
//! letters and digits is the same: to them `X_Caller` is `X-Caller`.

use crate::normalize::{METHOD_OVERRIDES, PATH_OVERRIDES};
use crate::reply::REPLAYED;
use crate::settings::{Caller, FingerprintRule, Route};
use http::header::{self, HeaderMap, HeaderName};
use semel::key::Part;
use std::borrow::Cow;

/// Headers that belong to one connection, or to how a body was framed on it.
const HOP_BY_HOP: [&str; 11] = [
    "connection",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "expect",
    "content-length",
    "keep-alive",
    "proxy-connection",
];

/// Headers that no sender may declare to belong to one connection: something behind relies on them.
const FOR_THE_FAR_END: [&str; 10] = [
    "authorization",
    "cookie",
    "forwarded",
    "host",
    "idempotency-key",
    "origin",
    "semel",
    "traceparent",
    "tracestate",
    PLATFORM_TOKEN,
];
const FOR_THE_FAR_END_PREFIXES: [&str; 7] = [
    "ce-",
    "content-",
    "semel-",
    "x-appengine-",
    "x-cloudtasks-",
    "x-forwarded-",
    "x-goog-",
];

/// What the gate sets for the handler and clients may send, too; `Semel-` is stripped as a whole.
pub(crate) const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// A second token, which Cloud Run checks *in place of* `Authorization`. It says nothing to a handler.
const PLATFORM_TOKEN: &str = "x-serverless-authorization";

/// The headers that a gate's routes rely on.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeaderRules {
    /// They tell callers apart, and something trusted in front sets them.
    callers: Vec<String>,
    /// They enter keys and fingerprints.
    named: Vec<String>,
}

// === impl HeaderRules ===

impl HeaderRules {
    pub(crate) fn of(routes: &[Route]) -> Self {
        let callers = routes.iter().filter_map(|route| match &route.caller {
            Some(Caller::Header(name)) => Some(name.clone()),
            Some(Caller::Shared | Caller::Claim(_)) | None => None,
        });
        Self {
            callers: callers.collect(),
            named: routes.iter().flat_map(named).collect(),
        }
    }

    /// What a request's handler gets.
    pub(crate) fn toward_handler(&self, headers: &HeaderMap) -> HeaderMap {
        let mut kept = end_to_end(headers);
        let respelled: Vec<_> = kept
            .keys()
            .filter(|name| self.is_respelled(name.as_str(), headers))
            .cloned()
            .collect();
        for name in respelled {
            kept.remove(name);
        }
        kept
    }

    /// Whether a header has another spelling of a name that counts: one that a route names, one that the
    /// gate sets or drops, or one that is in the same request.
    fn is_respelled(&self, name: &str, headers: &HeaderMap) -> bool {
        if self.names().any(|known| known == name) {
            return false;
        }
        let variable = variable(name);
        let other = *variable != *name;
        self.names()
            .any(|known| *variable == *self::variable(known))
            || (other
                && (*variable == *IDEMPOTENCY_KEY
                    || HOP_BY_HOP.contains(&&*variable)
                    || headers.contains_key(&*variable)))
    }

    fn names(&self) -> impl Iterator<Item = &String> {
        self.callers.iter().chain(&self.named)
    }

    /// The header that `Connection` declares to be nobody else's business although it is.
    pub(crate) fn misdeclared(&self, headers: &HeaderMap) -> Option<HeaderName> {
        let mut listed = named_by_connection(headers).into_iter();
        listed.find(|name| self.counts(name))
    }

    /// Whether somebody behind relies on a header.
    fn counts(&self, name: &HeaderName) -> bool {
        let variable = variable(name.as_str());
        let is = |known: &String| *variable == *self::variable(known);
        FOR_THE_FAR_END.contains(&&*variable)
            || FOR_THE_FAR_END_PREFIXES
                .iter()
                .any(|prefix| variable.starts_with(prefix))
            || self.names().any(is)
    }

    /// What a request's handler gets of its trailers. Some handlers take them for headers, so none has a
    /// name that counts: nobody looked at it when the request was judged.
    pub(crate) fn trailers_toward_handler(&self, trailers: &HeaderMap) -> HeaderMap {
        let mut kept = HeaderMap::new();
        for (name, value) in &end_to_end(trailers) {
            if !self.counts(name) && !is_override(name) {
                kept.append(name.clone(), value.clone());
            }
        }
        kept
    }
}

/// What comes back of the headers or trailers of an answer that is passed. Whether it is a replay is for
/// the gate to say.
pub(crate) fn toward_client(headers: &HeaderMap) -> HeaderMap {
    let mut kept = end_to_end(headers);
    kept.remove(REPLAYED);
    kept
}

/// Takes away the token that is for the platform, in whatever spelling; whether there was one.
pub(crate) fn remove_platform_token(headers: &mut HeaderMap) -> bool {
    let is_it = |name: &&HeaderName| *variable(name.as_str()) == *PLATFORM_TOKEN;
    let names: Vec<_> = headers.keys().filter(is_it).cloned().collect();
    for name in &names {
        headers.remove(name);
    }
    !names.is_empty()
}

fn is_override(name: &HeaderName) -> bool {
    let variable = variable(name.as_str());
    METHOD_OVERRIDES
        .iter()
        .chain(&PATH_OVERRIDES)
        .any(|known| *variable == **known)
}

/// The headers that a route's keys and fingerprints are made of.
fn named(route: &Route) -> Vec<String> {
    let parts = route.terms.iter().flat_map(|terms| terms.key.parts());
    let in_keys = parts.filter_map(|part| match part {
        Part::Named(name) => Some(name),
        Part::Pointer(_) | Part::Form(_) | Part::Body => None,
    });
    let beside = match &route.fingerprint {
        FingerprintRule::With(names) => names.as_slice(),
        FingerprintRule::Full | FingerprintRule::Payload | FingerprintRule::Off => &[],
    };
    in_keys
        .chain(beside)
        .filter_map(|name| name.strip_prefix("header:").map(str::to_owned))
        .collect()
}

/// Whether a header is there, in whatever spelling; `name` has dashes.
pub(crate) fn has(headers: &HeaderMap, name: &str) -> bool {
    headers
        .keys()
        .any(|other| *variable(other.as_str()) == *name)
}

/// The headers of a message that are meant for its far end; ours are set by nobody but us.
pub(crate) fn end_to_end(headers: &HeaderMap) -> HeaderMap {
    let listed = named_by_connection(headers);
    let mut kept = HeaderMap::with_capacity(headers.len() + 8);
    for (name, value) in headers {
        let dropped = HOP_BY_HOP.contains(&name.as_str()) || is_ours(name) || listed.contains(name);
        if !dropped {
            kept.append(name.clone(), value.clone());
        }
    }
    kept
}

fn is_ours(name: &HeaderName) -> bool {
    let variable = variable(name.as_str());
    *variable == *"semel" || variable.starts_with("semel-")
}

/// What CGI-style servers make of a name, written with dashes.
fn variable(name: &str) -> Cow<'_, str> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if name.bytes().all(plain) {
        return Cow::Borrowed(name);
    }
    let dashed = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    Cow::Owned(name.chars().map(dashed).collect())
}

/// `Connection: close, X-Secret` makes `X-Secret` hop-by-hop, too.
fn named_by_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    headers
        .get_all(header::CONNECTION)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn map(headers: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            );
        }
        map
    }

    fn names(headers: &HeaderMap) -> Vec<&str> {
        let mut names: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        names
    }

    fn header_rules() -> HeaderRules {
        HeaderRules {
            callers: vec!["x-caller".into()],
            named: vec!["x-order-id".into()],
        }
    }

    #[test]
    fn only_what_is_meant_for_the_far_end_crosses() {
        let headers = map(&[
            ("connection", "close, X-Secret"),
            ("x-secret", "1"),
            ("transfer-encoding", "chunked"),
            ("content-length", "3"),
            ("semel-fence", "99"),
            ("semel_key", "99"),
            ("semel.steps", "99"),
            ("semel", "99"),
            ("upgrade", "h2c"),
            ("x-order", "7"),
            ("x-order", "8"),
            ("authorization", "Bearer t"),
        ]);
        let kept = end_to_end(&headers);
        assert_eq!(names(&kept), ["authorization", "x-order"]);
        assert_eq!(kept.get_all("x-order").iter().count(), 2);
    }

    #[test]
    fn other_spellings_of_what_counts_do_not_reach_the_handler() {
        let headers = map(&[
            ("x-caller", "alice"),
            ("x_caller", "mallory"),
            ("x.caller", "mallory"),
            ("x_order_id", "7"),
            ("idempotency_key", "1"),
            ("transfer_encoding", "chunked"),
            ("x-cloudtasks-taskname", "t"),
            ("x_cloudtasks_taskname", "forged"),
            ("googclient_traceparent", "kept: nothing else has this name"),
        ]);
        let kept = header_rules().toward_handler(&headers);
        assert_eq!(
            names(&kept),
            [
                "googclient_traceparent",
                "x-caller",
                "x-cloudtasks-taskname"
            ]
        );
        let underscored = HeaderRules {
            callers: vec!["x_caller".into()],
            named: Vec::new(),
        };
        let kept =
            underscored.toward_handler(&map(&[("x-caller", "mallory"), ("x_caller", "alice")]));
        assert_eq!(names(&kept), ["x_caller"]);
    }

    #[test]
    fn connection_may_not_name_what_somebody_relies_on() {
        for listed in [
            "X-Caller",
            "close, authorization",
            "keep-alive,IDEMPOTENCY-KEY",
            "Semel-Fence",
            "semel_key",
            "X-Order-Id",
            "X-CloudTasks-TaskName",
            "ce-id",
            "Host",
            "Content-Type",
            "x_caller",
        ] {
            let headers = map(&[("connection", listed)]);
            assert!(header_rules().misdeclared(&headers).is_some(), "{listed}");
        }
        for listed in [
            "close",
            "keep-alive, Upgrade, HTTP2-Settings",
            "TE",
            "X-Secret",
            "",
        ] {
            let headers = map(&[("connection", listed)]);
            assert_eq!(header_rules().misdeclared(&headers), None, "{listed}");
        }
    }
}
