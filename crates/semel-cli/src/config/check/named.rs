//! Headers that can name neither a caller nor work.

use super::{Judgement, Verdict};
use semel::key::Part;
use semel_gate::settings::{Caller, Route, Source};

/// They belong to one connection, or to how a body was framed on it: a repeat may have others.
const OF_ONE_CONNECTION: [&str; 11] = [
    "connection",
    "content-length",
    "expect",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A caller that is none.
pub(super) fn caller(route: &Route) -> Judgement {
    let name = match &route.caller {
        Some(Caller::Header(name)) => name,
        Some(Caller::Shared | Caller::Claim(_)) | None => return None,
    };
    if name == "idempotency-key" {
        let says = "caller = \"header:idempotency-key\" tells no callers apart: whoever guesses a key would receive \
                    another's stored answer; name a header that something trusted in front sets";
        return Some((Verdict::Broken, says.into()));
    }
    let why = trouble(name)?;
    let says = format!("caller = \"header:{name}\" tells no callers apart: {why}");
    Some((Verdict::Broken, says))
}

/// A part of a key that names no work.
pub(super) fn key(route: &Route, source: Source) -> Judgement {
    let parts = route.terms(source).key.parts().iter();
    let mut headers = parts.filter_map(|part| match part {
        Part::Named(name) => name.strip_prefix("header:"),
        Part::Pointer(_) | Part::Form(_) | Part::Body => None,
    });
    headers.find_map(|name| {
        let says = format!("header:{name} cannot be part of a key: {}", trouble(name)?);
        Some((Verdict::Broken, says))
    })
}

fn trouble(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase().replace('_', "-");
    if OF_ONE_CONNECTION.contains(&name.as_str()) {
        Some("it belongs to one connection, and a repeat may have another")
    } else if name == "semel" || name.starts_with("semel-") {
        Some("Semel-* headers are the gate's own, set for handlers and taken from nobody")
    } else {
        None
    }
}
