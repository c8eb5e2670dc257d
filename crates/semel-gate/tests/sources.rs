//! What each sender really sends, and what the gate reads from it.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request};
use proptest::prelude::*;
use semel_gate::delivery::{Delivery, Invalid, Transport};
use semel_gate::settings::Source;
use semel_gate::source;
use serde_json::{Value, json};
use std::collections::BTreeMap;

type Headers<'a> = &'a [(&'a str, &'a str)];

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const PUBLISHED: &str = "2021-02-26T19:13:55.749Z";
const SUBSCRIPTION: &str = "projects/shop/subscriptions/orders-push";
const MESSAGE_ID: &str = "x-goog-pubsub-message-id";
const TOPIC: &str = "//pubsub.googleapis.com/projects/shop/topics/orders";
const EVENT: &str = r#"{"specversion":"1.0","id":"1.0","source":"1.0","type":"1.0"}"#;
const HELLO: &str = r#"{"message":{"data":"SGVsbG8=","attributes":{"region":"eu"},
    "messageId":"2070443601311540","message_id":"2070443601311540",
    "publishTime":"2021-02-26T19:13:55.749Z","publish_time":"2021-02-26T19:13:55.749Z",
    "orderingKey":"order-7"},
    "subscription":"projects/shop/subscriptions/orders-push","deliveryAttempt":5}"#;
const EVENTARC: Headers<'_> = &[
    ("content-type", "application/json"),
    ("ce-id", "2070443601311540"),
    ("ce-source", TOPIC),
    ("ce-type", "google.cloud.pubsub.topic.v1.messagePublished"),
    ("ce-specversion", "1.0"),
    ("ce-time", "2021-02-26T19:13:55.749Z"),
];
const CLOUD_TASK: Headers<'_> = &[
    ("user-agent", "Google-Cloud-Tasks"),
    ("X-CloudTasks-QueueName", "orders"),
    ("X-CloudTasks-TaskName", "5290176713416474511"),
    ("X-CloudTasks-TaskRetryCount", "3"),
    ("X-CloudTasks-TaskExecutionCount", "2"),
    ("X-CloudTasks-TaskETA", "1614366835.12"),
    ("X-CloudTasks-TaskPreviousResponse", "429"),
    ("X-CloudTasks-TaskRetryReason", ""),
];
const APP_ENGINE_TASK: Headers<'_> = &[
    (
        "user-agent",
        "AppEngine-Google; (+http://code.google.com/appengine)",
    ),
    ("X-AppEngine-QueueName", "default"),
    ("X-AppEngine-TaskName", "invoice-7"),
    ("X-AppEngine-TaskRetryCount", "1"),
    ("X-AppEngine-TaskExecutionCount", "0"),
    ("X-AppEngine-TaskPreviousResponse", "0"),
    ("X-AppEngine-TaskRetryReason", "Instance Unavailable"),
];
const UNWRAPPED: Headers<'_> = &[
    ("host", "orders.example"),
    ("authorization", "Bearer secret"),
    ("x-goog-pubsub-subscription-name", SUBSCRIPTION),
    ("x-goog-pubsub-message-id", "2070443601311540"),
    ("x-goog-pubsub-publish-time", "2021-02-26T19:13:55.749Z"),
    ("x-goog-pubsub-ordering-key", "order-7"),
    ("Region", "eu"),
    ("googclient_traceparent", TRACE),
];
const BINARY: Headers<'_> = &[
    ("content-type", "application/json"),
    ("ce-id", "A234-1234-1234"),
    ("ce-source", "/mycontext"),
    ("ce-type", "com.example.someevent"),
    ("ce-specversion", "1.0"),
    ("ce-subject", "Euro%20%E2%82%AC"),
    ("ce-shard", "\"seven\""),
];
const STRUCTURED: Headers<'_> = &[(
    "content-type",
    "Application/CloudEvents+JSON; charset=UTF-8",
)];

fn request(headers: Headers<'_>, body: impl Into<Bytes>) -> Request<Bytes> {
    let mut request = Request::post("/orders?x=1");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(body.into()).unwrap()
}

