//! What crosses to the handler, and what comes back from it.

use crate::support::prelude::*;
use jiff::Timestamp;
use semel_gate::label::Label;
use semel_gate::settings::Caller;

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[tokio::test]
#[allow(
    clippy::disallowed_methods,
    reason = "compared with a deadline by the wall clock"
)]
async fn the_handler_is_told_the_names_of_its_run() {
    let words = ["api", "cloud-tasks", "pubsub", "cloudevents"];
    for (sender, word) in SENDERS.into_iter().zip(words) {
        let bed = Bed::new().await;
        let asked = Timestamp::now();
        let seen = bed.forwards(sender.sends("client-key", "{}")).await;
        let (key, record) = bed.records().await[0].clone();
        seen.has("semel-key", &key.to_string());
        assert_eq!(seen.header("idempotency-key"), seen.header("semel-key"));
        let fence = record.fence.to_string();
        seen.has("semel-fence", &fence).has("semel-attempt", "1");
        seen.has("semel-source", word);
        let deadline: Timestamp = seen.header("semel-deadline").unwrap().parse().unwrap();
        let left = deadline.duration_since(asked).as_secs_f64();
        assert!((9.9..20.0).contains(&left), "{left} s of a timeout of 10 s");
        let steps = seen.header("semel-steps").unwrap();
        assert!(steps.starts_with("http://127.0.0.1:"), "{steps}");
        assert!(steps.ends_with(&format!("/steps/{}", record.owner)));
    }
}

