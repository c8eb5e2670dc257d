//! Volatile names: headers, attributes and claims that may differ between two deliveries of the same work. A key or a caller that
//! has one makes each repeat other work.

use semel::key::Part;
use semel_gate::settings::{Caller, Route, Source};

/// Headers that describe one attempt, or one request, and the reason why a repeat may have others.
const HEADERS: [(&[&str], &str); 4] = [
    (
        &[
            "x-cloudtasks-taskretrycount",
            "x-cloudtasks-taskexecutioncount",
            "x-cloudtasks-tasketa",
            "x-cloudtasks-taskpreviousresponse",
            "x-cloudtasks-taskretryreason",
            "x-appengine-taskretrycount",
            "x-appengine-taskexecutioncount",
            "x-appengine-tasketa",
            "x-appengine-taskpreviousresponse",
            "x-appengine-taskretryreason",
            "x-goog-pubsub-delivery-attempt",
            "ce-deliveryattempt",
        ],
        "each attempt has another one",
    ),
    (
        &[
            "traceparent",
            "tracestate",
            "baggage",
            "googclient-traceparent",
            "googclient-tracestate",
            "x-cloud-trace-context",
            "x-amzn-trace-id",
            "b3",
            "x-b3-traceid",
            "x-b3-spanid",
            "x-b3-parentspanid",
            "ce-traceparent",
            "ce-tracestate",
        ],
        "each request has its own trace",
    ),
    (
        &[
            "authorization",
            "x-serverless-authorization",
            "x-goog-iap-jwt-assertion",
            "x-forwarded-authorization",
            "cookie",
        ],
        "credentials are renewed",
    ),
    (
        &[
            "date",
            "age",
            "via",
            "forwarded",
            "x-forwarded-for",
            "x-real-ip",
        ],
        "each request has its own time and way",
    ),
];

/// Signatures that are a digest of the body alone.
const OF_BODY: [&str; 3] = [
    "x-hub-signature",
    "x-hub-signature-256",
    "x-shopify-hmac-sha256",
];

/// Attributes that Google's clients and a dead-letter topic set anew, by their beginnings, and those of a trace.
const ATTRIBUTES: [&str; 5] = [
    "googclient_",
    "CloudPubSubDeadLetterSource",
    "traceparent",
    "tracestate",
    "baggage",
];

/// Claims that differ from token to token of one holder.
pub(crate) const CLAIMS: [&str; 8] = [
    "jti",
    "exp",
    "iat",
    "nbf",
    "nonce",
    "auth_time",
    "at_hash",
    "c_hash",
];

/// Returns why a repeat may have another value in this header.
pub(crate) fn header(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase().replace('_', "-");
    let listed = HEADERS
        .iter()
        .find(|(names, _)| names.contains(&name.as_str()));
    let signs = ["signature", "signature-input"].contains(&name.as_str())
        || ["-signature", "-timestamp"]
            .iter()
            .any(|end| name.ends_with(end));
    listed.map(|(_, why)| *why).or_else(|| {
        (signs && !OF_BODY.contains(&name.as_str())).then_some("each delivery is signed anew")
    })
}

/// Returns the part of the key, or the caller, that a repeat of the same work may have another of, and why.
pub(crate) fn of_work(route: &Route, source: Source) -> Option<(String, &'static str)> {
    let parts = route.terms(source).key.parts().iter();
    let mut parts = parts.filter_map(|part| Some((part.to_string(), of_part(part)?)));
    let caller = || match &route.caller {
        Some(Caller::Header(name)) if source == Source::Api => {
            Some((format!("caller = \"header:{name}\""), header(name)?))
        }
        Some(Caller::Header(_) | Caller::Shared | Caller::Claim(_)) | None => None,
    };
    parts.next().or_else(caller)
}

fn of_part(part: &Part) -> Option<&'static str> {
    let name = match part {
        Part::Named(name) => name,
        Part::Pointer(_) | Part::Form(_) | Part::Body => return None,
    };
    let is_volatile = |name: &str| ATTRIBUTES.iter().any(|begin| name.starts_with(begin));
    match name.split_once(':') {
        Some(("header", name)) => header(name),
        Some(("attribute" | "ce", name)) if is_volatile(name) => {
            Some("it is set anew for a repeat of the same message")
        }
        Some(_) | None => None,
    }
}