/// Reads with the source seen from the request.
fn read(request: &Request<Bytes>) -> Result<Delivery, Invalid> {
    source::read(source::sender(&Source::ALL, request), request)
}

fn seen(headers: Headers<'_>, body: &'static str) -> Delivery {
    read(&request(headers, body)).unwrap()
}

/// Refused by the reader of this source, or of the one that is seen from the request.
fn refused(fixed: Option<Source>, headers: Headers<'_>, body: &str) -> Invalid {
    let request = request(headers, Bytes::copy_from_slice(body.as_bytes()));
    let source = fixed.unwrap_or_else(|| source::sender(&Source::ALL, &request));
    source::read(source, &request).unwrap_err()
}

/// Attributes, as an object of strings.
fn map(object: Value) -> BTreeMap<String, String> {
    serde_json::from_value(object).unwrap()
}

/// What is known of a message of this subscription, and its payload.
fn is_hello(delivery: &Delivery, source: Source) {
    assert_eq!(delivery.source, source);
    assert_eq!(delivery.payload, "Hello");
    assert_eq!(delivery.attributes, map(json!({"region": "eu"})));
    let transport = Transport {
        subscription: some(SUBSCRIPTION),
        message_id: some("2070443601311540"),
        ordering_key: some("order-7"),
        delivery_attempt: Some(5),
        published_at: PUBLISHED.parse().ok(),
        ..Transport::default()
    };
    assert_eq!(delivery.transport, transport);
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn a_request_without_marks_is_an_api_clients() {
    let delivery = seen(&[("traceparent", TRACE)], "not JSON");
    assert_eq!(delivery.source, Source::Api);
    assert_eq!(delivery.payload, "not JSON");
    let transport = Transport {
        traceparent: some(TRACE),
        ..Transport::default()
    };
    assert_eq!(delivery.transport, transport);
}

#[test]
fn an_idempotency_key_is_named_quoted_or_bare() {
    let uuid = "8e03978e-40d5-43dd-bc93-6894a57f9324";
    for sent in [uuid.to_owned(), format!("\"{uuid}\"")] {
        let request = request(&[("Idempotency-Key", &sent)], "{}");
        let delivery = read(&request).unwrap();
        let key = delivery.value(&request, "header:idempotency-key");
        assert_eq!(key.unwrap().unwrap(), uuid);
    }
    let request = request(&[("Idempotency-Key", "\"open")], "{}");
    let delivery = read(&request).unwrap();
    let invalid = delivery
        .value(&request, "header:idempotency-key")
        .unwrap_err();
    assert_eq!(invalid.code, "idempotency-key-quotes");
}

#[test]
fn cloud_tasks_names_queue_and_task() {
    let delivery = seen(CLOUD_TASK, "body");
    assert_eq!(delivery.source, Source::CloudTasks);
    assert_eq!(delivery.payload, "body");
    let transport = Transport {
        queue: some("orders"),
        task_name: some("5290176713416474511"),
        retry_count: Some(3),
        execution_count: Some(2),
        previous_response: Some(429),
        ..Transport::default()
    };
    assert_eq!(delivery.transport, transport);
}

#[test]
fn app_engine_spells_it_otherwise() {
    let delivery = seen(APP_ENGINE_TASK, "");
    let transport = Transport {
        queue: some("default"),
        task_name: some("invoice-7"),
        retry_count: Some(1),
        execution_count: Some(0),
        previous_response: Some(0),
        ..Transport::default()
    };
    assert_eq!(delivery.transport, transport);
}

#[test]
fn a_wrapped_push_is_its_message() {
    let delivery = seen(&[("content-type", "application/json")], HELLO);
    is_hello(&delivery, Source::PubSub);
}

#[test]
fn either_spelling_of_a_message_is_enough() {
    for message in [
        r#"{"messageId":"1","orderingKey":"k"}"#,
        r#"{"message_id":"1","ordering_key":"k"}"#,
        r#"{"messageId":"1","message_id":"1","orderingKey":"k","ordering_key":"k"}"#,
        r#"{"messageId":"1","message_id":"\u0031","orderingKey":"k"}"#,
    ] {
        let body = format!("{{\"message\":{message},\"subscription\":\"s\"}}");
        let delivery = read(&request(&[], body)).unwrap();
        assert_eq!(delivery.source, Source::PubSub);
        assert_eq!(delivery.transport.message_id, some("1"));
        assert_eq!(delivery.transport.ordering_key, some("k"));
        assert!(delivery.payload.is_empty());
    }
}

#[test]
fn a_trace_is_found_among_the_attributes() {
    let body = r#"{"message":{"messageId":"1","attributes":{"googclient_traceparent":"00-a"}},
        "subscription":"s"}"#;
    assert_eq!(seen(&[], body).transport.traceparent, some("00-a"));
    let both = seen(&[("traceparent", TRACE)], body);
    assert_eq!(both.transport.traceparent, some("00-a"));
    assert_eq!(both.transport.proxy_traceparent, some(TRACE));
}

