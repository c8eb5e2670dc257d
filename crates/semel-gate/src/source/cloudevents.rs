//! CloudEvents over HTTP: binary mode (attributes in `ce-` headers) and structured mode (one JSON
//! object). Eventarc's Pub/Sub events carry a push envelope as their data: the event keeps its own
//! identity, and the message inside is the payload, because the envelope changes between deliveries.

use super::json::{self, Members};
use super::pubsub::{self, Envelope};
use super::refuse;
use crate::arrival::published_at;
use crate::delivery::{Delivery, Invalid, Transport, single_header};
use crate::settings::Source;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Request};
use semel::payload::is_json;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The context attributes by their plain names.
type Attributes = BTreeMap<String, String>;

/// How an event is laid out in a request.
enum Mode {
    Binary,
    Structured,
    Batch,
    UnknownFormat,
}

/// The attributes that every event has.
const REQUIRED: [&str; 4] = ["id", "source", "type", "specversion"];

const BATCH: &str = "a batch of CloudEvents (application/cloudevents-batch+json) is many pieces of work under \
                     one answer: send each event by itself, as application/cloudevents+json or in binary mode";

const UNKNOWN_FORMAT: &str = "the CloudEvent is in a format other than JSON: \
                              send application/cloudevents+json, or binary mode";

const MESSAGE_PUBLISHED: &str = "google.cloud.pubsub.topic.v1.messagePublished";

/// Whether a request says that it is an event, well made or not.
pub(super) fn recognises(headers: &HeaderMap) -> bool {
    match Mode::of(headers) {
        Mode::Binary => has_event_headers(headers),
        Mode::Structured | Mode::Batch | Mode::UnknownFormat => true,
    }
}

pub(super) fn read(request: &Request<Bytes>) -> Result<Delivery, Invalid> {
    let (ce, data) = match Mode::of(request.headers()) {
        Mode::Binary => (binary(request.headers())?, request.body().clone()),
        Mode::Structured => structured(request.body())?,
        Mode::Batch => return Err(refuse("cloudevents-batch", BATCH)),
        Mode::UnknownFormat => return Err(refuse("cloudevents-unknown-format", UNKNOWN_FORMAT)),
    };
    check_version(&ce)?;
    let id = required(&ce, "id")?.to_owned();
    required(&ce, "source")?;
    let carries_message = required(&ce, "type")? == MESSAGE_PUBLISHED || pubsub::is_envelope(&data);
    let mut delivery = Delivery {
        transport: Transport {
            message_id: Some(id),
            published_at: ce.get("time").and_then(|time| published_at(time)),
            ..Transport::default()
        },
        ce,
        ..Delivery::new(Source::CloudEvents, data)
    };
    if carries_message {
        unwrap_message(&mut delivery)?;
    }
    Ok(delivery)
}

/// Takes the message out of its envelope. The event already has an identity, so an envelope without
/// a message id or a subscription, as local tools send it, is good enough here.
fn unwrap_message(delivery: &mut Delivery) -> Result<(), Invalid> {
    let envelope = Envelope::read(&delivery.payload)?;
    delivery.transport.subscription = envelope.subscription;
    delivery.transport.ordering_key = envelope.ordering_key;
    delivery.transport.delivery_attempt = envelope.delivery_attempt;
    let published_at = delivery.transport.published_at.or(envelope.published_at);
    delivery.transport.published_at = published_at;
    delivery.attributes = envelope.attributes;
    delivery.payload = envelope.data;
    Ok(())
}

fn has_event_headers(headers: &HeaderMap) -> bool {
    REQUIRED
        .iter()
        .any(|name| headers.contains_key(format!("ce-{name}")))
}

fn binary(headers: &HeaderMap) -> Result<Attributes, Invalid> {
    if !has_event_headers(headers) {
        return Err(no_event());
    }
    let mut ce = Attributes::new();
    if let Some(media_type) = single_header(headers, CONTENT_TYPE.as_str())? {
        ce.insert("datacontenttype".into(), media_type.into_owned());
    }
    for header in headers.keys() {
        let Some(name) = header.as_str().strip_prefix("ce-") else {
            continue;
        };
        let value = single_header(headers, header.as_str())?.unwrap_or_default();
        ce.insert(name.into(), decode(&value).ok_or_else(|| not_text(name))?);
    }
    Ok(ce)
}

