//! What counts as the same work: other work under a known key is never answered as a duplicate, and an
//! honest repeat always is, however it is written.

use crate::support::prelude::*;

const ORDER: &str = r#"{"id": 7, "sku": "A-1"}"#;

/// A gate whose one route takes all below `/orders/`, and names work by the order.
async fn orders(change: impl FnOnce(&mut Route)) -> Bed {
    Bed::route(|route| {
        route.path = "/orders/*".parse().unwrap();
        keyed_by(route, "/id");
        change(route);
    })
    .await
}

fn sends(sender: Sender, payload: &str) -> Ask {
    sender.sends("any", payload).path("/orders/eu")
}

fn push(attributes: &serde_json::Value) -> Ask {
    sends(Sender::Push, "").body(envelope("any", ORDER, attributes))
}

fn event(kind: &str) -> Ask {
    sends(Sender::Event, ORDER)
        .without("ce-type")
        .header("ce-type", kind)
}

/// The second delivery is other work: it ran nothing and is not lost.
async fn are_different(first: &Ask, second: &Ask) {
    differ(&orders(|_| {}).await, first, second).await;
}

/// The same at this gate.
async fn differ(bed: &Bed, first: &Ask, second: &Ask) {
    bed.ask(first.clone()).await.is(200);
    let runs = bed.runs();
    let answer = bed.ask(second.clone()).await;
    let is_api = first.headers.iter().any(|(name, _)| name == "X-Caller");
    if is_api {
        answer.is_problem(422, "mismatched");
        assert_eq!(bed.letters().await.len(), 0);
    } else {
        answer.is(200);
        let letters = bed.letters().await;
        assert_eq!(letters.len(), 1, "{second:?}");
        assert_eq!(letters[0].reason, Reason::Mismatched);
        assert!(letters[0].delivery.ends_with(&second.body));
    }
    assert_eq!((runs, bed.runs()), (1, 1), "{second:?}");
}

/// The second delivery is the first one again.
async fn are_the_same(first: &Ask, second: &Ask) {
    agree(&orders(|_| {}).await, first, second).await;
}

/// The same at this gate.
async fn agree(bed: &Bed, first: &Ask, second: &Ask) {
    bed.ask(first.clone()).await.is(200);
    let answer = bed.ask(second.clone()).await;
    assert_eq!(answer.status, 200, "{second:?}: {answer:?}");
    let kept = (bed.runs(), bed.letters().await.len());
    assert_eq!(kept, (1, 0), "{second:?}");
}

#[tokio::test]
async fn an_event_of_another_type_subject_or_schema_is_other_work() {
    let created = event("order.created");
    for other in [
        event("order.cancelled"),
        event("order.created").header("ce-subject", "eu"),
        event("order.created").header("ce-dataschema", "/v2"),
    ] {
        are_different(&created, &other).await;
    }
    let [eu, us] = ["eu", "us"].map(|subject| created.clone().header("ce-subject", subject));
    are_different(&eu, &us).await;
}

#[tokio::test]
async fn an_event_that_is_sent_again_is_the_same_work() {
    let first = event("order.created").header("ce-time", "2026-11-16T10:00:00Z");
    let again = event("order.created")
        .without("ce-id")
        .header("ce-id", "another")
        .header("ce-time", "2026-11-16T10:00:09Z")
        .header("ce-traceparent", "00-a")
        .path("/orders/eu?token=rotated");
    are_the_same(&first, &again).await;
}

