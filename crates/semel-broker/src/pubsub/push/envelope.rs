//! What a pushed message looks like.

use super::super::dead_letter::rfc3339;
use crate::clock::Time;
use crate::proto::pubsub as wire;
use crate::proto::pubsub::push_config::Wrapper;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING, USER_AGENT,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Serialize;
use std::collections::BTreeMap;

const AGENT: &str = "APIs-Google; (+https://developers.google.com/webmasters/APIs-Google.html)";

/// Attributes cannot be headers of these names: they are the request's own.
const RESERVED: [HeaderName; 6] = [
    AUTHORIZATION,
    CONNECTION,
    CONTENT_LENGTH,
    HOST,
    TRANSFER_ENCODING,
    USER_AGENT,
];

/// A request's headers and body.
#[derive(Debug)]
pub(super) struct Envelope {
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Wrapped<'a> {
    message: WrappedMessage<'a>,
    subscription: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    delivery_attempt: Option<u32>,
}

/// Both spellings are sent.
#[derive(Serialize)]
struct WrappedMessage<'a> {
    #[serde(skip_serializing_if = "String::is_empty")]
    data: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    attributes: BTreeMap<&'a str, &'a str>,
    #[serde(rename = "messageId")]
    camel_id: &'a str,
    message_id: &'a str,
    #[serde(rename = "publishTime")]
    camel_time: &'a str,
    publish_time: &'a str,
    #[serde(rename = "orderingKey", skip_serializing_if = "str::is_empty")]
    ordering_key: &'a str,
}

// === impl Envelope ===

impl Envelope {
    /// The attempt is told only where a dead-letter policy counts it.
    pub(super) fn new(
        message: &wire::PubsubMessage,
        subscription: &str,
        attempt: Option<u32>,
        wrapper: Option<&Wrapper>,
    ) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let body = match wrapper {
            None | Some(Wrapper::PubsubWrapper(_)) => wrapped(message, subscription, attempt),
            Some(Wrapper::NoWrapper(unwrapped)) => {
                if unwrapped.write_metadata {
                    write_metadata(&mut headers, message, subscription);
                }
                message.data.clone()
            }
        };
        Self { headers, body }
    }
}

fn wrapped(message: &wire::PubsubMessage, subscription: &str, attempt: Option<u32>) -> Bytes {
    let time = publish_time(message);
    let attributes = message.attributes.iter();
    let wrapped = Wrapped {
        message: WrappedMessage {
            data: STANDARD.encode(&message.data),
            attributes: attributes
                .map(|(key, value)| (key.as_str(), value.as_str()))
                .collect(),
            camel_id: &message.message_id,
            message_id: &message.message_id,
            camel_time: &time,
            publish_time: &time,
            ordering_key: &message.ordering_key,
        },
        subscription,
        delivery_attempt: attempt,
    };
    let body = serde_json::to_vec(&wrapped).expect("texts and numbers can be written");
    body.into()
}

fn write_metadata(headers: &mut HeaderMap, message: &wire::PubsubMessage, subscription: &str) {
    let time = publish_time(message);
    let mut all: Vec<(&str, &str)> = message
        .attributes
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    all.push(("x-goog-pubsub-subscription-name", subscription));
    all.push(("x-goog-pubsub-message-id", &message.message_id));
    all.push(("x-goog-pubsub-publish-time", &time));
    if !message.ordering_key.is_empty() {
        all.push(("x-goog-pubsub-ordering-key", &message.ordering_key));
    }
    for (name, value) in all {
        let name = HeaderName::try_from(name).ok();
        let name = name.filter(|name| !RESERVED.contains(name));
        // What cannot be a header is left out: there is no other place for it.
        if let (Some(name), Ok(value)) = (name, HeaderValue::try_from(value)) {
            headers.insert(name, value);
        }
    }
}

fn publish_time(message: &wire::PubsubMessage) -> String {
    let published = message.publish_time.as_ref().map(Time::of);
    rfc3339(published.unwrap_or_default(), "Z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::pubsub::push_config::{NoWrapper, PubsubWrapper};

    const SUBSCRIPTION: &str = "projects/P/subscriptions/S";

    fn message() -> wire::PubsubMessage {
        wire::PubsubMessage {
            data: "hi".into(),
            attributes: [("k".into(), "v".into()), ("host".into(), "x".into())].into(),
            message_id: "2070443601311540".into(),
            publish_time: Some(Time(1_614_366_835_749_000).timestamp()),
            ordering_key: "key".into(),
        }
    }

    fn text(envelope: &Envelope) -> &str {
        std::str::from_utf8(&envelope.body).unwrap()
    }

    #[test]
    fn a_wrapped_message_has_both_spellings() {
        let envelope = Envelope::new(&message(), SUBSCRIPTION, Some(5), None);
        assert_eq!(
            text(&envelope),
            r#"{"message":{"data":"aGk=","attributes":{"host":"x","k":"v"},"messageId":"2070443601311540","message_id":"2070443601311540","publishTime":"2021-02-26T19:13:55.749Z","publish_time":"2021-02-26T19:13:55.749Z","orderingKey":"key"},"subscription":"projects/P/subscriptions/S","deliveryAttempt":5}"#
        );
        assert_eq!(envelope.headers["content-type"], "application/json");
        assert_eq!(envelope.headers["user-agent"], AGENT);
    }

    #[test]
    fn what_is_empty_is_left_out() {
        let message = wire::PubsubMessage {
            data: Bytes::new(),
            attributes: [("k".into(), "v".into())].into(),
            ordering_key: String::new(),
            ..message()
        };
        let wrapper = Wrapper::PubsubWrapper(PubsubWrapper {});
        let envelope = Envelope::new(&message, SUBSCRIPTION, None, Some(&wrapper));
        assert_eq!(
            text(&envelope),
            r#"{"message":{"attributes":{"k":"v"},"messageId":"2070443601311540","message_id":"2070443601311540","publishTime":"2021-02-26T19:13:55.749Z","publish_time":"2021-02-26T19:13:55.749Z"},"subscription":"projects/P/subscriptions/S"}"#
        );
    }

    #[test]
    fn an_unwrapped_message_is_its_data_with_or_without_metadata() {
        let bare = Wrapper::NoWrapper(NoWrapper {
            write_metadata: false,
        });
        let envelope = Envelope::new(&message(), SUBSCRIPTION, Some(1), Some(&bare));
        assert_eq!(text(&envelope), "hi");
        assert!(!envelope.headers.contains_key("x-goog-pubsub-message-id"));
        let told = Wrapper::NoWrapper(NoWrapper {
            write_metadata: true,
        });
        let envelope = Envelope::new(&message(), SUBSCRIPTION, Some(1), Some(&told));
        assert_eq!(text(&envelope), "hi");
        for (name, value) in [
            ("x-goog-pubsub-subscription-name", SUBSCRIPTION),
            ("x-goog-pubsub-message-id", "2070443601311540"),
            ("x-goog-pubsub-publish-time", "2021-02-26T19:13:55.749Z"),
            ("x-goog-pubsub-ordering-key", "key"),
            ("k", "v"),
        ] {
            assert_eq!(envelope.headers[name], value, "{name}");
        }
        assert!(!envelope.headers.contains_key("host"));
    }
}
