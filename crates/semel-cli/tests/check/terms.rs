//! What is proved of the times and sizes of a configuration.

use super::{GOOD, Says, check, check_with, in_route, on_top};

/// Secrets of senders that sign.
const SECRETS: [(&str, &str); 2] = [
    ("S", "whsec_b3RoZXItb3RoZXI="),
    ("ANY", "hunter2hunter2hunter2"),
];

#[test]
fn the_inequalities_are_proved_or_named_for_each_source() {
    let said = check(GOOD).good();
    for expected in [
        "note     route orders, cloud-tasks: timeout 10m + 1s > deadline 10m: a run may continue without its sender",
        "note     route orders, cloud-tasks: retention 24h < horizon 31d: the sender may deliver again what was forgotten",
        "proved   route orders, cloud-tasks: wait 30s < deadline 10m",
        "note     route orders, pubsub: timeout 10m > deadline 10s: a run may continue without its sender",
        "proved   route orders, pubsub: lease 30s ≤ retention 7d",
        "note     route orders, pubsub: retention 7d < horizon 31d: the sender may deliver again what was forgotten",
        "proved   route orders, cloudevents: retention 24h ≥ horizon 24h",
        "holds its key for 630s at the most",
        "warning  the senders' identity is not checked on orders",
        "note     a route's name and the namespace enter every key",
        "note     route orders: requests of API clients are refused",
        "note     no promise covers work whose sender gives up before its letter is due",
    ] {
        said.has(expected);
    }
    said.lacks("orders, api");

    let broken = [
        (
            "lease = \"2h\"\nretention = \"1h\"",
            "lease 2h > retention 1h",
        ),
        (
            "source = \"pubsub\"\nretention = \"24h\"\nin_doubt = \"park\"\npromise = \"at-most-once\"",
            "orders, pubsub: retention 24h < horizon 31d",
        ),
        ("wait = \"10s\"", "orders, pubsub: wait 10s ≥ deadline 10s"),
        ("deadline = \"1s\"", "deadline 1s leaves no time"),
        (
            "body_bytes_max = \"1GiB\"",
            "body_bytes_max 1073741824 > bodies_bytes_max",
        ),
    ];
    for (lines, expected) in broken {
        let output = check(&in_route(lines));
        let said = output.refused();
        said.has("the configuration does not hold together");
        said.has(expected);
        output.stdout.has("broken   route orders");
    }
}

#[test]
fn a_deadline_is_no_longer_than_its_sender_waits() {
    for (lines, expected) in [
        (
            "source = \"pubsub\"\ndeadline = \"601s\"",
            "orders, pubsub: deadline 601s > 10m: an ack deadline of Pub/Sub is 10m at most",
        ),
        (
            "source = \"cloudevents\"\ndeadline = \"11m\"",
            "orders, cloudevents: deadline 11m > 10m: Eventarc delivers through Pub/Sub",
        ),
        (
            "source = \"cloud-tasks\"\ndeadline = \"31m\"",
            "deadline 31m > 30m: Cloud Tasks waits 30m at most for an HTTP target (an App Engine target may take 24h",
        ),
        (
            "source = \"github\"\nsecrets = [\"env:ANY\"]\ndeadline = \"11s\"",
            "orders, github: deadline 11s > 10s: GitHub waits 10s for an answer",
        ),
        (
            "source = \"shopify\"\nsecrets = [\"env:ANY\"]\ndeadline = \"6s\"",
            "orders, shopify: deadline 6s > 5s: Shopify waits 5s for an answer",
        ),
        (
            "source = \"standard-webhooks\"\nsecrets = [\"env:S\"]\ndeadline = \"31s\"",
            "orders, standard-webhooks: deadline 31s > 30s",
        ),
    ] {
        let output = check_with(&in_route(lines), "", &SECRETS);
        output.ends(64, expected);
    }
    // Where no limit is documented, it is for a person to know.
    for (lines, expected) in [
        (
            "source = \"stripe\"\nsecrets = [\"env:ANY\"]\ndeadline = \"11s\"",
            "warning  route orders, stripe: deadline 11s > 10s: Stripe does not document",
        ),
        (
            "source = \"cloudevents\"\nwebhook_origins = [\"events.example.com\"]\ndeadline = \"11m\"",
            "warning  route orders, cloudevents: deadline 11m > 10m: no sender of CloudEvents is known",
        ),
    ] {
        check_with(&in_route(lines), "", &SECRETS)
            .good()
            .has(expected);
    }
}