fn structured(body: &Bytes) -> Result<(Attributes, Bytes), Invalid> {
    let members = json::members(body, |_| true).map_err(|trouble| {
        trouble.refuse(
            "the CloudEvent",
            "send one event as a JSON object, as application/cloudevents+json says",
        )
    })?;
    let ce = context(&members);
    let data = data(&members, body, ce.get("datacontenttype"))?;
    Ok((ce, data))
}

/// The context attributes of a structured event: strings as they are, numbers and booleans as they
/// stand in the text. Nothing else is an attribute's value, so objects and arrays are left out: a key
/// rule that names one finds it missing, and refuses.
fn context(members: &Members<'_>) -> Attributes {
    members
        .iter()
        .filter(|(name, _)| !matches!(*name, "data" | "data_base64"))
        .filter(|(name, value)| !REQUIRED.contains(name) || json::text(value).is_some())
        .filter_map(|(name, value)| Some((name.into(), scalar(value)?.into_owned())))
        .collect()
}

fn scalar(value: &RawValue) -> Option<Cow<'_, str>> {
    match value.get().as_bytes().first()? {
        b'"' => json::text(value),
        b'{' | b'[' | b'n' => None,
        _ => Some(Cow::Borrowed(value.get())),
    }
}

/// The data of a structured event, as binary mode would carry it. JSON is taken as it stands in the body, to
/// the last space; text of another type is a JSON string here, and what that means there.
fn data(
    members: &Members<'_>,
    body: &Bytes,
    content_type: Option<&String>,
) -> Result<Bytes, Invalid> {
    match (members.get("data"), members.get("data_base64")) {
        (Some(_), Some(_)) => Err(refuse(
            "cloudevents-two-data",
            "the CloudEvent has both data and data_base64: send one of them",
        )),
        (_, Some(encoded)) => {
            let decoded =
                json::text(encoded).and_then(|text| STANDARD.decode(text.as_bytes()).ok());
            decoded.map(Bytes::from).ok_or_else(|| {
                refuse(
                    "cloudevents-bad-data",
                    "data_base64 of the CloudEvent is not a string of base64 (standard alphabet, \
                     padded): encode it so",
                )
            })
        }
        (_, None) => {
            let Some(data) = members.get_even_null("data") else {
                return Ok(Bytes::new());
            };
            let is_text = content_type.is_some_and(|it| !is_json(it));
            let text = json::text(data).filter(|_| is_text);
            Ok(match text {
                Some(Cow::Owned(text)) => text.into(),
                Some(Cow::Borrowed(text)) => body.slice_ref(text.as_bytes()),
                None => body.slice_ref(data.get().as_bytes()),
            })
        }
    }
}

/// A header's value as the HTTP binding writes it: perhaps quoted (senders of older versions), then
/// percent-encoded. A `%` without two hex digits behind it is itself: some senders do not encode.
fn decode(value: &str) -> Option<String> {
    let value = value.trim();
    let plain = match value
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
    {
        Some(quoted) => Cow::Owned(unescape(quoted)),
        None => Cow::Borrowed(value),
    };
    let mut decoded = Vec::with_capacity(plain.len());
    let mut rest = plain.as_bytes();
    while let [byte, behind @ ..] = rest {
        match (byte, percent(behind)) {
            (b'%', Some((encoded, left))) => {
                decoded.push(encoded);
                rest = left;
            }
            _ => {
                decoded.push(*byte);
                rest = behind;
            }
        }
    }
    String::from_utf8(decoded).ok()
}

/// The byte that the two digits behind a `%` mean, and what is behind them.
fn percent(behind: &[u8]) -> Option<(u8, &[u8])> {
    let (digits, left) = behind.split_first_chunk::<2>()?;
    let mut byte = [0];
    hex::decode_to_slice(digits, &mut byte).ok()?;
    let [byte] = byte;
    Some((byte, left))
}

fn unescape(quoted: &str) -> String {
    let mut characters = quoted.chars();
    let mut plain = String::with_capacity(quoted.len());
    while let Some(character) = characters.next() {
        match character {
            '\\' => plain.extend(characters.next()),
            other => plain.push(other),
        }
    }
    plain
}

