//! What records say of their work: enough for people, nothing of callers and credentials, never too much.

use crate::support::prelude::*;
use semel::store::LABEL_BYTES_MAX;
use semel_gate::label::{Digests, Label};
use semel_gate::settings::Secret;

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// A gate whose work is named by these parts of any delivery.
async fn named_by(rule: &str, change: impl FnOnce(&mut Route)) -> Bed {
    Bed::route(|route| {
        keyed_by(route, rule);
        change(route);
    })
    .await
}

/// The label of the one record in the store.
async fn label(bed: &Bed) -> Label {
    let bytes = bed.record().await.label;
    assert!(bytes.len() <= LABEL_BYTES_MAX, "{}", bytes.len());
    Label::read(&bytes).expect("a gate's label can be read")
}

/// What a task of this payload is said to be about.
async fn label_of(bed: &Bed, payload: &str) -> Label {
    let task = Sender::Task.sends("t1", payload);
    bed.ask(task).await.is(200);
    label(bed).await
}

fn parts(label: &Label) -> Vec<(&str, &str)> {
    let parts = label.parts.iter();
    parts.map(|(name, value)| (&**name, &**value)).collect()
}

#[tokio::test]
async fn a_label_says_what_the_work_is_about() {
    let bed = named_by("/order/id /line", |_| {}).await;
    let task = Sender::Task.sends("t1", r#"{"order": {"id": "A-1"}, "line": 3}"#);
    bed.ask(task.header("traceparent", TRACE)).await.is(200);
    let label = label(&bed).await;
    assert_eq!(parts(&label), [("order/id", "A-1"), ("line", "3")]);
    assert_eq!(label.about(), "order/id A-1, line 3");
    let said = [&label.route, &label.source, &label.gate];
    assert_eq!(said, ["work", "cloud-tasks", "gate"]);
    let sent = [&label.id, &label.from, &label.traceparent];
    assert_eq!(sent, ["t1", "orders", TRACE]);
    assert_eq!(label.trace_id(), Some("0af7651916cd43dd8448eb211c80319c"));
    assert_eq!(label.payload, None);
}

#[tokio::test]
async fn parts_of_forms_and_of_json_in_strings_have_plain_names() {
    for (rule, payload, shown) in [
        (
            "form:MessageSid",
            "From=x&MessageSid=SM1",
            ("MessageSid", "SM1"),
        ),
        (
            "/Message~json/order",
            r#"{"Message":"{\"order\":7}"}"#,
            ("Message~json/order", "7"),
        ),
        ("/order?null", r#"{"order":null}"#, ("order", "null")),
    ] {
        let bed = named_by(rule, |_| {}).await;
        let label = label_of(&bed, payload).await;
        assert_eq!(parts(&label), [shown]);
    }
}

#[tokio::test]
async fn each_sender_is_named_by_its_own_id() {
    for (sender, from) in [
        (Sender::Task, "orders"),
        (Sender::Push, "projects/shop/subscriptions/orders"),
        (Sender::Event, ""),
    ] {
        let bed = Bed::new().await;
        bed.deliver(sender, "id-7").await.is(200);
        let label = label(&bed).await;
        assert_eq!((&*label.id, &*label.from), ("id-7", from), "{sender:?}");
    }
}

#[tokio::test]
async fn neither_callers_nor_credentials_are_in_a_label() {
    const SECRET: &str = "s3cr3t-of-somebody";
    let headers = [
        "authorization",
        "proxy-authorization",
        "cookie",
        "x-serverless-authorization",
        "x-goog-iap-jwt-assertion",
        "x-caller",
    ];
    for header in headers {
        // Even where the rule names the header itself.
        let rule = format!("header:idempotency-key header:{header}");
        let bed = named_by(&rule, |_| {}).await;
        let mut ask = Ask::post("/work").header("Idempotency-Key", "k1");
        for name in headers {
            ask = ask.header(name, SECRET);
        }
        bed.ask(ask.body("{}")).await.is(200);
        let bytes = bed.record().await.label;
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        assert!(!text.contains(SECRET), "{header}: {text}");
        assert_eq!(
            parts(&label(&bed).await),
            [("header:idempotency-key", "k1")]
        );
        let recent = bed.admin("/deliveries").await;
        assert!(!recent.text().contains(SECRET), "{}", recent.text());
    }
}

#[tokio::test]
async fn a_private_route_shows_no_part_in_clear() {
    const SAID: &str = "alice@example.com";
    let digest = async |key: &str| {
        let bed = named_by("/email", |route| route.private = Some(Secret(key.into()))).await;
        let task = Sender::Task.sends("t1", &format!(r#"{{"email": "{SAID}"}}"#));
        bed.ask(task).await.is(200);
        let label = label(&bed).await;
        let shown = format!("{label:?}{}", bed.admin("/deliveries").await.text());
        assert!(!shown.contains(SAID), "{shown}");
        assert_eq!(label.parts.len(), 1);
        assert!(label.digests.all().iter().flatten().count() >= 3);
        (label.parts[0].1.clone(), label.digests)
    };
    let (one, again, other) = (
        digest("one").await,
        digest("one").await,
        digest("two").await,
    );
    assert_eq!(one, again);
    assert_ne!(one.0, other.0);
    assert_ne!(one.1.payload, other.1.payload);
}

#[tokio::test]
async fn odd_parts_are_bounded_and_read_back() {
    let long = "x".repeat(1024);
    let controls: String = (0..32_u8).map(char::from).cycle().take(600).collect();
    for odd in [
        long.as_str(),
        &"\u{1f980}".repeat(300),
        "<script>alert(1)</script>",
        "\"quoted\\ and ' \u{7f}\u{202e}",
        &controls,
        "Größe 中文 \u{0}",
    ] {
        let bed = named_by("/a /b /c", |_| {}).await;
        let payload = json!({"a": odd, "b": odd, "c": {"nested": odd}});
        let label = label_of(&bed, &payload.to_string()).await;
        let (_, shown) = &label.parts[0];
        let whole = odd.len() <= 100 && shown == odd;
        let begun = shown
            .strip_suffix('…')
            .is_some_and(|it| odd.starts_with(it));
        assert!(whole || begun, "{odd:?} became {shown:?}");
    }
}

#[tokio::test]
async fn all_members_at_their_longest_fit_a_label() {
    let wide = "\u{1}".repeat(255);
    let bed = Bed::with(|settings| {
        settings.name = wide.clone();
        settings.routes[0].name = wide.clone();
        settings.routes[0].keep_payload = true;
        keyed_by(&mut settings.routes[0], "/a /b /c /d /e /f /g /h /i");
    })
    .await;
    let odd = "\u{2}".repeat(500);
    let members = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
    let payload: serde_json::Map<_, _> = members
        .map(|m| (m.into(), json!(odd)))
        .into_iter()
        .collect();
    let task = Ask::post("/work")
        .header("X-CloudTasks-QueueName", &"q".repeat(500))
        .header("X-CloudTasks-TaskName", &"t".repeat(500))
        .header("traceparent", TRACE)
        .body(Value::Object(payload).to_string());
    bed.ask(task).await.is(200);
    let label = label(&bed).await;
    assert_eq!(label.traceparent, TRACE);
    assert!(label.id.starts_with("ttt") && label.from.starts_with("qqq"));
    assert_eq!(label.payload, None, "it does not fit");
    assert_eq!(label.digests.method.map(|_| ()), Some(()));
}

#[tokio::test]
async fn a_payload_is_kept_where_the_route_says_so_and_only_whole() {
    let bed = named_by("/id", |route| route.keep_payload = true).await;
    let payload = r#"{"id": 1, "note": "\"<b>\""}"#;
    assert_eq!(
        label_of(&bed, payload).await.payload.as_deref(),
        Some(payload)
    );
    let bed = named_by("/id", |route| route.keep_payload = true).await;
    let long = format!(r#"{{"id": 1, "note": "{}"}}"#, "n".repeat(1024));
    assert_eq!(label_of(&bed, &long).await.payload, None);
}

#[tokio::test]
async fn digests_show_which_part_of_a_mismatch_differs() {
    let bed = named_by("/id", |_| {}).await;
    let first = label_of(&bed, r#"{"id": 1, "cents": 900}"#).await.digests;
    bed.ask(Sender::Task.sends("t2", r#"{"id": 1, "cents": 901}"#))
        .await
        .is(200);
    let told = bed.look("/deliveries").await;
    let mismatch = &told.json["deliveries"][0];
    assert_eq!(mismatch["outcome"], "mismatched", "{mismatch}");
    let digest = |word: &str| mismatch["digests"][word].as_str().map(str::to_owned);
    let now = |word| digest(word).unwrap_or_default();
    let then = first
        .all()
        .map(|it| it.map(|it| it.to_string()).unwrap_or_default());
    let differ: Vec<_> = Digests::WORDS
        .into_iter()
        .zip(then)
        .filter(|(word, then)| now(word) != *then)
        .map(|(word, _)| word)
        .collect();
    assert_eq!(differ, ["payload"]);
}

#[test]
fn labels_of_others_are_read_as_far_as_they_go() {
    assert_eq!(Label::read(b""), None);
    assert_eq!(Label::read(b"order 7"), None);
    let old = Label::read(br#"{"traceparent":"00-a-b-01","new":[1]}"#).unwrap();
    assert_eq!(
        (old.traceparent.as_str(), old.about()),
        ("00-a-b-01", String::new())
    );
}