#[test]
fn api_routes_have_their_own_terms_and_warnings() {
    let said = check(&in_route(
        "source = \"api\"\ncaller = \"header:Authorization\"",
    ))
    .good();
    said.has("warning  route orders: caller = \"header:authorization\" is for static API keys");
    said.has("orders, api: lease 30s ≤ retention 24h");
    said.has("holds its key for 90s at the most");
    said.lacks("pubsub");
    said.lacks("identity is not checked");
    let said = check(&in_route("source = \"pubsub\"\nkey = \"task-name\"")).good();
    said.has("warning  route orders, pubsub: task-name is never in a delivery");
}

#[test]
fn equal_requests_of_clients_are_warned_of_where_their_body_is_the_key() {
    let api = "source = \"api\"\ncaller = \"shared\"";
    let says = "two equal, honest requests are one work for the retention 24h";
    let body = format!("{api}\nkey = [\"body\"]");
    check(&in_route(&body)).good().has(&format!(
        "warning  route orders, api: key = [\"body\"]: {says}"
    ));
    for other in [
        format!("{api}\nkey = [\"header:x-id\", \"body\"]"),
        "source = \"pubsub\"\nkey = [\"body\"]".into(),
    ] {
        check(&in_route(&other)).good().lacks(says);
    }
}

#[test]
fn settings_about_one_sender_fit_a_route_of_several() {
    for line in [
        "max_backoff = \"1h\"",
        "task_names = \"never reused\"",
        "seek = \"never\"",
    ] {
        check(&in_route(line)).good();
    }
    let both = "source = \"cloud-tasks\"\nhorizon = \"24h\"\nmax_backoff = \"10m\"";
    let said = check(&in_route(both)).good();
    said.has("proved   route orders, cloud-tasks: retention 24h ≥ horizon 24h");
    said.has("span 24h, gap 20m");
}

#[test]
fn the_embedded_store_is_refused_where_many_gates_may_run() {
    for (variable, platform) in [
        ("K_SERVICE", "Cloud Run"),
        ("KUBERNETES_SERVICE_HOST", "Kubernetes"),
    ] {
        check_with(GOOD, "", &[(variable, "x")])
            .ends(64, &format!("{platform} may run several gates"));
        let said = check_with(&on_top("single_instance = true"), "", &[(variable, "x")]).good();
        said.has("warning  the embedded store");
        check_with(GOOD, "--single-instance", &[(variable, "x")]).good();
        check_with(GOOD, "--store postgres://h/d", &[(variable, "x")]).good();
    }
    let relaxed = on_top("store = \"postgres://h/d\"\nrelaxed_claims = true");
    check(&relaxed).good().has("warning  relaxed_claims");
    check(&on_top("pooler = true"))
        .good()
        .has("this one does not look at them");
}

#[test]
fn a_gate_that_others_reach_is_told_of_load_balancers() {
    let reached = "listen = \"0.0.0.0:8080\"\nstore = \"postgres://h/d\"";
    let said = check(&on_top(reached)).good();
    said.has("note     one address may take a quarter");
    let said = check_with(&on_top(reached), "", &[("K_SERVICE", "x")]).good();
    said.has("warning  one address may take a quarter");
    let listed = format!("{reached}\nproxies = [\"169.254.0.0/16\", \"2001:db8::7\"]");
    let said = check_with(&on_top(&listed), "", &[("K_SERVICE", "x")]).good();
    said.lacks("a quarter");
    check(GOOD).good().lacks("a quarter");
}

