//! The id of a letter: one per key and reason; without a key, one per arrival.

use crate::delivery::path_and_query;
use crate::flow::Flow;
use semel::Fingerprint;
use semel::letter::{LetterId, Reason};

/// Headers that tell one arrival of a sender from its next one.
const IDENTIFYING_HEADERS: [&str; 4] = [
    "x-cloudtasks-taskname",
    "x-appengine-taskname",
    "x-goog-pubsub-message-id",
    "ce-id",
];

/// Headers that say where it comes from. What stands in a body is part of the body.
const ORIGIN_HEADERS: [&str; 4] = [
    "x-cloudtasks-queuename",
    "x-appengine-queuename",
    "x-goog-pubsub-subscription-name",
    "ce-source",
];

/// An arrival that nothing names is never taken for another: its id is random, so that it meets neither an
/// open letter nor a tombstone. The quota bounds how many there are.
#[allow(
    clippy::disallowed_methods,
    reason = "a letter that nothing names gets a random id"
)]
pub(super) fn letter_id(flow: &Flow, reason: Reason) -> LetterId {
    if let Some(identity) = flow.identity() {
        return LetterId::of_key(reason, &identity.key, &identity.fingerprint);
    }
    let body = Fingerprint::of(flow.request.body());
    let mut arrival = format!("{} {}", flow.gate.settings.namespace, arrival(flow));
    if !is_identified(flow) {
        arrival.push_str(&format!("\n{:032x}", rand::random::<u128>()));
    }
    LetterId::of_delivery(reason, &arrival, &body)
}

/// Whether the sender named this arrival, in a header or in what could be read of its body. If not,
/// two that look the same may be two.
fn is_identified(flow: &Flow) -> bool {
    let headers = flow.request.headers();
    let mut values = IDENTIFYING_HEADERS
        .iter()
        .flat_map(|name| headers.get_all(*name));
    let read = [&flow.transport.message_id, &flow.transport.task_name];
    values.any(|value| !value.is_empty()) || read.into_iter().any(Option::is_some)
}

/// All that stays the same when a delivery without a key comes again, beside its body: two that
/// differ here are two letters.
fn arrival(flow: &Flow) -> String {
    let (request, route) = (&flow.request, &flow.route.settings.name);
    let (method, path) = (request.method(), path_and_query(request));
    let mut arrival = format!("{route} {} {method} {path}", flow.source);
    for (name, value) in request.headers() {
        let mut names = IDENTIFYING_HEADERS.iter().chain(&ORIGIN_HEADERS);
        if names.any(|header| name == header) {
            arrival.push_str(&format!("\n{name}: {value:?}"));
        }
    }
    arrival
}
