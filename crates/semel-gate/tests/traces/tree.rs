//! The tree of spans of one delivery, and what each of them says.

use super::*;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use semel_gate::settings::Sampler;

/// A push whose message carries its publisher's trace, on a way that has one of its own.
fn push(id: &str) -> Ask {
    let attributes = json!({"googclient_traceparent": TRACE, "googclient_tracestate": "shop=1"});
    Ask::post("/work?token=secret")
        .header(
            "traceparent",
            &TRACE.replace("00f067aa0ba902b7", "1111111111111111"),
        )
        .header("tracestate", "proxy=1")
        .body(envelope(id, "{}", &attributes))
}

#[tokio::test]
async fn a_delivery_is_a_tree_of_spans_over_grpc_and_over_http() {
    for protocol in PROTOCOLS {
        let receiver = Receiver::start().await;
        let mut to = otlp(&receiver, protocol);
        to.headers.insert("api-key", "mine".parse().unwrap());
        to.resource = vec![("service.name".into(), "orders".into())];
        let bed = Bed::with(|settings| settings.otlp = Some(to)).await;
        let seen = bed.forwards(push("m-7")).await;

        let spans = receiver.spans(4).await;
        assert_eq!(spans.len(), 4, "{spans:#?}");
        for it in &spans {
            assert_eq!(it.resource["service.name"], "orders");
            assert_eq!(it.headers["api-key"], "mine");
            assert_eq!(hex::encode(&it.span.trace_id), &TRACE[3..35]);
            assert_eq!(it.error(), None);
        }
        let delivery = named(&spans, "process orders");
        assert_eq!(hex::encode(&delivery.span.parent_span_id), &TRACE[36..52]);
        assert_eq!(
            delivery.span.flags, 0x301,
            "the parent is another process's"
        );
        assert_eq!(delivery.span.trace_state, "shop=1");
        assert_eq!(
            delivery.links(),
            [TRACE.replace("00f067aa0ba902b7", "1111111111111111")]
        );
        for (name, kind) in [
            ("claim", SpanKind::Internal),
            ("POST", SpanKind::Client),
            ("record", SpanKind::Internal),
        ] {
            let child = &named(&spans, name).span;
            assert_eq!(child.parent_span_id, delivery.span.span_id, "{name}");
            assert_eq!(child.kind(), kind, "{name}");
            assert!(delivery.span.start_time_unix_nano <= child.start_time_unix_nano);
            assert!(child.start_time_unix_nano <= child.end_time_unix_nano);
            assert!(child.end_time_unix_nano <= delivery.span.end_time_unix_nano);
        }
        let call = named(&spans, "POST");
        seen.has("traceparent", &call.context())
            .has("tracestate", "shop=1");
        let handler = bed.handler.address;
        call.has(&[
            ("http.request.method", "POST"),
            ("http.response.status_code", "200"),
            ("server.address", "127.0.0.1"),
            ("server.port", &handler.port().to_string()),
            ("url.full", &format!("http://{handler}/work")),
            ("semel.attempt", "1"),
        ]);
        named(&spans, "claim").has(&[("semel.claim", "granted")]);
        assert!(named(&spans, "record").attributes().is_empty());
        pushed(&bed, delivery).await;
    }
}

/// What the span of the push says.
async fn pushed(bed: &Bed, delivery: &Received) {
    assert_eq!(delivery.span.kind(), SpanKind::Consumer);
    let (key, record) = bed.records().await[0].clone();
    delivery.has(&[
        ("messaging.system", "gcp_pubsub"),
        ("messaging.operation.name", "process"),
        ("messaging.operation.type", "process"),
        ("messaging.destination.subscription.name", "orders"),
        ("messaging.message.id", "m-7"),
        ("messaging.message.body.size", "2"),
        ("messaging.gcp_pubsub.message.delivery_attempt", "3"),
        ("http.response.status_code", "200"),
        ("semel.key", &key.to_string()),
        ("semel.route", "work"),
        ("semel.source", "pubsub"),
        ("semel.outcome", "ran"),
        ("semel.fence", &record.fence.0.to_string()),
        ("semel.attempt", "1"),
    ]);
    let envelope: usize = delivery.attributes()["messaging.message.envelope.size"]
        .parse()
        .unwrap();
    assert!(envelope > 100, "{envelope}");
}