#[test]
fn a_file_that_says_nearly_everything_is_good() {
    let full = r#"
listen = "127.0.0.1:9000"
admin = "0.0.0.0:9001"
steps = "0.0.0.0:9002"
steps_url = "http://gate:9002"
namespace = "shop"
store = "postgres://h/d"
pass = ["/healthz", "/static/*"]
upstream = "http://handler:3000/"
upstream_h2c = true
bodies_bytes_max = 268435456
cache_ms = 0

[[route]]
name = "orders"
path = "/orders/*"
methods = ["POST", "PUT"]
source = "cloud-tasks"
key = ["/order_id", "header:X-Region"]
fingerprint = ["header:x-version"]
require = ["/order_id"]
lease = "10s"
timeout = "20s"
deadline = "30s"
retention = "24h"
max_backoff = "10m"
wait = "0s"
in_doubt = "park"
completes = "handler"
final = [422, "400-499"]
max_attempts = 5
backoff = { first = "1s", max = "60s" }
queue = 0
upstream = "http://[::1]:4000"
upstream_h2c = false
on_invalid = "reject"
answer_bytes_max = "64KiB"
"#;
    let said = check_with(full, "", &[("SEMEL_ADMIN_TOKEN", "long")]).good();
    said.has("retention 24h < horizon 31d");
    said.has("span 31d, gap 630s");
    said.has("note     forwarded unprotected, as pass says: /healthz, /static/*");
    check(full).ends(64, "can be reached by others");
}

#[test]
fn check_says_what_a_mismatch_does() {
    let shared = format!("{GOOD}caller = \"shared\"\n");
    let all = format!("{shared}source = [\"api\", \"cloud-tasks\", \"pubsub\", \"cloudevents\"]\n");
    let said = check(&all).good();
    for expected in [
        "route orders, api: a repeat of a key with another method, path, query or payload is refused with 422",
        "route orders, cloud-tasks: a repeat of a key with another method, path, query or payload is a mismatch: it is \
         kept as a letter and answered 200",
        "route orders, pubsub: a repeat of a key with another method, path, attribute or data is a mismatch",
        "route orders, cloudevents: a repeat of a key with another method, path, type, subject, dataschema or data is",
        "route orders, pubsub: a push without its envelope (noWrapper) has its attributes among all other headers",
    ] {
        said.has(expected);
    }

    let line = |line: &str| check(&format!("{all}{line}\n")).good();
    let said = line("fingerprint = \"payload\"");
    assert!(said.contains("pubsub: a repeat of a key with another payload is a mismatch"));
    said.lacks("noWrapper");
    let said = line("fingerprint = [\"attribute:type\"]");
    said.lacks("noWrapper");
    let said = line("fingerprint = \"off\"");
    let lost = "warning  route orders, pubsub: fingerprint = \"off\": other work under a known key";
    said.has(lost);

    let unused = "warning  route orders: fingerprint_ignores lists attributes of Pub/Sub messages";
    let ignores = "fingerprint_ignores = [\"published_at\", \"trace_*\"]";
    line(ignores).lacks(unused);
    for (other, is_unused) in [
        ("source = \"pubsub\"", false),
        ("source = \"api\"", true),
        ("fingerprint = \"payload\"", true),
    ] {
        let said = check(&format!("{shared}{ignores}\n{other}\n")).good();
        assert_eq!(said.contains(unused), is_unused, "{said}");
    }
}

#[test]
fn check_warns_of_bodies_that_there_may_be_no_memory_to_read() {
    let with = |all: &str| check(&format!("bodies_bytes_max = \"{all}\"\n{GOOD}")).good();
    let warns = "warning  route orders: body_bytes_max 16777216 × 4 > bodies_bytes_max 33554432";
    with("32MiB").has(warns);
    with("64MiB").lacks("× 4");
}
