//! What a repeat of a key is compared by: all that makes it other work, and nothing that changes between
//! two deliveries of one piece of work. Pure functions, for any front end; `naming` calls them.

use crate::delivery::{Delivery, Invalid, path_and_query, single_header};
use crate::label::{Digest, Digests};
use crate::settings::{FingerprintRule, Route, Source};
use crate::source;
use bytes::Bytes;
use http::Request;
use http::header::CONTENT_TYPE;
use semel::fingerprint::Pieces;
use semel::payload::is_json;
use semel::{Fingerprint, Payload};

/// Attributes that Google's clients, a dead-letter topic and tracing set anew for a repeat of the same
/// message. A star at the end stands for any rest.
const NEVER_COMPARED: [&str; 5] = [
    "googclient_*",
    "CloudPubSubDeadLetterSource*",
    "traceparent",
    "tracestate",
    "baggage",
];

/// The context attributes that say what an event is about. Others, `time` and `id` among them, may be
/// new when its sender repeats it.
const OF_EVENT: [&str; 3] = ["type", "subject", "dataschema"];

/// How a payload is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// As a JSON value, if it can be read as one.
    AsValue,
    /// As its bytes.
    AsBytes,
    /// Not at all: every repeat is honest.
    NotAtAll,
}

/// The fingerprint of a delivery whose payload was read if it is [compared] as a value.
///
/// # Errors
/// When a value that the route names beside the payload is there twice, or is not text.
pub fn fingerprint(
    route: &Route,
    request: &Request<Bytes>,
    delivery: &Delivery,
    payload: &Payload<'_>,
) -> Result<Fingerprint, Invalid> {
    let pieces = match &route.fingerprint {
        FingerprintRule::Full => around(route, request, delivery),
        FingerprintRule::With(names) => {
            beside(around(route, request, delivery), names, request, delivery)?
        }
        FingerprintRule::Payload | FingerprintRule::Off => Pieces::new(),
    };
    Ok(match compared(route, request, delivery) {
        Compared::AsValue => pieces.payload(payload),
        Compared::AsBytes => pieces.bytes(payload.bytes()),
        Compared::NotAtAll => Fingerprint::off(),
    })
}

/// How the payload of a delivery is compared. Data of Pub/Sub has no content type, and that of an event
/// may have none: it is tried as JSON.
#[must_use]
pub fn compared(route: &Route, request: &Request<Bytes>, delivery: &Delivery) -> Compared {
    let says_json = match delivery.source {
        _ if route.fingerprint == FingerprintRule::Off => return Compared::NotAtAll,
        Source::PubSub => true,
        Source::CloudEvents => delivery
            .ce
            .get("datacontenttype")
            .is_none_or(|it| is_json(it)),
        Source::Api | Source::CloudTasks | Source::Webhook(_) => {
            let content_type = single_header(request.headers(), CONTENT_TYPE.as_str());
            content_type.is_ok_and(|it| it.is_some_and(|it| is_json(&it)))
        }
    };
    if says_json {
        Compared::AsValue
    } else {
        Compared::AsBytes
    }
}

/// Digests of what the fingerprint of a delivery is taken of, part by part.
#[must_use]
pub fn digests(
    route: &Route,
    request: &Request<Bytes>,
    delivery: &Delivery,
    payload: &Payload<'_>,
) -> Digests {
    let of = |pieces: Pieces| Some(Digest::of(&pieces.bytes(b"")));
    let payload = match compared(route, request, delivery) {
        Compared::AsValue => Some(Fingerprint::of_payload(payload)),
        Compared::AsBytes => Some(Fingerprint::of(payload.bytes())),
        Compared::NotAtAll => None,
    };
    let digests = Digests {
        payload: payload.as_ref().map(Digest::of),
        ..Digests::default()
    };
    let names: &[String] = match &route.fingerprint {
        FingerprintRule::Full => &[],
        FingerprintRule::With(names) => names,
        FingerprintRule::Payload | FingerprintRule::Off => return digests,
    };
    let has_attributes = !delivery.attributes.is_empty() || !names.is_empty();
    let attributes = has_attributes.then(|| {
        let pieces = attributes(Pieces::new(), route, request, delivery);
        beside(pieces, names, request, delivery).ok().and_then(of)
    });
    let is_event = delivery.source == Source::CloudEvents;
    Digests {
        method: of(Pieces::new().method(request.method().as_str())),
        path: of(Pieces::new().path(compared_path(request, delivery))),
        kind: is_event
            .then(|| of(event(Pieces::new(), delivery)))
            .flatten(),
        attributes: attributes.flatten(),
        ..digests
    }
}

/// The path as it is compared. Whoever configured a push put the query there, and `?token=` changes.
fn compared_path<'a>(request: &'a Request<Bytes>, delivery: &Delivery) -> &'a str {
    match delivery.source {
        Source::Api | Source::CloudTasks | Source::Webhook(_) => path_and_query(request),
        Source::PubSub | Source::CloudEvents => request.uri().path(),
    }
}

/// What stands around the payload and makes it other work.
fn around(route: &Route, request: &Request<Bytes>, delivery: &Delivery) -> Pieces {
    let pieces = Pieces::new()
        .method(request.method().as_str())
        .path(compared_path(request, delivery));
    match delivery.source {
        Source::Api | Source::CloudTasks | Source::Webhook(_) => pieces,
        Source::PubSub => attributes(pieces, route, request, delivery),
        // Those of the message that an event of Eventarc carries.
        Source::CloudEvents => attributes(event(pieces, delivery), route, request, delivery),
    }
}

/// What an event is about.
fn event(pieces: Pieces, delivery: &Delivery) -> Pieces {
    OF_EVENT.into_iter().fold(pieces, |pieces, name| {
        let value = delivery.ce.get(name).map(String::as_str);
        pieces.named(&format!("ce:{name}"), value)
    })
}

/// The attributes of a message. In an unwrapped push they stand among all other headers, of which some
/// change with each delivery: there only those count that the route names.
fn attributes(
    pieces: Pieces,
    route: &Route,
    request: &Request<Bytes>,
    delivery: &Delivery,
) -> Pieces {
    if source::is_unwrapped(request, delivery) {
        return pieces;
    }
    let own = route.fingerprint_ignores.iter().map(String::as_str);
    let ignored = |name: &str| own.clone().chain(NEVER_COMPARED).any(|it| fits(it, name));
    let compared = delivery
        .attributes
        .iter()
        .filter(|(name, _)| !ignored(name));
    compared.fold(pieces, |pieces, (name, value)| {
        pieces.named(&format!("attribute:{name}"), Some(value))
    })
}

fn fits(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(begin) => name.starts_with(begin),
        None => name == pattern,
    }
}

/// What the route names besides.
fn beside(
    pieces: Pieces,
    names: &[String],
    request: &Request<Bytes>,
    delivery: &Delivery,
) -> Result<Pieces, Invalid> {
    names.iter().try_fold(pieces, |pieces, name| {
        let value = delivery.value(request, name)?;
        Ok(pieces.named(name, value.as_deref()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_rest() {
        assert!(fits("googclient_*", "googclient_traceparent") && fits("a*", "a"));
        assert!(fits("baggage", "baggage") && !fits("baggage", "baggage2"));
        assert!(!fits("googclient_*", "google") && fits("*", "anything"));
    }
}
