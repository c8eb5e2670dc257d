//! Sources: what a request means, by who sent it. Each file reads one sender's form; `json` is how
//! all of them look into a JSON object.
//!
//! Pure functions over `http` types, for any front end: [`sender`] says who sent a request, [`read`] what
//! it means.

pub(crate) mod api;
mod cloud_tasks;
mod pubsub;
mod cloudevents;
pub(crate) mod webhook;
pub(crate) mod json;

use crate::delivery::{Delivery, Invalid, Transport};
use crate::settings::Source;
use bytes::Bytes;
use http::{HeaderMap, Request};
use std::fmt;

/// Nothing that a sender names a delivery by is longer: these names are hashed, logged and kept, and
/// inside a body only the body's own limit would bound them.
const NAME_BYTES_MAX: usize = 8 * 1024;

/// Reads a request of this sender.
///
/// # Errors
/// When it is not of the sender's form.
pub fn read(source: Source, request: &Request<Bytes>) -> Result<Delivery, Invalid> {
    let mut delivery = match source {
        Source::Api => Delivery::new(source, request.body().clone()),
        Source::CloudTasks => cloud_tasks::read(request)?,
        Source::PubSub => pubsub::read(request)?,
        Source::CloudEvents => cloudevents::read(request)?,
        Source::Webhook(sender) => webhook::read(sender, request)?,
    };
    check_lengths(&delivery)?;
    set_trace(&mut delivery, request.headers());
    Ok(delivery)
}

/// Who sent a request: the one that the route names, or by its form one of several. CloudEvents come
/// first: Eventarc's look like Pub/Sub too, and the event's identity is the better one. What has none of
/// the forms is an API client's, also where the route takes none of those.
#[must_use]
pub fn sender(sources: &[Source], request: &Request<Bytes>) -> Source {
    let source = sender_by_head(sources, request.headers());
    let told = sources.len() == 1 || source != Source::Api;
    if !told && sources.contains(&Source::PubSub) && pubsub::is_envelope(request.body()) {
        Source::PubSub
    } else {
        source
    }
}

/// The same before the body is read; only a wrapped push cannot be told then.
pub(crate) fn sender_by_head(sources: &[Source], headers: &HeaderMap) -> Source {
    if let [source] = sources {
        return *source;
    }
    let has_form = |source: &Source| match source {
        Source::CloudEvents => cloudevents::recognises(headers),
        Source::CloudTasks => cloud_tasks::recognises(headers),
        Source::PubSub => pubsub::has_metadata(headers),
        Source::Api | Source::Webhook(_) => false,
    };
    [Source::CloudEvents, Source::CloudTasks, Source::PubSub]
        .into_iter()
        .find(|source| sources.contains(source) && has_form(source))
        .unwrap_or(Source::Api)
}

/// The parts of a sender's names that stand in a head: which attempt it is, as far as that can be told.
pub(crate) fn transport_by_head(source: Source, headers: &HeaderMap) -> Transport {
    match source {
        Source::CloudTasks => cloud_tasks::counts(headers),
        Source::PubSub => Transport {
            is_unwrapped: pubsub::has_metadata(headers),
            ..Transport::default()
        },
        Source::Api | Source::CloudEvents | Source::Webhook(_) => Transport::default(),
    }
}

/// Why a request is refused that has the form of none of the route's sources.
#[must_use]
pub fn unknown(sources: &[Source]) -> Invalid {
    let taken: Vec<_> = sources.iter().map(|source| source.word()).collect();
    refuse(
        "source-unknown",
        format!(
            "this route takes deliveries of {} only, and this request has the form of none of them",
            taken.join(", ")
        ),
    )
}

/// Whether a message came without its envelope, so that its attributes cannot be told from other headers.
pub(crate) fn is_unwrapped(request: &Request<Bytes>, delivery: &Delivery) -> bool {
    delivery.source == Source::PubSub && pubsub::has_metadata(request.headers())
}

