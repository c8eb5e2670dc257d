//! Pub/Sub push: wrapped in a JSON envelope, or unwrapped with its metadata in headers. An unwrapped
//! push without metadata names nothing that two deliveries of one message share, so it is refused.

use super::json::{self, JsonError, Members};
use super::refuse;
use crate::arrival::published_at;
use crate::delivery::{Delivery, Invalid, Transport, single_header};
use crate::settings::Source;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderMap, Request};
use jiff::Timestamp;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// A wrapped message. What is `None` was not there; who needs it refuses.
#[derive(Debug)]
pub(super) struct Envelope {
    pub(super) message_id: Option<String>,
    pub(super) subscription: Option<String>,
    pub(super) ordering_key: Option<String>,
    pub(super) delivery_attempt: Option<u64>,
    pub(super) published_at: Option<Timestamp>,
    pub(super) attributes: BTreeMap<String, String>,
    pub(super) data: Bytes,
}

const SUBSCRIPTION_NAME: &str = "x-goog-pubsub-subscription-name";
const MESSAGE_ID: &str = "x-goog-pubsub-message-id";
const PUBLISH_TIME: &str = "x-goog-pubsub-publish-time";
const ORDERING_KEY: &str = "x-goog-pubsub-ordering-key";

/// Headers that belong to the connection, the request or a credential, never to a message.
const NOT_ATTRIBUTES: [&str; 14] = [
    "authorization",
    "connection",
    "content-length",
    "cookie",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-serverless-authorization",
];

/// What to do about a push that is not an envelope.
const HOW_TO_SEND: &str = "let the subscription wrap its messages (no noWrapper), or set \
                           writeMetadata: true beside noWrapper";

pub(super) fn read(request: &Request<Bytes>) -> Result<Delivery, Invalid> {
    if has_metadata(request.headers()) {
        unwrapped(request)
    } else {
        wrapped(request.body())
    }
}

/// Whether the headers carry a message's metadata: then the body is its data, whatever it looks like.
pub(super) fn has_metadata(headers: &HeaderMap) -> bool {
    headers.contains_key(MESSAGE_ID) || headers.contains_key(SUBSCRIPTION_NAME)
}

/// Whether a body has all the marks of an envelope. A client's own JSON may well have a `message` or
/// a `subscription`, so less is not enough.
pub(super) fn is_envelope(body: &[u8]) -> bool {
    let marks = || {
        let envelope = json::members(body, of_envelope).ok()?;
        json::text(envelope.get("subscription")?)?;
        let message = json::members(envelope.get("message")?.get().as_bytes(), of_message).ok()?;
        message.get("messageId").or(message.get("message_id"))
    };
    marks().is_some()
}

fn wrapped(body: &Bytes) -> Result<Delivery, Invalid> {
    let envelope = Envelope::read(body)?;
    Ok(Delivery {
        transport: Transport {
            subscription: Some(envelope.subscription.ok_or_else(|| {
                no_subscription("the Pub/Sub envelope has no subscription that is a string")
            })?),
            message_id: Some(envelope.message_id.ok_or_else(|| {
                no_message_id("the Pub/Sub message has no messageId that is a string")
            })?),
            ordering_key: envelope.ordering_key,
            delivery_attempt: envelope.delivery_attempt,
            published_at: envelope.published_at,
            ..Transport::default()
        },
        attributes: envelope.attributes,
        ..Delivery::new(Source::PubSub, envelope.data)
    })
}

fn unwrapped(request: &Request<Bytes>) -> Result<Delivery, Invalid> {
    let headers = request.headers();
    let header = |name| -> Result<Option<String>, Invalid> {
        let text = single_header(headers, name)?.filter(|text| !text.is_empty());
        Ok(text.map(|text| text.into_owned()))
    };
    let missing = |name| format!("the header {name} of an unwrapped push is missing or empty");
    Ok(Delivery {
        transport: Transport {
            subscription: Some(
                header(SUBSCRIPTION_NAME)?
                    .ok_or_else(|| no_subscription(&missing(SUBSCRIPTION_NAME)))?,
            ),
            message_id: Some(
                header(MESSAGE_ID)?.ok_or_else(|| no_message_id(&missing(MESSAGE_ID)))?,
            ),
            ordering_key: header(ORDERING_KEY)?,
            published_at: header(PUBLISH_TIME)?.as_deref().and_then(published_at),
            is_unwrapped: true,
            ..Transport::default()
        },
        attributes: attributes_in(headers),
        ..Delivery::new(Source::PubSub, request.body().clone())
    })
}

