//! What is said of work that takes longer than its sender waits, and what is refused.

use super::{Says, check, check_with, in_route, on_top};

const PUBSUB: &str = "source = \"pubsub\"\nkey = \"/id\"";

fn pubsub(lines: &str) -> String {
    in_route(&format!("{PUBSUB}\n{lines}"))
}

#[test]
fn long_work_is_the_default_and_explained() {
    let said = check(&in_route("source = \"pubsub\"")).good();
    said.has("note     route orders, pubsub: timeout 10m > deadline 10s: a run may continue without its sender, which receives 409 after 9s");
    said.has("what still runs after 5s is kept as a letter");
    said.has("note     route orders, pubsub: unlimited: sender_attempts no limit (assumed: no dead-letter policy");
    said.has("a push without its envelope does not say which attempt it is: before the run");
    said.has("note     route orders, pubsub: grace 10s < timeout 10m");
    said.has("note     route orders, pubsub: each 409 slows the whole subscription");
    said.has("wait 9s < deadline 10s");
    let said = check(&in_route("source = \"cloud-tasks\"\ndeadline = \"30s\"")).good();
    said.has("sender_attempts 100 (assumed: a queue's default");
    said.has("wait 29s < deadline 30s");
}

#[test]
fn a_default_that_would_not_hold_is_shorter_and_says_why() {
    for (lines, timeout, why) in [
        (
            "source = \"pubsub\"\nsender_attempts = 5",
            "proved   route orders, pubsub: timeout 9s + 1s ≤ deadline 10s",
            "has another subscription in its dead-letter topic",
        ),
        (
            "source = \"pubsub\"\nkey = \"/id\"\nsender_attempts = 5",
            "timeout 50s > deadline 10s",
            "counted: sender_attempts 5, span 62d, gap 610s; unfinished work becomes a letter: after the first run without \
             success, or at half of the deadline (5s); refused before a run: from attempt 3 on; the last attempt: before the \
             run, and the sender receives 200",
        ),
        (
            "source = \"cloud-tasks\"\ndeadline = \"30s\"\nsender_attempts = 1",
            "timeout 29s + 1s ≤ deadline 30s",
            "this sender gives up after sender_attempts 1, within 30s",
        ),
        (
            "source = \"cloud-tasks\"\ndeadline = \"30m\"",
            "timeout 1799s + 1s ≤ deadline 30m",
            "sender_attempts 100",
        ),
    ] {
        let said = check(&in_route(lines)).good();
        said.has(timeout);
        said.has(why);
    }
}

#[test]
fn what_is_written_must_hold() {
    let refused = [
        (
            pubsub("timeout = \"60s\""),
            "`timeout` is longer than pubsub waits for one delivery (`deadline`)",
        ),
        (
            pubsub("timeout = \"60s\"\nsender_attempts = 5"),
            "timeout 1m > sender_attempts 5 × deadline 10s = 50s",
        ),
        (
            in_route("source = \"pubsub\"\ntimeout = \"60s\"\nsender_attempts = 10"),
            "the key has subscription",
        ),
        (
            pubsub("sender_attempts = 4"),
            "a dead-letter policy of Pub/Sub has 5 to 100",
        ),
        (
            pubsub("sender_attempts = 101"),
            "a dead-letter policy of Pub/Sub has 5 to 100",
        ),
        (
            in_route("source = \"cloudevents\"\ntimeout = \"15m\"\nsender_attempts = 5"),
            "the key has ce:source: when the subscription gives up in the middle of a run",
        ),
        (
            pubsub("sender_attempts = 0"),
            "`sender_attempts`: 0 would let nothing through",
        ),
        (
            pubsub("sender_attempts = \"many\""),
            "\"many\" is unknown: write \"unlimited\"",
        ),
    ];
    for (file, says) in refused {
        check(&file).ends(64, says);
    }
    for lines in [
        "timeout = \"60s\"\nsender_attempts = 10",
        "timeout = \"1h\"\nsender_attempts = \"unlimited\"",
    ] {
        let said = check(&pubsub(lines)).good();
        said.has("a run may continue without its sender");
        said.has("warning  route orders, pubsub: grace 10s < timeout");
        said.has("warning  route orders, pubsub: each 409 slows");
        said.has("warning  route orders, pubsub: where messages are ordered");
    }
    let unlimited = "source = \"pubsub\"\ntimeout = \"60s\"\nsender_attempts = \"unlimited\"";
    check(&in_route(unlimited)).good();
    let client = "source = \"api\"\ncaller = \"shared\"\ndeadline = \"10s\"\ntimeout = \"60s\"";
    let said = check(&in_route(client)).good();
    said.has("orders, api: timeout 1m > deadline 10s: a run may continue without its sender");
    // A deadline alone does not shorten a run.
    let client = "source = \"api\"\ncaller = \"shared\"\ndeadline = \"3s\"";
    let said = check(&in_route(client)).good();
    said.has("orders, api: timeout 1m > deadline 3s: a run may continue without its sender");
}