#[tokio::test]
async fn every_sender_has_the_names_that_the_conventions_give_it() {
    let (bed, receiver) = traced(|_| {}).await;
    let task = Sender::Task
        .sends("t-1", "{}")
        .header("X-CloudTasks-TaskRetryCount", "4");
    let event = Sender::Event
        .sends("e-1", "{}")
        .header("ce-subject", "order/7");
    for ask in [task, event, Sender::Api.sends("a-1", "{}")] {
        bed.ask(ask).await.is(200);
    }
    let spans = receiver.spans(12).await;
    let task = spans
        .iter()
        .find(|it| it.span.name == "process orders")
        .unwrap();
    task.has(&[
        ("messaging.system", "gcp_cloud_tasks"),
        ("messaging.destination.name", "orders"),
        ("messaging.message.id", "t-1"),
        ("semel.task.retry_count", "4"),
    ]);
    let event = named(&spans, "process work");
    event.has(&[
        ("messaging.system", "cloudevents"),
        ("cloudevents.event_id", "e-1"),
        ("cloudevents.event_source", "/orders"),
        ("cloudevents.event_type", "order.placed"),
        ("cloudevents.event_subject", "order/7"),
        ("cloudevents.event_spec_version", "1.0"),
    ]);
    let api = named(&spans, "POST /work");
    assert_eq!(api.span.kind(), SpanKind::Server);
    assert!(api.span.parent_span_id.is_empty() && api.span.flags == 1);
    api.has(&[("http.request.method", "POST"), ("http.route", "/work")]);
    assert!(
        api.attributes()
            .keys()
            .all(|name| !name.starts_with("messaging."))
    );
}

#[tokio::test]
async fn what_went_wrong_is_said_by_the_spans_it_went_wrong_in() {
    let (bed, receiver) = traced(|settings| {
        terms_of(&mut settings.routes[0], |terms| {
            terms.timeout = Duration::from_millis(50)
        });
        settings.routes[0].final_statuses = vec![422..=422];
    })
    .await;
    for (name, act, called, ended) in [
        ("1", Act::Say(Say::new(500, "no")), "500", "retryable"),
        ("2", Act::Hang, "timeout", "retryable"),
        ("3", Act::Close, "connection_cut", "retryable"),
        ("4", Act::Say(Say::new(422, "never")), "422", "failed"),
    ] {
        let before = receiver.so_far().len();
        bed.handler.will(act);
        bed.task(name).await;
        let spans = receiver.spans(before + 4).await.split_off(before);
        assert_eq!(named(&spans, "POST").error().as_deref(), Some(called));
        let delivery = named(&spans, "process orders");
        assert_eq!(delivery.error().as_deref(), Some(ended));
        delivery.has(&[("semel.outcome", ended)]);
        assert_eq!(named(&spans, "claim").error(), None);
    }
    // Without a key there is nothing to claim.
    let before = receiver.so_far().len();
    bed.ask(
        Ask::post("/work")
            .header("ce-id", "1")
            .header("ce-specversion", "1.0"),
    )
    .await;
    let spans = receiver.spans(before + 1).await.split_off(before);
    assert_eq!(
        named(&spans, "process work").error().as_deref(),
        Some("invalid")
    );
}

#[tokio::test]
async fn only_what_is_sampled_is_sent_and_the_handler_is_told() {
    let mut sampler = Sampler {
        parent_based: true,
        ratio: 0.0,
    };
    for by_sender in [true, false] {
        sampler.parent_based = by_sender;
        let (bed, receiver) = traced(|settings| {
            settings.otlp.as_mut().unwrap().sampler = sampler;
        })
        .await;
        for (name, trace) in [("1", UNSAMPLED), ("2", "none"), ("3", TRACE)] {
            let ask = Sender::Task.sends(name, "{}").header("traceparent", trace);
            let seen = bed.forwards(ask).await;
            let handed = seen.header("traceparent").unwrap();
            let sampled = by_sender && trace == TRACE;
            assert_eq!(handed.ends_with("-01"), sampled, "{handed} of {trace}");
        }
        // The queue keeps its order: what was not sampled would have come before.
        let ids = if by_sender { vec!["3"] } else { vec![] };
        let spans = receiver.spans(4 * ids.len()).await;
        let of = |it: &&Received| it.span.name.starts_with("process");
        let id = |it: &Received| it.attributes()["messaging.message.id"].clone();
        let found: Vec<_> = spans.iter().filter(of).map(id).collect();
        assert_eq!(found, ids);
        let (served, ..) = bed.stop();
        within("the end", served).await.unwrap();
        assert_eq!(receiver.so_far().len(), 4 * ids.len());
    }
}
