//! What a start-up file declares is there, again and again.

use crate::support::{Broker, bind_in, ok, rows, settings};
use semel_broker::{Declared, Settings};
use serde_json::json;

const WHOLE: &str = r#"
project = "demo"
location = "europe-west1"
faults = ["duplicate=0.05"]

[[queue]]
name = "orders"
max_dispatches_per_second = 500
max_concurrent_dispatches = 100
max_attempts = 5
min_backoff = "0.1s"
max_backoff = "10m"
max_doublings = 3
max_retry_duration = "7d"
url = "http://127.0.0.1:3000/tasks?a=b"

[[topic]]
name = "invoices"

[[subscription]]
name = "invoices-push"
topic = "invoices"
push = "http://127.0.0.1:3000/invoice"
ack_deadline = "30s"
ordering = true
filter = 'attributes.kind = "x"'
dead_letter_topic = "projects/other/topics/dead"
max_delivery_attempts = 5
min_backoff = "10s"
unwrapped = true
write_metadata = true
oidc_account = "a@b"
oidc_audience = "us"

[[subscription]]
name = "invoices-pull"
topic = "invoices"
exactly_once = true
"#;

fn declaring(text: &str) -> Settings {
    Settings {
        declared: text.parse().unwrap(),
        ..settings()
    }
}

#[tokio::test]
async fn a_file_is_read_whole() {
    let declared: Declared = WHOLE.parse().unwrap();
    assert_eq!(declared.faults(), ["duplicate=0.05".parse().unwrap()]);
    let topics = [
        "projects/demo/topics/invoices",
        "projects/other/topics/dead",
    ];
    assert_eq!(declared.topics().collect::<Vec<_>>(), topics);
    let broker = Broker::with(declaring(WHOLE)).await;
    let queue = "projects/demo/locations/europe-west1/queues/orders";
    let expected = json!({
        "name": queue,
        "rateLimits": {
            "maxDispatchesPerSecond": 500, "maxBurstSize": 100, "maxConcurrentDispatches": 100,
        },
        "retryConfig": {
            "maxAttempts": 5, "maxRetryDuration": "604800s", "minBackoff": "0.100s",
            "maxBackoff": "600s", "maxDoublings": 3,
        },
        "state": "RUNNING",
        "httpTarget": { "uriOverride": {
            "scheme": "HTTP", "host": "127.0.0.1", "port": "3000", "pathOverride": { "path": "/tasks" },
            "queryOverride": { "queryParams": "a=b" }, "uriOverrideEnforceMode": "ALWAYS",
        } },
    });
    assert_eq!(broker.get(&format!("/v2/{queue}")).await.unwrap(), expected);
    let push = ok(broker.get("/v1/projects/demo/subscriptions/invoices-push")).await;
    for (name, value) in [
        ("topic", json!(topics[0])),
        ("ackDeadlineSeconds", json!(30)),
        ("enableMessageOrdering", json!(true)),
        ("filter", json!("attributes.kind = \"x\"")),
        (
            "deadLetterPolicy",
            json!({ "deadLetterTopic": topics[1], "maxDeliveryAttempts": 5 }),
        ),
        (
            "retryPolicy",
            json!({ "minimumBackoff": "10s", "maximumBackoff": "600s" }),
        ),
        (
            "pushConfig",
            json!({
                "pushEndpoint": "http://127.0.0.1:3000/invoice",
                "oidcToken": { "serviceAccountEmail": "a@b", "audience": "us" },
                "noWrapper": { "writeMetadata": true },
            }),
        ),
    ] {
        assert_eq!(push[name], value, "{name}");
    }
    let pull = ok(broker.get("/v1/projects/demo/subscriptions/invoices-pull")).await;
    assert_eq!(pull["enableExactlyOnceDelivery"], true);
}

/// A file with `;` for a new line, where it is wrong, and what is said; `$S` is a subscription.
const MISTAKES: &str = r#"
    [[queue]];name = "q" | line 2 | project =
    project = "p";[[queue]];name = "q" | line 3 | location =
    [[queue]];name = "queues/q" | line 2 | projects/P/locations/L/queues/Q
    [[topic]];name = "projects/p/topic/t" | line 2 | projects/P/topics/NAME
    [[topic]];nome = "t" | line 2 | unknown field `nome`
    [[topic]]; | | missing field `name`
    faults = ["explode=1"] | line 1 | no kind "explode"
    project = "p";[[topic]];name = "t";[[topic]];name = "t" | line 5 | twice
    [[queue]];name = "q";min_backoff = "soon" | line 3 | min_backoff
    [[queue]];name = "q";min_backoff = "soon" | line 3 | is not a duration
    [[queue]];name = "q";url = "ftp://h/" | line 3 | is not an address
    $S;ack_deadline = "5s" | line 5 | 10 to 600
    $S;unwrapped = true | line 5 | it is for push
    $S;max_delivery_attempts = 5 | line 5 | dead_letter_topic
    project = | line 1 |
"#;

#[test]
fn mistakes_are_named_with_their_line() {
    let subscription = "project = \"p\";[[subscription]];name = \"s\";topic = \"t\"";
    for [text, line, problem] in rows(MISTAKES) {
        let text = text.replace("$S", subscription).replace(';', "\n");
        let error = text.parse::<Declared>().unwrap_err().to_string();
        assert!(
            error.contains(line) && error.contains(problem),
            "{text}: {error}"
        );
    }
}

#[tokio::test]
async fn what_is_declared_is_made_so_again_and_again() {
    let directory = tempfile::tempdir().unwrap();
    let bound = bind_in(directory.path(), declaring(WHOLE)).await.unwrap();
    Broker::serve(bound).stop().await;
    let changed = WHOLE.replace("\"30s\"", "\"40s\"");
    let bound = bind_in(directory.path(), declaring(&changed))
        .await
        .unwrap();
    let broker = Broker::serve(bound);
    let push = ok(broker.get("/v1/projects/demo/subscriptions/invoices-push")).await;
    assert_eq!(push["ackDeadlineSeconds"], 40);
    let counts = &broker.get("/_semel/").await.unwrap()["counts"];
    for (kind, count) in [("topics", 2), ("queues", 1), ("subscriptions", 2)] {
        assert_eq!(counts[kind], count, "{kind}");
    }
}

#[tokio::test]
async fn what_cannot_be_changed_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let bound = bind_in(directory.path(), declaring(WHOLE)).await.unwrap();
    Broker::serve(bound).stop().await;
    let changed = WHOLE.replace("kind = \"x\"", "kind = \"y\"");
    let refused = bind_in(directory.path(), declaring(&changed)).await;
    let error = refused.unwrap_err().to_string();
    assert!(
        error.contains("invoices-push") && error.contains("another filter"),
        "{error}"
    );
}