#[tokio::test]
async fn a_structured_event_is_the_same_work_as_a_binary_one() {
    let structured = |rest: &str| {
        let context = r#""specversion":"1.0","id":"e","source":"/orders","type":"order.placed""#;
        let body = format!(r#"{{"time":"2026-11-16T10:00:00Z",{context},{rest}}}"#);
        let media_type = "application/cloudevents+json; charset=utf-8";
        let ask = Ask::post("/orders/eu").header("Content-Type", media_type);
        ask.body(body)
    };
    let binary = |content_type: &str, body: &str| {
        sends(Sender::Event, body).header("Content-Type", content_type)
    };
    let data = r#""data" : { "sku":"\u0041-1", "id":7.0 }"#;
    let json = binary("application/json", ORDER);
    are_the_same(&json, &structured(data)).await;
    are_the_same(&sends(Sender::Event, ORDER), &structured(data)).await;
    let encoded = r#""datacontenttype":"application/vnd.x+json","data_base64":"eyJpZCI6Nywic2t1IjoiQS0xIn0=""#;
    are_the_same(&json, &structured(encoded)).await;

    let by_id = |route: &mut Route| keyed_by(route, "ce:source");
    let plain = binary("text/plain", "say \"hi\"");
    let text = r#""datacontenttype":"text/plain","data":"say \"hi\"""#;
    agree(&orders(by_id).await, &plain, &structured(text)).await;
    let other = r#""datacontenttype":"text/plain","data":"say \"ho\"""#;
    differ(&orders(by_id).await, &plain, &structured(other)).await;
}

#[tokio::test]
async fn a_message_with_another_attribute_is_other_work() {
    let created = push(&json!({"type": "order.created"}));
    let cancelled = push(&json!({"type": "order.cancelled"}));
    are_different(&created, &cancelled).await;
    are_different(&created, &push(&json!({}))).await;
    let more = push(&json!({"type": "order.created", "urgent": ""}));
    are_different(&created, &more).await;
}

#[tokio::test]
async fn attributes_of_the_transport_do_not_make_other_work() {
    let first = push(&json!({"type": "t", "published_at": "1", "trace_id": "a"}));
    let again = push(&json!({
        "type": "t", "published_at": "2", "trace_span": "b",
        "googclient_traceparent": "00-a", "googclient_schemaencoding": "JSON",
        "CloudPubSubDeadLetterSourceDeliveryCount": "5", "CloudPubSubDeadLetterSourceSubscription": "s",
        "traceparent": "00-b", "tracestate": "x", "baggage": "y",
    }));
    let ignores = |route: &mut Route| {
        route.fingerprint_ignores = vec!["published_at".into(), "trace_*".into()];
    };
    agree(&orders(ignores).await, &first, &again).await;
    are_different(&first, &again).await;
}

#[tokio::test]
async fn a_message_of_eventarc_is_compared_by_attributes_and_data() {
    let carries = |id: &str, attributes: serde_json::Value, data: &str| {
        let kind = "google.cloud.pubsub.topic.v1.messagePublished";
        event(kind)
            .header("Content-Type", "application/json")
            .body(envelope(id, data, &attributes))
    };
    let first = carries("1", json!({"type": "created"}), ORDER);
    let attributes = json!({"type": "created", "googclient_x": "1"});
    let again = carries("2", attributes, r#"{"sku":"A-1","id":7}"#);
    are_the_same(&first, &again).await;
    let cancelled = carries("1", json!({"type": "cancelled"}), ORDER);
    are_different(&first, &cancelled).await;
}

#[tokio::test]
async fn headers_of_an_unwrapped_push_count_only_where_they_are_named() {
    let unwrapped = |kind: &str, forwarded: &str| {
        Ask::post("/orders/eu")
            .header("x-goog-pubsub-subscription-name", "s")
            .header("x-goog-pubsub-message-id", "1")
            .header("x-forwarded-for", forwarded)
            .header("type", kind)
            .body(ORDER)
    };
    let [first, again] = ["10.0.0.1", "10.0.0.2"].map(|by| unwrapped("created", by));
    let cancelled = unwrapped("cancelled", "10.0.0.1");
    let named = |route: &mut Route| {
        route.fingerprint = FingerprintRule::With(vec!["attribute:type".into()]);
    };
    are_the_same(&first, &again).await;
    are_the_same(&first, &cancelled).await;
    agree(&orders(named).await, &first, &again).await;
    differ(&orders(named).await, &first, &cancelled).await;
}

#[tokio::test]
async fn another_path_or_method_is_other_work() {
    for sender in SENDERS {
        let first = sends(sender, ORDER);
        let elsewhere = first.clone().path("/orders/us");
        are_different(&first, &elsewhere).await;
    }
    // A client's method is in the key.
    for sender in BROKERS {
        let first = sends(sender, ORDER);
        let put = first.clone().method(Method::PUT);
        are_different(&first, &put).await;
    }
}

#[tokio::test]
async fn another_query_is_other_work_where_the_sender_chose_it_for_this_work() {
    for sender in SENDERS {
        let first = sends(sender, ORDER).path("/orders/eu?token=1");
        let other = sends(sender, ORDER).path("/orders/eu?token=2");
        match sender {
            Sender::Api | Sender::Task => are_different(&first, &other).await,
            Sender::Push | Sender::Event => are_the_same(&first, &other).await,
        }
    }
}

#[tokio::test]
async fn equal_json_is_the_same_work_where_the_sender_says_json() {
    let again = "{ \"sku\":\"\\u0041-1\",\n\"id\":7e0 }";
    for sender in SENDERS {
        let plain = [ORDER, again].map(|body| sends(sender, body));
        let json = plain.clone().map(|ask| {
            let ask = ask.without("Content-Type");
            ask.header("Content-Type", "application/json; charset=utf-8")
        });
        are_the_same(&json[0], &json[1]).await;
        match sender {
            Sender::Api | Sender::Task => are_different(&plain[0], &plain[1]).await,
            Sender::Push | Sender::Event => are_the_same(&plain[0], &plain[1]).await,
        }
        let changed = json[1].clone().body(match sender {
            Sender::Push => envelope("any", r#"{"id":7,"sku":"A-2"}"#, &json!({})),
            Sender::Api | Sender::Task | Sender::Event => r#"{"id":7,"sku":"A-2"}"#.to_owned(),
        });
        are_different(&json[0], &changed).await;
    }
}

#[tokio::test]
async fn the_payload_alone_or_nothing_is_compared_where_the_route_says_so() {
    let payload = |route: &mut Route| route.fingerprint = FingerprintRule::Payload;
    let off = |route: &mut Route| route.fingerprint = FingerprintRule::Off;
    let (created, cancelled) = (event("order.created"), event("order.cancelled"));
    agree(&orders(payload).await, &created, &cancelled).await;
    let [first, other] = [ORDER, r#"{"id":7}"#].map(|body| sends(Sender::Task, body));
    differ(&orders(payload).await, &first, &other).await;
    agree(&orders(off).await, &first, &other).await;
}

#[tokio::test]
async fn a_name_beside_the_payload_is_added_to_all_else() {
    let named = |route: &mut Route| {
        route.fingerprint = FingerprintRule::With(vec!["header:x-version".into()]);
    };
    let first = sends(Sender::Task, ORDER).header("x-version", "1");
    let other = sends(Sender::Task, ORDER).header("x-version", "2");
    differ(&orders(named).await, &first, &other).await;
    let elsewhere = first.clone().path("/orders/us");
    differ(&orders(named).await, &first, &elsewhere).await;
}

// === The key ===

#[tokio::test]
async fn an_empty_key_part_names_nothing() {
    for sender in SENDERS {
        let bed = orders(|_| {}).await;
        let answer = bed.ask(sends(sender, r#"{"id":""}"#)).await;
        match sender {
            Sender::Api => answer.is_problem(400, "key-part-malformed"),
            Sender::Task | Sender::Push | Sender::Event => answer.is(200),
        };
        let kept = usize::from(sender != Sender::Api);
        assert_eq!((bed.runs(), bed.letters().await.len()), (0, kept));
        // Zero is a number.
        bed.ask(sends(sender, r#"{"id":0}"#)).await.is(200);
        assert_eq!(bed.runs(), 1);
    }
    let bed = orders(|route| keyed_by(route, "header:x-id")).await;
    let answer = bed.ask(sends(Sender::Api, "{}").header("x-id", "")).await;
    answer.is_problem(400, "key-part-malformed");
    answer.tells("header:x-id is empty");
}

#[tokio::test]
async fn null_and_empty_containers_are_missing_key_parts() {
    let bed = orders(|_| {}).await;
    for nothing in ["null", "[]", "{}"] {
        let payload = format!(r#"{{"id":{nothing}}}"#);
        let answer = bed.ask(sends(Sender::Api, &payload)).await;
        answer.is_problem(400, "key-part-missing");
        answer.tells("/id?null");
        // A second order without an id is one more letter, and not a mismatch.
        for task in ["1", "2"] {
            let task = Sender::Task.sends(&format!("{nothing}{task}"), &payload);
            bed.ask(task.path("/orders/eu")).await.is(200);
        }
    }
    let letters = bed.letters().await;
    assert_eq!((bed.runs(), letters.len()), (0, 6));
    assert!(letters.iter().all(|it| it.reason == Reason::Invalid));
    let bed = orders(|route| keyed_by(route, "/id?null")).await;
    let null = sends(Sender::Task, r#"{"id":null}"#);
    agree(&bed, &null, &null).await;
}

#[tokio::test]
async fn what_a_route_requires_is_not_null_unless_it_says_so() {
    let bed = Bed::route(|route| route.require = vec!["/id".into(), "/lines?null".into()]).await;
    let ask = |id: &str| Sender::Api.sends("1", &format!(r#"{{"id":{id},"lines":[]}}"#));
    for nothing in ["null", "[ ]", "{}"] {
        let answer = bed.ask(ask(nothing)).await;
        answer.is_problem(400, "required-part-missing");
        answer.tells("/id?null");
    }
    bed.ask(ask("0")).await.is(200);
    assert_eq!(bed.runs(), 1);
}

#[tokio::test]
async fn numbers_that_a_double_would_merge_are_different_work() {
    for sender in SENDERS {
        let priced = |price: &str| sends(sender, &format!(r#"{{"id":7,"price":{price}}}"#));
        let (first, other) = (
            priced("1.000000000000000001"),
            priced("1.000000000000000002"),
        );
        let json = |ask: Ask| {
            ask.without("Content-Type")
                .header("Content-Type", "application/json")
        };
        let (first, other) = (json(first), json(other));
        are_different(&first, &other).await;
        are_the_same(&first, &json(priced("1000000000000000001e-18"))).await;
        let bed = orders(|_| {}).await;
        let answer = bed
            .ask(sends(Sender::Api, r#"{"id":1.000000000000000001}"#))
            .await;
        answer.is_problem(400, "key-part-malformed");
        answer.tells("1.000000000000000001");
    }
}

#[tokio::test]
async fn a_form_body_names_its_work_by_a_field() {
    let bed = Bed::route(|route| {
        keyed_by(route, "form:MessageSid");
        route.require = vec!["form:From".into()];
    })
    .await;
    let ask = |body: &str| {
        Ask::post("/work")
            .header(
                "Content-Type",
                "application/x-www-form-urlencoded; charset=UTF-8",
            )
            .header("X-Twilio-Signature", "0/KCTR6DLpKmkAf8muzZqo1nDgQ=")
            .header("X-Caller", "twilio")
            .body(body.to_owned())
    };
    let body = |sid: &str| {
        format!(
            "ToCountry=DE&MessageSid={sid}&SmsStatus=received&Body=a+b%26c&From=%2B4930901820&NumMedia=0"
        )
    };
    bed.ask(ask(&body("SM1f0e"))).await.is(200);
    bed.ask(ask(&body("SM1f0e"))).await.is_replay(200);
    bed.ask(ask(&body("SM1f0f"))).await.is(200);
    assert_eq!(bed.runs(), 2);
    for (bad, code) in [
        ("Body=x&From=y", "key-part-missing"),
        ("MessageSid=&From=y", "key-part-malformed"),
        ("MessageSid=1&MessageSid=2&From=y", "key-part-malformed"),
        ("MessageSid=1", "required-part-missing"),
    ] {
        refused(&bed, ask(bad), 400, code).await;
    }
    assert_eq!(bed.runs(), 2);
}

#[tokio::test]
async fn an_envelope_names_its_work_by_the_json_in_a_string() {
    let bed = Bed::route(|route| {
        keyed_by(route, "/Message~json/order");
        route.require = vec!["/Message~json/lines/0".into()];
    })
    .await;
    let ask = |message: &str| {
        let envelope = serde_json::json!({
            "Type": "Notification",
            "MessageId": "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",
            "TopicArn": "arn:aws:sns:eu-central-1:123456789012:orders",
            "Message": message,
            "Timestamp": "2026-11-19T00:00:00.000Z",
        });
        Ask::post("/work")
            .header("Content-Type", "text/plain; charset=UTF-8")
            .header("x-amz-sns-message-type", "Notification")
            .header("X-Caller", "sns")
            .body(envelope.to_string())
    };
    let message = |order| format!(r#"{{"order": "{order}", "lines": [1]}}"#);
    bed.ask(ask(&message("A-1"))).await.is(200);
    bed.ask(ask(&message("A-1"))).await.is_replay(200);
    bed.ask(ask(&message("A-2"))).await.is(200);
    assert_eq!(bed.runs(), 2);
    for (bad, code) in [
        (r#"{"order":null,"lines":[1]}"#, "key-part-missing"),
        ("not JSON", "required-part-missing"),
        (r#"{"order":"A-3","lines":[]}"#, "required-part-missing"),
        (
            r#"{"order":1,"order":2,"lines":[1]}"#,
            "required-part-missing",
        ),
    ] {
        refused(&bed, ask(bad), 400, code).await;
    }
    assert_eq!(bed.runs(), 2);
}

#[tokio::test]
async fn what_a_route_requires_is_read_as_strictly_as_its_key() {
    let bed = orders(|route| {
        route.sources = vec![Source::Api];
        keyed_by(route, "idempotency-key");
        route.require = vec!["/sku".into(), "/lines/0".into()];
    })
    .await;
    let ask = |key: &str, body: &str| Sender::Api.sends(key, body).path("/orders/eu");
    let good = r#"{"lines":[{"n":1}],"sku":""}"#;
    bed.ask(ask("1", good)).await.is(200);
    for bad in [
        r#"{"lines":[],"sku":1}"#,
        r#"{"lines":[1],"sku":1,"sku":2}"#,
        "not JSON",
    ] {
        refused(&bed, ask("2", bad), 400, "required-part-missing").await;
    }
    assert_eq!(bed.runs(), 1);
}

#[tokio::test]
async fn memory_for_reading_counts_as_bodies_in_hand() {
    let bed = Bed::with(|settings| {
        settings.bodies_bytes_max = 100_000;
        keyed_by(&mut settings.routes[0], "/id");
    })
    .await;
    let members: Vec<_> = (1000..6000).map(|n| format!("\"{n}\":1")).collect();
    let costly = format!("{{\"id\":1,{}}}", members.join(","));
    let cheap = format!("{{\"id\":2,\"text\":\"{}\"}}", "x".repeat(costly.len()));
    assert!(costly.len() < 50_000);
    for (sender, status) in [(Sender::Api, 429), (Sender::Task, 409)] {
        let answer = refused(&bed, sender.sends("n", &costly), status, "no-room").await;
        assert!(answer.retry_after() >= 1);
    }
    assert_eq!((bed.runs(), bed.letters().await.len()), (0, 0));
    bed.ask(Sender::Task.sends("n", &cheap)).await.is(200);
    assert_eq!(bed.runs(), 1);
}