#[test]
fn each_kind_of_sender_says_when_its_work_becomes_a_letter() {
    let secrets = "secrets = [\"env:S\"]";
    for (lines, says) in [
        (
            "source = \"cloud-tasks\"".to_owned(),
            "counted: sender_attempts 100 (assumed: a queue's default; write the queue's own maxAttempts), span 31d, gap 70m; \
             unfinished work becomes a letter: after the first run without success",
        ),
        (
            "source = \"cloud-tasks\"\nsender_attempts = \"unlimited\"\nhorizon = \"2d\"".into(),
            "at half of the time that it delivers (12h after the first delivery)",
        ),
        (
            "source = \"cloudevents\"".into(),
            "unlimited: sender_attempts no limit (assumed: Eventarc delivers for 24h), span 24h, gap 20m",
        ),
        (
            "source = \"cloudevents\"\nsender_attempts = 5".into(),
            "uncounted: sender_attempts 5, span 2d, gap 20m; unfinished work becomes a letter: before the run",
        ),
        (
            format!("source = \"stripe\"\n{secrets}"),
            "uncounted: sender_attempts a schedule that ends (assumed: what such senders do by default), span 3d, gap 24h",
        ),
        (
            format!("source = \"github\"\n{secrets}"),
            "once: sender_attempts 1 (assumed: what such senders do by default), span 0s, gap unknown; unfinished work \
             becomes a letter: before the run, and the sender receives 200; the span does not cover deliveries that a person \
             asks for later",
        ),
        (
            format!("source = \"shopify\"\n{secrets}"),
            "uncounted: sender_attempts 9 (assumed: what such senders do by default), span 4h, gap 4h",
        ),
        (
            format!("source = \"standard-webhooks\"\n{secrets}"),
            "uncounted: sender_attempts 10 (assumed: what such senders do by default), span 76h, gap 24h",
        ),
        (
            "source = \"api\"\ncaller = \"shared\"".into(),
            "unlimited: sender_attempts no limit, span unknown, gap unknown; unfinished work becomes a letter: never: the \
             client has its answer",
        ),
        (
            "source = \"pubsub\"\nrecord = \"none\"".into(),
            "unlimited: span 31d, gap 610s; unfinished work becomes a letter: never: without a record nothing is kept",
        ),
    ] {
        let secret = [("S", "whsec_b3RoZXItb3RoZXI=")];
        check_with(&in_route(&lines), "", &secret).good().has(says);
    }
}

#[test]
fn a_sender_whose_schedule_ends_is_not_unlimited() {
    let secret = [("S", "whsec_b3RoZXItb3RoZXI=")];
    for source in ["stripe", "github", "shopify", "standard-webhooks"] {
        let route = |rest: &str| {
            let file = in_route(&format!(
                "source = \"{source}\"\nsecrets = [\"env:S\"]\n{rest}"
            ));
            check_with(&file, "", &secret)
        };
        route("sender_attempts = \"unlimited\"").ends(64, "write a number, or leave it out");
        route("sender_attempts = 7").good();
        let long = route("timeout = \"60s\"");
        long.ends(64, "write sender_attempts = a number");
        long.refused().lacks("unlimited");
    }
}

#[test]
fn what_is_left_to_a_dead_letter_topic_may_not_be_keyed_by_what_its_copy_changes() {
    let nack = "source = \"pubsub\"\non_exhausted = \"nack\"";
    let says = "on_exhausted = \"nack\" leaves exhausted messages to a dead-letter topic, and the key has ";
    check(&in_route(nack)).ends(64, says);
    check(&in_route(&format!("{nack}\nsender_attempts = 5"))).ends(64, says);
    for part in ["message-id", "subscription"] {
        let keyed = format!("{nack}\nkey = [\"/id\", \"{part}\"]");
        check(&in_route(&keyed)).ends(64, &format!("{says}{part}"));
    }
    check(&in_route(&format!("{nack}\nkey = \"/id\""))).good();
    check(&in_route(
        "source = \"cloud-tasks\"\non_exhausted = \"nack\"",
    ))
    .good();
}

#[test]
fn a_process_that_is_stopped_between_requests_does_no_long_work() {
    let on_cloud_run = |file: &str| check_with(file, "", &[("K_SERVICE", "shop")]);
    let store = "store = \"postgres://h/d\"\n";
    let short = format!("{store}{}", in_route("source = \"pubsub\""));
    let said = on_cloud_run(&short).good();
    said.has("timeout 9s + 1s ≤ deadline 10s");
    said.has("Cloud Run may stop this process between requests");
    let long = "timeout = \"60s\"\nsender_attempts = 10";
    let file = format!("{store}{}", pubsub(long));
    on_cloud_run(&file).ends(64, "Cloud Run may stop this process between two requests");
    let always = format!("cpu = \"always\"\n{file}");
    on_cloud_run(&always)
        .good()
        .has("a run may continue without its sender");
    let kubernetes = [("KUBERNETES_SERVICE_HOST", "x")];
    check_with(&file, "", &kubernetes).good();
    check(&on_top("cpu = \"never\"")).ends(64, "\"never\" is unknown");
}