#[test]
fn an_unwrapped_push_has_its_metadata_in_headers() {
    // Even a body that looks like an envelope is data here.
    for body in ["raw bytes", HELLO] {
        let delivery = seen(UNWRAPPED, body);
        assert_eq!(delivery.source, Source::PubSub);
        assert_eq!(delivery.payload, body);
        let transport = Transport {
            subscription: some(SUBSCRIPTION),
            message_id: some("2070443601311540"),
            ordering_key: some("order-7"),
            is_unwrapped: true,
            published_at: PUBLISHED.parse().ok(),
            traceparent: some(TRACE),
            ..Transport::default()
        };
        assert_eq!(delivery.transport, transport);
        let attributes = json!({"region": "eu", "googclient_traceparent": TRACE});
        assert_eq!(delivery.attributes, map(attributes));
    }
}

#[test]
fn a_header_that_is_there_twice_is_no_attribute() {
    let twice = [UNWRAPPED, &[("region", "us")]].concat();
    let delivery = seen(&twice, "");
    assert!(!delivery.attributes.contains_key("region"));
}

#[test]
fn a_binary_event_has_its_attributes_in_headers() {
    let delivery = seen(BINARY, r#"{"a":1}"#);
    assert_eq!(delivery.source, Source::CloudEvents);
    assert_eq!(delivery.payload, r#"{"a":1}"#);
    assert_eq!(delivery.transport.message_id, some("A234-1234-1234"));
    let ce = json!({
        "id": "A234-1234-1234", "source": "/mycontext", "type": "com.example.someevent", "specversion": "1.0",
        "subject": "Euro €", "shard": "seven", "datacontenttype": "application/json",
    });
    assert_eq!(delivery.ce, map(ce));
}

#[test]
fn a_structured_event_keeps_its_data_as_it_stands() {
    let body = r#"{"specversion":"1.0","id":"e-1","source":"/s","type":"t","shard":7,
        "data": {"z": 1.0, "a" : "\u00e9"} }"#;
    let delivery = seen(STRUCTURED, body);
    assert_eq!(delivery.source, Source::CloudEvents);
    assert_eq!(delivery.payload, r#"{"z": 1.0, "a" : "\u00e9"}"#);
    assert_eq!(delivery.transport.message_id, some("e-1"));
    let ce = json!({"specversion": "1.0", "id": "e-1", "source": "/s", "type": "t", "shard": "7"});
    assert_eq!(delivery.ce, map(ce));
}

#[test]
fn a_structured_event_may_carry_bytes() {
    let body = r#"{"specversion":"1.0","id":"e-1","source":"/s","type":"t",
        "datacontenttype":"image/png","data_base64":"iVBORw=="}"#;
    let delivery = seen(STRUCTURED, body);
    assert_eq!(&delivery.payload[..], b"\x89PNG");
    assert_eq!(delivery.ce["datacontenttype"], "image/png");
}

#[test]
fn eventarc_keeps_the_events_identity_and_the_messages_content() {
    let mut other_type = EVENTARC.to_vec();
    other_type.retain(|(name, _)| *name != "ce-type");
    other_type.push(("ce-type", "com.example.relayed"));
    for headers in [EVENTARC, &other_type] {
        let delivery = seen(headers, HELLO);
        is_hello(&delivery, Source::CloudEvents);
        assert_eq!(delivery.ce["id"], "2070443601311540");
        assert_eq!(delivery.ce["source"], TOPIC);
    }
}

#[test]
fn eventarc_events_may_be_structured_too() {
    let body = format!(
        r#"{{"specversion":"1.0","id":"e-1","source":"//pubsub","datacontenttype":"application/json",
        "type":"google.cloud.pubsub.topic.v1.messagePublished","data":{HELLO}}}"#
    );
    let delivery = read(&request(STRUCTURED, body)).unwrap();
    assert_eq!(delivery.payload, "Hello");
    assert_eq!(delivery.transport.message_id, some("e-1"));
    assert_eq!(delivery.transport.delivery_attempt, Some(5));
}