fn check_lengths(delivery: &Delivery) -> Result<(), Invalid> {
    let transport = &delivery.transport;
    let names = [
        ("message or event id", transport.message_id.as_ref()),
        ("event source", delivery.ce.get("source")),
        ("subscription name", transport.subscription.as_ref()),
        ("ordering key", transport.ordering_key.as_ref()),
    ];
    for (what, name) in names {
        if name.is_some_and(|name| name.len() > NAME_BYTES_MAX) {
            return Err(refuse(
                "name-too-long",
                format!("the {what} is longer than {NAME_BYTES_MAX} bytes: send a shorter one"),
            ));
        }
    }
    Ok(())
}

/// The trace that a delivery belongs to. Google's Pub/Sub clients carry it as an attribute, which an
/// unwrapped push turns into a header; CloudEvents have an extension for it. The header `traceparent` is
/// often set by a proxy on the way, so it comes last.
fn set_trace(delivery: &mut Delivery, headers: &HeaderMap) {
    const PREFIX: &str = "googclient_";
    let header = |name: &str| Some(headers.get(name)?.to_str().ok()?.to_owned());
    let carried = |name: &str| {
        let googles = format!("{PREFIX}{name}");
        let attributes = &delivery.attributes;
        let carried = attributes.get(&googles).or_else(|| attributes.get(name));
        let carried = carried.or_else(|| delivery.ce.get(name)).cloned();
        carried.or_else(|| header(&googles))
    };
    let of_message = carried("traceparent");
    let of_request = header("traceparent");
    let transport = &mut delivery.transport;
    if of_message.is_some() {
        transport.tracestate = carried("tracestate");
        transport.traceparent = of_message;
        transport.proxy_traceparent = of_request;
    } else {
        transport.tracestate = header("tracestate");
        transport.traceparent = of_request;
    }
}

/// What every refusal ends with: the sender learns that trying again is of no use.
pub(crate) fn refuse(code: &'static str, why: impl fmt::Display) -> Invalid {
    Invalid::new(
        code,
        format!("{why}; a retry of the same delivery fails again"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trace_of_the_message_comes_before_that_of_its_way() {
        let mut headers = HeaderMap::new();
        let mut delivery = Delivery::new(Source::PubSub, Bytes::new());
        let is =
            |delivery: &mut Delivery, headers: &HeaderMap, [trace, state, proxy]: [&str; 3]| {
                delivery.transport = Transport::default();
                set_trace(delivery, headers);
                let known = |text: &str| (!text.is_empty()).then(|| text.to_owned());
                let expected = Transport {
                    traceparent: known(trace),
                    tracestate: known(state),
                    proxy_traceparent: known(proxy),
                    ..Transport::default()
                };
                assert_eq!(delivery.transport, expected);
            };
        is(&mut delivery, &headers, ["", "", ""]);
        headers.insert("traceparent", "00-way".parse().unwrap());
        headers.insert("tracestate", "way=1".parse().unwrap());
        is(&mut delivery, &headers, ["00-way", "way=1", ""]);
        headers.insert("googclient_traceparent", "00-header".parse().unwrap());
        is(&mut delivery, &headers, ["00-header", "", "00-way"]);
        delivery.ce.insert("traceparent".into(), "00-event".into());
        delivery.ce.insert("tracestate".into(), "event=1".into());
        is(&mut delivery, &headers, ["00-event", "event=1", "00-way"]);
        delivery
            .attributes
            .insert("traceparent".into(), "00-plain".into());
        is(&mut delivery, &headers, ["00-plain", "event=1", "00-way"]);
        let google = ["googclient_traceparent", "googclient_tracestate"];
        for (name, value) in google.into_iter().zip(["00-google", "google=1"]) {
            delivery.attributes.insert(name.into(), value.into());
        }
        is(&mut delivery, &headers, ["00-google", "google=1", "00-way"]);
    }

    #[test]
    fn a_refusal_says_that_a_retry_is_of_no_use() {
        let invalid = refuse("word", "the thing is wrong: fix it");
        assert_eq!(invalid.code, "word");
        assert_eq!(
            invalid.to_string(),
            "the thing is wrong: fix it; a retry of the same delivery fails again"
        );
    }
}