/// An unwrapped push turns attributes into headers among all others, and nothing tells them apart. So
/// every header counts as one, by its name in lower case, except those of [`NOT_ATTRIBUTES`] and
/// Google's own. One that is there twice or is not text is left out: a key rule that names it then
/// finds it missing, and refuses.
fn attributes_in(headers: &HeaderMap) -> BTreeMap<String, String> {
    headers
        .keys()
        .map(http::HeaderName::as_str)
        .filter(|name| !name.starts_with("x-goog-") && !NOT_ATTRIBUTES.contains(name))
        .filter_map(|name| {
            Some((
                name.into(),
                single_header(headers, name).ok()??.into_owned(),
            ))
        })
        .collect()
}

fn of_envelope(name: &str) -> bool {
    matches!(name, "message" | "subscription" | "deliveryAttempt")
}

fn of_message(name: &str) -> bool {
    matches!(
        name,
        "data"
            | "attributes"
            | "messageId"
            | "message_id"
            | "orderingKey"
            | "ordering_key"
            | "publishTime"
            | "publish_time"
    )
}

// === impl Envelope ===

impl Envelope {
    /// Reads a wrapped push. Members that nobody asks for are passed over.
    pub(super) fn read(body: &[u8]) -> Result<Self, Invalid> {
        let envelope = json::members(body, of_envelope).map_err(|trouble| no_envelope(&trouble))?;
        let message = match (envelope.get("message"), envelope.get("subscription")) {
            (Some(message), _) => message,
            (None, Some(_)) => return Err(no_message()),
            (None, None) => return Err(no_identity()),
        };
        let message = json::members(message.get().as_bytes(), of_message)
            .map_err(|trouble| bad_message(&trouble))?;
        Ok(Self {
            message_id: message_id(&message)?,
            subscription: name(envelope.get("subscription")),
            ordering_key: name(message.get("orderingKey").or(message.get("ordering_key"))),
            // A rough count, for the log only: one that cannot be read is no reason to refuse.
            delivery_attempt: envelope
                .get("deliveryAttempt")
                .and_then(|count| count.get().parse().ok()),
            published_at: name(message.get("publishTime").or(message.get("publish_time")))
                .as_deref()
                .and_then(published_at),
            attributes: message
                .get("attributes")
                .map_or(Ok(BTreeMap::new()), attributes)?,
            data: message.get("data").map_or(Ok(Bytes::new()), data)?,
        })
    }
}

/// Both spellings are sent; two readers must not see two ids.
fn message_id(message: &Members<'_>) -> Result<Option<String>, Invalid> {
    match (message.get("messageId"), message.get("message_id")) {
        (Some(one), Some(other)) if json::text(one) != json::text(other) => Err(refuse(
            "pubsub-message-ids-differ",
            "messageId and message_id of the Pub/Sub message differ, so nobody can say which names \
             it: send one of them, or both alike",
        )),
        (Some(id), _) | (None, Some(id)) => Ok(name(Some(id))),
        (None, None) => Ok(None),
    }
}

/// A string that is not empty.
fn name(value: Option<&RawValue>) -> Option<String> {
    let text = json::text(value?)?;
    (!text.is_empty()).then(|| text.into_owned())
}

fn attributes(value: &RawValue) -> Result<BTreeMap<String, String>, Invalid> {
    let bad = || {
        refuse(
            "pubsub-bad-attributes",
            "the attributes of the Pub/Sub message are not an object of strings: send \
             \"attributes\": {\"name\": \"value\"}",
        )
    };
    let members =
        json::members(value.get().as_bytes(), |_| true).map_err(|trouble| match trouble {
            JsonError::NotAnObject | JsonError::Broken { .. } => bad(),
            JsonError::Repeated | JsonError::TooMany => {
                trouble.refuse("the attributes object of the Pub/Sub message", "send JSON")
            }
        })?;
    members
        .iter()
        .map(|(name, value)| Ok((name.into(), json::text(value).ok_or_else(bad)?.into_owned())))
        .collect()
}

fn data(value: &RawValue) -> Result<Bytes, Invalid> {
    let decoded = json::text(value).and_then(|text| STANDARD.decode(text.as_bytes()).ok());
    decoded.map(Bytes::from).ok_or_else(|| {
        refuse(
            "pubsub-bad-data",
            "data of the Pub/Sub message is not a string of base64 (standard alphabet, padded): \
             encode it so, or leave it out when it is empty",
        )
    })
}

fn no_envelope(trouble: &JsonError) -> Invalid {
    match trouble {
        JsonError::NotAnObject => no_identity(),
        JsonError::Broken { .. } | JsonError::Repeated | JsonError::TooMany => {
            trouble.refuse("the Pub/Sub envelope", HOW_TO_SEND)
        }
    }
}

fn bad_message(trouble: &JsonError) -> Invalid {
    match trouble {
        JsonError::NotAnObject => no_message(),
        JsonError::Broken { .. } | JsonError::Repeated | JsonError::TooMany => trouble.refuse(
            "message of the Pub/Sub envelope",
            "send the message as JSON",
        ),
    }
}