#[test]
fn repeats_of_one_message_have_one_payload_however_often_they_come() {
    let later = HELLO.replace("\"deliveryAttempt\":5", "\"deliveryAttempt\":6");
    assert_ne!(later, HELLO);
    for headers in [EVENTARC, &[]] {
        let first = read(&request(headers, HELLO)).unwrap();
        let second = read(&request(headers, later.clone())).unwrap();
        assert_eq!(first.payload, second.payload);
        assert_eq!(first.ce, second.ce);
        assert_eq!(first.attributes, second.attributes);
        assert_eq!(second.transport.delivery_attempt, Some(6));
    }
}

#[test]
fn a_route_fixed_to_pubsub_reads_the_envelope_of_an_event() {
    let delivery = source::read(Source::PubSub, &request(EVENTARC, HELLO)).unwrap();
    assert_eq!(delivery.source, Source::PubSub);
    assert_eq!(delivery.payload, "Hello");
    assert!(delivery.ce.is_empty());
}

#[test]
fn a_route_fixed_to_api_takes_every_form_as_it_is() {
    for headers in [CLOUD_TASK, EVENTARC, UNWRAPPED, BINARY, STRUCTURED] {
        let delivery = source::read(Source::Api, &request(headers, HELLO)).unwrap();
        assert_eq!(delivery.source, Source::Api);
        assert_eq!(delivery.payload, HELLO);
        assert!(delivery.attributes.is_empty() && delivery.ce.is_empty());
    }
}

