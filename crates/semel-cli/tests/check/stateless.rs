//! What is said of routes without records, and what is refused there.

use super::{GOOD, Says, check, check_with, in_route, on_top};

fn stateless(lines: &str) -> String {
    in_route(&format!(
        "source = \"pubsub\"\nkey = \"/id\"\nrecord = \"none\"\n{lines}"
    ))
}

#[test]
fn its_times_are_proved_and_what_it_does_not_promise_is_said() {
    let said = check(&stateless("")).good();
    said.has("proved   route orders, pubsub: timeout 9s + 1s ≤ deadline 10s");
    said.has("warning  route orders: record = \"none\": every delivery runs the handler, repeats included");
    said.has("warning  route orders, pubsub: an invalid delivery is refused with 400");
    said.has("note     no route keeps records: no store is opened");
    said.has("route orders: nothing is remembered: every delivery runs the handler");
    said.has("no promise: record = \"none\" keeps no letters");
    for of_records in ["lease", "retention", "wait", "sender_attempts", "renewal"] {
        said.lacks(of_records);
    }
    let kept = "dead_letter_topic = true\ndownstream = \"deduplicates\"\ndownstream_keys = \"key\"\n\
                downstream_window = \"7d\"\nplatform_timeout = \"10s\"";
    let said = check(&stateless(kept)).good();
    said.has("proved   route orders: nothing is remembered");
    said.has(
        "proved: at-least-once, as declared that the subscription of pubsub has a dead-letter topic that keeps what it \
         gives up; exactly once is never promised without a record",
    );
    said.has("proved   route orders, pubsub: timeout 9s + 1s ≤ platform_timeout 10s");
    said.lacks("repeats included");
    said.lacks("refused with 400");
}

#[test]
fn times_that_do_not_fit_are_broken() {
    for (lines, says) in [
        ("timeout = \"10s\"", "timeout 10s + 1s > deadline 10s"),
        ("timeout = \"20s\"", "timeout 20s + 1s > deadline 10s"),
        (
            "platform_timeout = \"9s\"",
            "timeout 9s + 1s > platform_timeout 9s",
        ),
        (
            "platform_timeout = \"300s\"",
            "platform_timeout 5m > deadline 10s",
        ),
    ] {
        check(&stateless(lines)).ends(64, says);
    }
}

#[test]
fn what_has_no_effect_there_is_refused_by_name() {
    for line in [
        "lease = \"30s\"",
        "retention = \"7d\"",
        "wait = \"5s\"",
        "in_doubt = \"park\"",
        "completes = \"gate\"",
        "final = [422]",
        "undone = [503]",
        "max_attempts = 3",
        "max_in_doubt = 3",
        "park_after = \"6d\"",
        "backoff = \"1s\"",
        "sender_attempts = 5",
        "on_exhausted = \"nack\"",
        "letters_max = 5",
        "letters_bytes_max = 5",
    ] {
        let name = line.split(' ').next().unwrap();
        let says = format!("`{name}` has no effect with record = \"none\"");
        check(&stateless(line)).ends(64, &says);
    }
    check(&stateless("on_invalid = \"letter\"")).ends(64, "no letters are kept");
    check(&stateless("on_invalid = \"reject\"")).good();
    for line in ["platform_timeout = \"9s\"", "dead_letter_topic = true"] {
        check(&in_route(line)).ends(64, "is for record = \"none\"");
    }
    check(&in_route("record = \"memory\"")).ends(64, "write \"store\" or \"none\"");
}

#[test]
fn no_promise_is_proved_that_needs_a_memory() {
    for promise in ["exactly-once", "at-most-once"] {
        let line = format!("promise = {promise:?}\ndead_letter_topic = true");
        let says =
            format!("promise = {promise:?} is not proved: record = \"none\" remembers nothing");
        check(&stateless(&line)).ends(64, &says);
    }
    check(&stateless("promise = \"at-least-once\"")).ends(64, "keeps no letters");
    let kept = "promise = \"at-least-once\"\ndead_letter_topic = true";
    check(&stateless(kept))
        .good()
        .has("promise = \"at-least-once\": nothing is remembered");
    let api =
        "source = \"api\"\ncaller = \"shared\"\nrecord = \"none\"\npromise = \"at-least-once\"";
    check(&in_route(api)).good();
}

/// They drop what they give up, so nothing kept the work of a proved *at least once*.
#[test]
fn senders_without_a_dead_letter_topic_may_not_declare_one() {
    let secret = [("S", "whsec_b3RoZXItb3RoZXI=")];
    for source in [
        "\"cloud-tasks\"",
        "\"cloudevents\"",
        "[\"pubsub\", \"cloud-tasks\"]",
        "\"auto\"",
        "\"github\"\nsecrets = [\"env:S\"]",
    ] {
        let file = |rest: &str| {
            let lines = format!("source = {source}\nrecord = \"none\"\n{rest}");
            check_with(&in_route(&lines), "", &secret)
        };
        file("dead_letter_topic = true").ends(64, "`dead_letter_topic`: ");
        file("dead_letter_topic = true").ends(64, "has none and drops what it gives up");
        file("promise = \"at-least-once\"").ends(64, "drops what it gives up: keep records");
    }
    let both = "source = [\"pubsub\", \"api\"]\ncaller = \"shared\"\nrecord = \"none\"";
    let kept = format!("{both}\ndead_letter_topic = true\npromise = \"at-least-once\"");
    check(&in_route(&kept)).good();
}

#[test]
fn a_directory_on_a_platform_is_refused_only_where_it_is_opened() {
    let on_cloud_run = [("K_SERVICE", "gate")];
    let said = check_with(&stateless(""), "", &on_cloud_run).good();
    said.has("warning  route orders: platform_timeout is not given: Cloud Run");
    let two = format!("{}[[route]]\nname = \"b\"\npath = \"/b\"\n", stateless(""));
    check_with(&two, "", &on_cloud_run).ends(64, "store is a directory");
    check_with(GOOD, "", &on_cloud_run).ends(64, "store is a directory");
    check(&on_top("relaxed_claims = true").replace("path =", "record = \"none\"\npath ="))
        .good()
        .lacks("relaxed_claims");
}