fn no_identity() -> Invalid {
    refuse(
        "pubsub-no-identity",
        format!(
            "the request is neither a Pub/Sub envelope nor has the header {MESSAGE_ID}, so nothing \
             tells a repeat from a new message: {HOW_TO_SEND}; for other senders give the route \
             source = \"api\", where key = \"body\" names work by its content"
        ),
    )
}

fn no_message() -> Invalid {
    refuse(
        "pubsub-no-message",
        "the Pub/Sub envelope has no message that is an object: \
         send {\"message\": {...}, \"subscription\": \"...\"}",
    )
}

fn no_message_id(what: &str) -> Invalid {
    refuse(
        "pubsub-no-message-id",
        format!("{what}, and without it a repeat cannot be told from a new message: {HOW_TO_SEND}"),
    )
}

fn no_subscription(what: &str) -> Invalid {
    refuse(
        "pubsub-no-subscription",
        format!("{what}, and message ids are unique only beside it: {HOW_TO_SEND}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(body: &str) -> &'static str {
        wrapped(&Bytes::copy_from_slice(body.as_bytes()))
            .unwrap_err()
            .code
    }

    fn around(message: &str) -> String {
        format!("{{\"message\":{message},\"subscription\":\"projects/p/subscriptions/s\"}}")
    }

    #[test]
    fn each_fault_of_an_envelope_has_its_own_word() {
        let bodies = [
            ("plain text", "pubsub-no-identity"),
            ("[1]", "pubsub-no-identity"),
            (r#"{"order":1}"#, "pubsub-no-identity"),
            (r#"{"message":"#, "json-broken"),
            (r#"{"subscription":"s"}"#, "pubsub-no-message"),
            (r#"{"message":{"messageId":"1"}}"#, "pubsub-no-subscription"),
            (
                r#"{"message":{"messageId":"1"},"subscription":""}"#,
                "pubsub-no-subscription",
            ),
            (
                r#"{"message":{"messageId":"1"},"subscription":7}"#,
                "pubsub-no-subscription",
            ),
        ];
        for (body, code) in bodies {
            assert_eq!(refused(body), code, "{body}");
        }
        let messages = [
            ("\"text\"", "pubsub-no-message"),
            ("null", "pubsub-no-message"),
            ("{}", "pubsub-no-message-id"),
            (r#"{"messageId":""}"#, "pubsub-no-message-id"),
            (r#"{"messageId":7}"#, "pubsub-no-message-id"),
            (
                r#"{"messageId":"1","message_id":"2"}"#,
                "pubsub-message-ids-differ",
            ),
            (
                r#"{"messageId":"1","messageId":"1"}"#,
                "json-repeated-member",
            ),
            (r#"{"messageId":"1","data":"a"}"#, "pubsub-bad-data"),
            (r#"{"messageId":"1","data":"_-8="}"#, "pubsub-bad-data"),
            (r#"{"messageId":"1","data":{}}"#, "pubsub-bad-data"),
            (
                r#"{"messageId":"1","attributes":{"a":1}}"#,
                "pubsub-bad-attributes",
            ),
            (
                r#"{"messageId":"1","attributes":{"a":null}}"#,
                "pubsub-bad-attributes",
            ),
            (
                r#"{"messageId":"1","attributes":[]}"#,
                "pubsub-bad-attributes",
            ),
            (
                r#"{"messageId":"1","attributes":{"a":"1","a":"2"}}"#,
                "json-repeated-member",
            ),
        ];
        for (message, code) in messages {
            assert_eq!(refused(&around(message)), code, "{message}");
        }
    }

    #[test]
    fn what_nobody_asks_for_is_passed_over() {
        let body = r#"{"message":{"messageId":"1","data":null,"attributes":null,"new":[{}]},
            "subscription":"s","deliveryAttempt":"soon","more":{"deep":[[]]}}"#;
        let delivery = wrapped(&Bytes::from_static(body.as_bytes())).unwrap();
        assert_eq!(delivery.transport.delivery_attempt, None);
        assert!(delivery.payload.is_empty() && delivery.attributes.is_empty());
    }

    #[test]
    fn an_escaped_slash_is_still_base64() {
        let body = around(r#"{"messageId":"1","data":"\/\/8="}"#);
        let delivery = wrapped(&Bytes::from(body)).unwrap();
        assert_eq!(&delivery.payload[..], [0xff, 0xff]);
    }

    #[test]
    fn a_clients_own_json_is_no_envelope() {
        for body in [
            r#"{"message":"hello","subscription":"gold"}"#,
            r#"{"message":{"text":"hello"},"subscription":"gold"}"#,
            r#"{"message":{"messageId":"1"}}"#,
            r#"[{"messageId":"1"},"s",1]"#,
            "",
        ] {
            assert!(!is_envelope(body.as_bytes()), "{body}");
        }
        assert!(is_envelope(around(r#"{"message_id":"1"}"#).as_bytes()));
    }
}