/// Each request must be refused with its word, and the sender told that a retry is of no use.
fn all_refused(fixed: Option<Source>, cases: &[(Headers<'_>, &str, &str)]) {
    for (headers, body, code) in cases {
        let invalid = refused(fixed, headers, body);
        assert_eq!(invalid.code, *code, "{headers:?} {body}");
        let hopeless = "; a retry of the same delivery fails again";
        assert!(invalid.detail.ends_with(hopeless), "{invalid}");
    }
}

#[test]
fn a_task_without_a_name_is_refused() {
    let (queue, task) = ("cloud-tasks-no-queue", "cloud-tasks-no-task-name");
    all_refused(Some(Source::CloudTasks), &[(&[], "{}", queue)]);
    let cases: [(Headers<'_>, &str, &str); 4] = [
        (&[("x-cloudtasks-taskname", "7")], "{}", queue),
        (&[("x-cloudtasks-queuename", "q")], "{}", task),
        (&[("x-appengine-taskname", "7")], "{}", queue),
        (&[("x-appengine-queuename", "q")], "{}", task),
    ];
    all_refused(None, &cases);
}

#[test]
fn a_push_that_names_nothing_is_refused() {
    let cut = &HELLO[..HELLO.len() - 1];
    let fixed: [(Headers<'_>, &str, &str); 5] = [
        (&[], "raw", "pubsub-no-identity"),
        (&[], "", "pubsub-no-identity"),
        (&[], r#"{"order":7}"#, "pubsub-no-identity"),
        (CLOUD_TASK, "{}", "pubsub-no-identity"),
        (&[], cut, "json-broken"),
    ];
    all_refused(Some(Source::PubSub), &fixed);

    let (id, subscription) = (MESSAGE_ID, "x-goog-pubsub-subscription-name");
    let unpadded = HELLO.replace("SGVsbG8=", "SGVsbG8");
    let number = HELLO.replace("\"eu\"", "7");
    let differing = HELLO.replacen("1540", "1541", 1);
    let long = HELLO.replace("order-7", &"k".repeat(8193));
    let seen: [(Headers<'_>, &str, &str); 7] = [
        (&[(id, "7")], "raw", "pubsub-no-subscription"),
        (&[(subscription, "s")], "raw", "pubsub-no-message-id"),
        (
            &[(subscription, "s"), (id, "")],
            "raw",
            "pubsub-no-message-id",
        ),
        (&[], &unpadded, "pubsub-bad-data"),
        (&[], &number, "pubsub-bad-attributes"),
        (&[], &differing, "pubsub-message-ids-differ"),
        (&[], &long, "name-too-long"),
    ];
    all_refused(None, &seen);
}

#[test]
fn an_event_that_names_nothing_is_refused() {
    let no_event = "cloudevents-no-event";
    let fixed: [(Headers<'_>, &str, &str); 2] = [(&[], "{}", no_event), (&[], HELLO, no_event)];
    all_refused(Some(Source::CloudEvents), &fixed);

    let batch: Headers<'_> = &[("content-type", "application/cloudevents-batch+json")];
    let avro: Headers<'_> = &[("content-type", "application/cloudevents+avro")];
    let cases: [(Headers<'_>, &str, &str); 6] = [
        (&[("ce-id", "%ff")], "{}", "cloudevents-not-text"),
        (EVENTARC, "raw", "pubsub-no-identity"),
        (STRUCTURED, "[]", "json-not-object"),
        (STRUCTURED, "{", "json-broken"),
        (batch, "[]", "cloudevents-batch"),
        (avro, "x", "cloudevents-unknown-format"),
    ];
    all_refused(None, &cases);
    let twice = [BINARY, &[("ce-id", "other")]].concat();
    assert_eq!(refused(None, &twice, "{}").code, "header-repeated");
}

#[test]
fn an_event_lacks_none_of_its_four_attributes() {
    let missing = "cloudevents-missing-attribute";
    for name in ["id", "source", "type", "specversion"] {
        let header = format!("ce-{name}");
        let mut rest = BINARY.to_vec();
        rest.retain(|(name, _)| *name != header);
        assert_eq!(rest.len(), BINARY.len() - 1);
        all_refused(None, &[(&rest, "{}", missing)]);
        rest.push((&header, ""));
        all_refused(None, &[(&rest, "{}", missing)]);

        for instead in ["other", name] {
            let value = if instead == name { "7" } else { "\"x\"" };
            let body = EVENT.replace(
                &format!("\"{name}\":\"1.0\""),
                &format!("\"{instead}\":{value}"),
            );
            assert_ne!(body, EVENT);
            all_refused(None, &[(STRUCTURED, &body, missing)]);
        }
    }
}

#[test]
fn a_structured_event_that_can_be_read_two_ways_is_refused() {
    let with = |member: &str| EVENT.replace('}', &format!(",{member}}}"));
    let old = EVENT.replace("\"specversion\":\"1.0\"", "\"specversion\":\"0.3\"");
    let two_data = with(r#""data":1,"data_base64":"AA==""#);
    let cases: [(Headers<'_>, &str, &str); 4] = [
        (STRUCTURED, &old, "cloudevents-unknown-version"),
        (STRUCTURED, &with(r#""id":"2""#), "json-repeated-member"),
        (STRUCTURED, &two_data, "cloudevents-two-data"),
        (
            STRUCTURED,
            &with(r#""data_base64":"A""#),
            "cloudevents-bad-data",
        ),
    ];
    all_refused(None, &cases);
    assert!(read(&request(STRUCTURED, EVENT)).is_ok());
}

#[test]
fn too_many_attributes_are_refused() {
    let many: Vec<String> = (0..257).map(|n| format!("\"a{n}\":\"\"")).collect();
    let body = HELLO.replace("\"region\":\"eu\"", &many.join(","));
    assert_eq!(refused(None, &[], &body).code, "json-too-many-members");
}

#[test]
fn a_refusal_never_quotes_the_body() {
    let secret = "4111-1111";
    for body in [
        secret.to_owned(),
        format!("{{\"{secret}\": {secret}"),
        format!("{{\"{secret}\":1}}"),
        HELLO.replace("SGVsbG8=", secret),
        HELLO.replace("\"eu\"", secret),
        HELLO.replace("\"region\":\"eu\"", &format!("\"{secret}\":[\"{secret}\"]")),
        HELLO.replacen("2070443601311540", secret, 1),
    ] {
        let invalid = refused(Some(Source::PubSub), &[], &body);
        assert!(!invalid.detail.contains("4111"), "{invalid}");
        let invalid = refused(None, STRUCTURED, &body);
        assert!(!invalid.detail.contains("4111"), "{invalid}");
    }
}

/// Bodies that are nearly right: a real one with some bytes struck out, replaced or doubled.
fn nearly() -> impl Strategy<Value = Vec<u8>> {
    let event = format!(
        r#"{{"specversion":"1.0","id":"e","source":"s","type":"t","data":{HELLO},"data_base64":null}}"#
    );
    let real = prop_oneof![Just(HELLO.to_owned()), Just(event)];
    let edits = prop::collection::vec((any::<prop::sample::Index>(), 0..3_u8, any::<u8>()), 0..8);
    (real, edits).prop_map(|(real, edits)| {
        let mut body = real.into_bytes();
        for (at, edit, byte) in edits {
            let at = at.index(body.len());
            match edit {
                0 => drop(body.remove(at)),
                1 => body[at] = byte,
                _ => body.insert(at, body[at]),
            }
        }
        body
    })
}

fn any_headers() -> impl Strategy<Value = Vec<(&'static str, Vec<u8>)>> {
    let names: Vec<&str> = [CLOUD_TASK, APP_ENGINE_TASK, UNWRAPPED, BINARY]
        .concat()
        .into_iter()
        .map(|(name, _)| name)
        .chain(["traceparent", "idempotency-key"])
        .collect();
    let nearly_values = vec![
        "1.0",
        "%e2%82",
        "\"a\\",
        "%4",
        "application/cloudevents+json",
    ];
    let value = prop_oneof![
        prop::collection::vec(prop_oneof![32..=126_u8, 128..=255_u8], 0..12),
        prop::sample::select(nearly_values).prop_map(|text| text.as_bytes().to_vec()),
    ];
    prop::collection::vec((prop::sample::select(names), value), 0..8)
}

proptest! {
    #[test]
    fn no_request_makes_the_gate_panic(
        headers in any_headers(),
        body in prop_oneof![nearly(), prop::collection::vec(any::<u8>(), 0..64)],
        event in any::<bool>(),
    ) {
        let fixed_headers = if event { BINARY } else { &[] };
        let mut request = request(fixed_headers, body);
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            request.headers_mut().append(name, HeaderValue::from_bytes(&value).unwrap());
        }
        let seen = source::sender(&Source::ALL, &request);
        for source in [seen].into_iter().chain(Source::ALL) {
            match source::read(source, &request) {
                Ok(delivery) => {
                    prop_assert_eq!(source, delivery.source);
                    prop_assert!(delivery.payload.len() <= request.body().len());
                    if let Ok(Some(key)) = delivery.value(&request, "header:idempotency-key") {
                        prop_assert!((1..=255).contains(&key.len()) && key.is_ascii());
                    }
                }
                Err(invalid) => prop_assert!(!invalid.code.is_empty() && source != Source::Api),
            }
        }
    }

    #[test]
    fn a_structured_event_reads_any_bytes_without_panic(body in nearly()) {
        if let Ok(delivery) = read(&request(STRUCTURED, body)) {
            prop_assert!(delivery.transport.message_id.is_some());
            prop_assert!(delivery.ce.contains_key("source"));
        }
    }
}
