//! Grounds: a proved line names each declaration and each assumption that it stands on.

use super::*;

const CLOUD_TASKS: &str = "source = \"cloud-tasks\"\nkey = \"/order_id\"";
const ANY_PUBSUB: &str = "source = \"pubsub\"";

/// Asserts that the line of this route has these words.
fn stands_on(settings: &[&str], facts: &StoreFacts, expected: &[&str]) {
    let line = whole_line(settings, facts);
    for says in expected {
        assert!(line.contains(says), "{says}: {line}");
    }
}

/// The whole line of what a route shows.
fn whole_line(settings: &[&str], facts: &StoreFacts) -> String {
    let route = route(settings);
    line(&route, facts, &shown(&route, facts), None)
}

#[test]
fn a_line_names_what_is_declared_of_senders_and_callers() {
    for (settings, says) in [
        (
            vec![TASKS, PARK],
            "that no delivery of cloud-tasks comes later than horizon 24h (it can deliver for 31d)",
        ),
        (
            vec![TASKS, PARK],
            "that no caller uses the name of a task again",
        ),
        (
            vec![API, PARK],
            "that no delivery of api comes later than horizon 24h",
        ),
        (
            vec![PUBSUB, KEYS],
            "that the downstream drops repeats for 14d",
        ),
        (
            vec![PUBSUB, PARK, "undone = [503, \"520-529\"]"],
            "that nothing happened where the handler answers 503, 520-529 (undone)",
        ),
        (
            vec![
                PUBSUB,
                "in_doubt = \"probe\"\nprobe = \"GET /{key}\"\nprobe_fences = true",
            ],
            "that the handler refuses runs with a lower fence",
        ),
    ] {
        stands_on(&settings, &good(), &["as declared that ", says]);
    }
}

#[test]
fn a_subscription_that_is_never_sought_back_may_retain_messages_for_longer() {
    let mut facts = good();
    facts.never_sought.insert("r".into());
    let expected = [
        "that no seek goes back in the subscription of pubsub",
        "assuming that pubsub delivers for 7d at most (the default retention of its subscription)",
        "that the subscription of pubsub has no dead-letter topic",
    ];
    stands_on(&[ANY_PUBSUB, PARK, "seek = \"never\""], &facts, &expected);
}

#[test]
fn a_line_names_what_is_declared_of_the_store() {
    stands_on(
        &[CLOUD_TASKS],
        &good(),
        &[
            "as declared that no other server takes over from the PostgreSQL server that `store` names",
        ],
    );
    let same_disk = postgres(Some(Failover::SameDisk), |_| {});
    stands_on(&[CLOUD_TASKS], &same_disk, &["starts on the same disk"]);
    let durable = declared_durable(disk(Disk::Unknown));
    stands_on(
        &[CLOUD_TASKS],
        &durable,
        &["that the directory of `store` outlives"],
    );
    let hidden = declared_durable(redis(None));
    let expected = [
        "no replica takes over",
        "appendfsync is always in the Redis",
    ];
    stands_on(&[CLOUD_TASKS], &hidden, &expected);
}

#[test]
fn a_line_names_what_is_assumed_of_senders() {
    for (settings, says) in [
        (
            vec![CLOUD_TASKS],
            "cloud-tasks delivers a task 100 times (a queue's default)",
        ),
        (
            vec![CLOUD_TASKS, "sender_attempts = \"unlimited\""],
            "cloud-tasks delivers unfinished work for 24h at least (a task lives for 31d",
        ),
        (
            vec![ANY_PUBSUB],
            "pubsub delivers unfinished work for 7d at least (the default retention",
        ),
        (
            vec!["source = \"cloudevents\"", PARK],
            "cloudevents delivers for 24h at most (as Eventarc does)",
        ),
        (
            vec!["source = \"shopify\"\nsecrets = [\"env:PATH\"]", PARK],
            "shopify delivers for 4h at most (its documented schedule)",
        ),
    ] {
        stands_on(&settings, &good(), &["assuming that ", says]);
    }
    // Each of a counted number of deliveries says which one it is, so its letter waits for no time.
    let counted = whole_line(&[ANY_PUBSUB, "key = \"/id\"\nsender_attempts = 5"], &good());
    assert!(!counted.contains("unfinished work for"), "{counted}");
    // A declared number of attempts is no assumption, at most once needs no delivery, and a client's request no letter.
    let declared = "sender_attempts = 100";
    let park = "retention = \"31d\"\ntask_names = \"never reused\"\nin_doubt = \"park\"";
    for settings in [
        vec![CLOUD_TASKS, declared],
        vec![CLOUD_TASKS, park],
        vec![API],
    ] {
        let line = whole_line(&settings, &disk(Disk::Local));
        assert!(!line.contains("assuming"), "{line}");
    }
}

/// The line of a route that is exactly once also told how to become it.
#[test]
fn a_probe_that_fences_is_not_told_how_to_be_exactly_once() {
    let probe = "in_doubt = \"probe\"\nprobe = \"GET /{key}\"\nprobe_fences = true";
    let line = whole_line(&[PUBSUB, probe], &good());
    assert!(line.contains("proved: exactly-once"), "{line}");
    assert!(!line.contains("for exactly once, set"), "{line}");
}