fn required<'a>(ce: &'a Attributes, name: &'static str) -> Result<&'a str, Invalid> {
    match ce.get(name) {
        Some(text) if !text.is_empty() => Ok(text),
        Some(_) | None => Err(refuse(
            "cloudevents-missing-attribute",
            format!(
                "the CloudEvent has no {name}, which every event must have: send the header \
                 ce-{name} in binary mode, or the member {name} as a string in structured mode"
            ),
        )),
    }
}

/// Other versions lay events out otherwise, so reading them as 1.x would be a guess.
fn check_version(ce: &Attributes) -> Result<(), Invalid> {
    let version = required(ce, "specversion")?;
    if version == "1" || version.starts_with("1.") {
        return Ok(());
    }
    Err(refuse(
        "cloudevents-unknown-version",
        "the specversion of the CloudEvent is not 1.x: send specversion 1.0",
    ))
}

fn no_event() -> Invalid {
    refuse(
        "cloudevents-no-event",
        "the request has neither ce- headers nor the Content-Type application/cloudevents+json: \
         send a CloudEvent, or give the route the source that sends (a Pub/Sub push without \
         Eventarc is source = \"pubsub\")",
    )
}

fn not_text(name: &str) -> Invalid {
    refuse(
        "cloudevents-not-text",
        format!("the header ce-{name} is not UTF-8 once percent-decoded: encode UTF-8"),
    )
}

// === impl Mode ===

impl Mode {
    /// The Content-Type alone decides, as the binding says.
    fn of(headers: &HeaderMap) -> Self {
        let content_type = headers
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        let media_type = content_type.split(';').next().unwrap_or_default();
        match media_type.trim().to_ascii_lowercase().as_str() {
            "application/cloudevents+json" => Self::Structured,
            "application/cloudevents-batch+json" => Self::Batch,
            other if other.starts_with("application/cloudevents") => Self::UnknownFormat,
            _ => Self::Binary,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_values_are_decoded_once() {
        let cases = [
            ("plain", "plain"),
            ("Euro%20%E2%82%AC%20%F0%9F%98%80", "Euro € 😀"),
            ("%2541", "%41"),
            ("100%", "100%"),
            ("%zz%4", "%zz%4"),
            ("%+1", "%+1"),
            (r#""a \"b\" %41""#, r#"a "b" A"#),
            ("\"", "\""),
            ("€", "€"),
        ];
        for (sent, meant) in cases {
            assert_eq!(decode(sent).unwrap(), meant, "{sent}");
        }
        assert_eq!(decode("%ff"), None);
    }

    #[test]
    fn data_is_a_piece_of_the_body_and_no_copy() {
        let body = Bytes::from_static(br#"{"data" :  {"b": 1.0,  "a":[ ]} }"#);
        let members = json::members(&body, |_| true).unwrap();
        let data = data(&members, &body, None).unwrap();
        assert_eq!(&data[..], br#"{"b": 1.0,  "a":[ ]}"#);
        assert!(body.as_ptr_range().contains(&data.as_ptr()));
    }

    #[test]
    fn null_data_is_data_and_a_null_beside_base64_is_none() {
        let of = |body: &'static str| {
            let body = Bytes::from_static(body.as_bytes());
            data(&json::members(&body, |_| true).unwrap(), &body, None)
        };
        assert_eq!(of(r#"{"data":null}"#).unwrap(), "null");
        assert_eq!(of("{}").unwrap(), "");
        assert_eq!(of(r#"{"data":null,"data_base64":"aGk="}"#).unwrap(), "hi");
        assert_eq!(
            of(r#"{"data":1,"data_base64":"aGk="}"#).unwrap_err().code,
            "cloudevents-two-data"
        );
    }

    #[test]
    fn only_scalars_are_attributes() {
        let body = br#"{"id":7,"a":"x","n":12,"t":true,"o":{},"l":[],"z":null,"data":1}"#;
        let ce = context(&json::members(body, |_| true).unwrap());
        let expected = [("a", "x"), ("n", "12"), ("t", "true")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(ce, Attributes::from(expected));
    }
}