#[tokio::test]
async fn the_request_itself_crosses_as_it_came() {
    let bed = Bed::new().await;
    let ask = Sender::Task
        .sends("t", r#"{"order": 7}"#)
        .method(http::Method::PUT)
        .path("/work?x=%20y&z")
        .header("Content-Type", "application/json")
        .header("Authorization", "Bearer t")
        .header("X-Twice", "1");
    let seen = bed.forwards(ask).await;
    seen.is(&Method::PUT, "/work?x=%20y&z");
    assert_eq!(seen.body, r#"{"order": 7}"#);
    for (name, value) in [
        ("content-type", "application/json"),
        ("authorization", "Bearer t"),
        ("x-cloudtasks-queuename", "orders"),
        ("x-cloudtasks-taskname", "t"),
        ("x-twice", "1"),
    ] {
        seen.has(name, value);
    }
}

#[tokio::test]
async fn the_next_run_has_a_higher_fence_and_attempt_under_the_same_key() {
    let bed = Bed::new().await;
    bed.handler.says(500);
    bed.task("t").await.is(500);
    bed.task("t").await.is(200);
    let (first, second) = (bed.handler.arrived().await, bed.handler.arrived().await);
    let fence = |seen: &Seen| -> u64 { seen.header("semel-fence").unwrap().parse().unwrap() };
    assert!(fence(&second) > fence(&first));
    second.has("semel-attempt", "2");
    assert_eq!(second.header("semel-key"), first.header("semel-key"));
    assert_ne!(second.header("semel-steps"), first.header("semel-steps"));
}

#[tokio::test]
async fn what_belongs_to_one_connection_and_forged_names_do_not_cross() {
    let bed = Bed::new().await;
    let ask = Sender::Task
        .sends("t", "{}")
        .header("Connection", "close, X-Listed")
        .header("X-Listed", "1")
        .header("Keep-Alive", "timeout=5")
        .header("Proxy-Authorization", "Basic eA==")
        .header("Proxy-Connection", "keep-alive")
        .header("TE", "trailers")
        .header("Trailer", "X-Late")
        .header("Upgrade", "websocket")
        .header("Semel-Fence", "99")
        .header("Semel-Key", "forged")
        .header("Semel-Anything", "forged")
        .header("Idempotency-Key", "the-senders-own");
    bed.send_raw(&ask).await.is(200);
    let seen = bed.handler.arrived().await;
    let taken_away = "x-listed keep-alive proxy-authorization proxy-connection te trailer upgrade semel-anything";
    for name in taken_away.split(' ') {
        seen.lacks(name);
    }
    let connection = seen.header("connection").unwrap_or_default();
    assert!(!connection.contains("X-Listed"), "{connection}");
    assert!(seen.header("semel-key").unwrap().starts_with("v1_"));
    assert_ne!(seen.header("semel-fence"), Some("99"));
    assert_eq!(seen.header("idempotency-key"), seen.header("semel-key"));
}

#[tokio::test]
async fn a_chunked_body_crosses_in_a_frame_of_the_gates_own() {
    let bed = Bed::new().await;
    let raw = "POST /work HTTP/1.1\r\nhost: gate\r\nx-cloudtasks-queuename: q\r\n\
               x-cloudtasks-taskname: t\r\ntransfer-encoding: chunked\r\n\r\n\
               3\r\nabc\r\n4;ext=1\r\ndefg\r\n0\r\nx-late: 1\r\n\r\n";
    exchange(bed.gate, raw).await.is(200);
    let seen = bed.handler.arrived().await;
    seen.has("content-length", "7").lacks("transfer-encoding");
    seen.lacks("x-late");
    assert_eq!(seen.body, "abcdefg");
}

#[tokio::test]
async fn the_trace_is_the_headers_or_the_attributes_or_a_new_one() {
    let bed = Bed::new().await;
    let by_header = Sender::Task.sends("1", "{}").header("traceparent", TRACE);
    bed.forwards(by_header).await.has("traceparent", TRACE);
    let label = Label::read(&bed.record().await.label).unwrap();
    assert_eq!(label.traceparent, TRACE);

    let attributes = serde_json::json!({ "googclient_traceparent": TRACE });
    let by_attribute = Ask::post("/work").body(envelope("2", "{}", &attributes));
    let seen = bed.forwards(by_attribute).await;
    seen.has("traceparent", TRACE);

    let mut made = Vec::new();
    for name in ["3", "4"] {
        let seen = bed.forwards(Sender::Task.sends(name, "{}")).await;
        let trace = seen.header("traceparent").unwrap().to_owned();
        let lengths: Vec<_> = trace.split('-').map(str::len).collect();
        assert_eq!(lengths, [2, 32, 16, 2], "{trace}");
        made.push(trace);
    }
    assert_ne!(made[0], made[1]);
}

#[tokio::test]
async fn a_trace_that_no_header_can_carry_does_not_break_the_run() {
    let bed = Bed::new().await;
    let attributes = serde_json::json!({ "googclient_traceparent": "00-\u{e9}\n-\u{0}" });
    let ask = Ask::post("/work").body(envelope("1", "{}", &attributes));
    let seen = bed.forwards(ask).await;
    assert!(seen.header("traceparent").is_some());
    let label = Label::read(&bed.record().await.label).unwrap();
    assert_eq!(label.traceparent, "");
}

#[tokio::test]
async fn a_handler_on_another_host_is_told_of_steps_only_where_it_can_reach_them() {
    let elsewhere = || async { Handler::at("127.0.0.2:0".parse().unwrap()).await };
    let bed = Bed::on(Default::default(), elsewhere().await, |_| {}).await;
    let seen = bed.forwards(Sender::Task.sends("t", "{}")).await;
    seen.lacks("semel-steps");

    let bed = Bed::on(Default::default(), elsewhere().await, |settings| {
        settings.steps_url = Some("http://gate.internal:8082/".into());
    })
    .await;
    let seen = bed.forwards(Sender::Task.sends("t", "{}")).await;
    let steps = seen.header("semel-steps").unwrap();
    let own = "http://gate.internal:8082/steps/";
    assert!(steps.starts_with(own), "{steps}");
}

#[tokio::test]
async fn a_cookie_reaches_the_first_caller_and_never_a_replay() {
    let bed = Bed::new().await;
    let said = Say::new(200, "done")
        .header("set-cookie", "session=secret")
        .header("set-cookie", "other=secret")
        .header("www-authenticate", "Bearer secret")
        .header("authorization", "secret")
        .header("connection", "x-hop")
        .header("x-hop", "1")
        .header("semel-recorded", "forged");
    bed.handler.answers(said);
    let first = bed.api("k").await;
    first.is(200);
    assert_eq!(first.headers.get_all("set-cookie").iter().count(), 2);
    first.lacks("x-hop").lacks("semel-recorded");
    let replay = bed.api("k").await;
    replay.is_replay(200);
    let all = format!("{replay:?}");
    assert!(!all.contains("secret") && !all.contains("cookie"), "{all}");
    let kept = bed.record().await.result.unwrap();
    assert!(!String::from_utf8_lossy(&kept).contains("secret"));
}

#[tokio::test]
async fn a_duplicate_that_waited_does_not_get_the_cookie_either() {
    let bed = Bed::new().await;
    let said = Say::new(200, "done").header("set-cookie", "session=secret");
    let act = Act::Hold(said);
    let first = bed.begin_with(act, Sender::Api.sends("k", "{}")).await;
    let (_, attached) = bed.crowd(&Sender::Api.sends("k", "{}")).await;
    bed.handler.go();
    assert!(first.await.unwrap().header("set-cookie").is_some());
    for other in attached {
        let other = other.await.unwrap();
        other.is_replay(200).lacks("set-cookie");
    }
}

#[tokio::test]
async fn two_callers_with_the_same_key_never_share_an_answer() {
    let bed = Bed::new().await;
    let by = |caller: &str| {
        let ask = Sender::Api.sends("k", "{}").without("X-Caller");
        ask.header("X-Caller", caller)
    };
    assert_eq!(bed.ask(by("alice")).await.text(), "run 1");
    assert_eq!(bed.ask(by("bob")).await.text(), "run 2");
    assert_eq!(bed.ask(by("alice")).await.text(), "run 1");
    assert_eq!(bed.ask(by("bob")).await.text(), "run 2");
    assert_eq!(bed.runs(), 2);
    for nobody in [
        by(""),
        by("x").without("X-Caller"),
        by("alice").header("X-Caller", "bob"),
    ] {
        let answer = bed.ask(nobody).await;
        assert_eq!(answer.status, 400, "{answer:?}");
    }
    assert_eq!(bed.runs(), 2);
}

#[tokio::test]
async fn one_trusted_client_may_share_its_keys() {
    let bed = Bed::route(|route| route.caller = Some(Caller::Shared)).await;
    let ask = Sender::Api.sends("k", "{}").without("X-Caller");
    bed.ask(ask.clone()).await.is(200);
    bed.ask(ask.header("X-Caller", "bob")).await.is_replay(200);
}

#[tokio::test]
async fn the_same_key_with_another_method_is_other_work() {
    let bed = Bed::new().await;
    bed.api("k").await.is(200);
    let put = Sender::Api.sends("k", "{}").method(http::Method::PUT);
    bed.ask(put).await.is(200);
    assert_eq!(bed.runs(), 2);
}

#[tokio::test]
async fn an_expectation_is_answered_by_the_gate() {
    let bed = Bed::new().await;
    let ask = Sender::Task
        .sends("n", "{}")
        .header("Expect", "100-continue");
    let reply = bed.send_raw(&ask).await;
    assert!(reply.contains("HTTP/1.1 200"), "{reply}");
    assert_eq!(bed.handler.arrived().await.header("expect"), None);
}
