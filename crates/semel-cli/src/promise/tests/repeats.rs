//! Repeats: which deliveries are taken for one, and which are dropped before anything keeps them.

use super::*;

const STRIPE: &str = "source = \"stripe\"\nsecrets = [\"env:PATH\"]";

/// Each attempt had another key, and ran, under a proved *at most once*.
#[test]
fn a_key_that_each_attempt_changes_proves_no_memory() {
    for (settings, part) in [
        (TASKS, "header:x-cloudtasks-taskretrycount"),
        (TASKS, "header:X-CloudTasks-TaskExecutionCount"),
        (TASKS, "header:x-cloudtasks-tasketa"),
        (TASKS, "header:x-cloudtasks-taskpreviousresponse"),
        (TASKS, "header:x-cloudtasks-taskretryreason"),
        (TASKS, "header:traceparent"),
        (TASKS, "header:x-cloud-trace-context"),
        (TASKS, "header:authorization"),
        (PUBSUB, "header:tracestate"),
        (PUBSUB, "attribute:googclient_deliveryattempt"),
        (PUBSUB, "attribute:googclient_traceparent"),
        (API, "header:date"),
        (API, "header:x-signature"),
        (API, "header:webhook-timestamp"),
    ] {
        let key = format!("key = [\"/id\", {part:?}]");
        let says = "a repeat of";
        judge(&[settings, PARK, &key], &good(), &No(says));
        for proves in [HANDLER, KEYS] {
            let refused = demanded(&route(&[settings, &key, proves]), &good(), ExactlyOnce);
            assert!(
                matches!(&refused, Shown::Unproved(why) if why.iter().any(|it| it.contains(says))),
                "{part}: {refused:?}"
            );
        }
        // What runs again runs at least once.
        judge(&[settings, &key], &good(), &Proved(AtLeastOnce, Everything));
    }
    let stays = "key = [\"/id\", \"header:x-tenant\"]";
    judge(
        &[TASKS, PARK, stays],
        &good(),
        &Proved(AtMostOnce, Everything),
    );
}

#[test]
fn a_caller_whose_credentials_are_renewed_proves_no_memory() {
    let api = |caller: &str| format!("source = \"api\"\nhorizon = \"24h\"\ncaller = {caller:?}");
    let by_token = api("header:authorization");
    judge(&[&by_token, PARK], &good(), &No("credentials are renewed"));
    judge(&[&by_token], &good(), &Proved(AtLeastOnce, Everything));
    judge(
        &[&api("header:x-client"), PARK],
        &good(),
        &Proved(AtMostOnce, Everything),
    );
}

/// `/users/1` and `/users/2` with equal payloads were one piece of work, under a proved promise.
#[test]
fn payloads_are_not_enough_where_paths_or_queries_differ() {
    let payload = "fingerprint = \"payload\"";
    let says = "compares neither path nor query";
    let at = |path: &str, settings: &[&str]| {
        let mut route = route(settings);
        route.path = path.parse().unwrap();
        shown(&route, &good())
    };
    let refuses = |shown: &Shown| matches!(shown, Shown::Unproved(why) if why[0].contains(says));
    let by_id = "key = \"/id\"";
    for (path, source, refused) in [
        ("/users/*", PUBSUB, true),
        ("/users/{id}", PUBSUB, true),
        ("/users", PUBSUB, false),
        ("/users", API, true),
        ("/users", TASKS, true),
    ] {
        for all in [PARK, ""] {
            let shown = at(path, &[source, all, by_id, payload]);
            assert_eq!(refuses(&shown), refused, "{path} {source} {all}: {shown:?}");
            let full = at(path, &[source, all, by_id]);
            assert!(matches!(full, Shown::Proved(..)), "{path}: {full:?}");
        }
    }
}

/// Stripe counts in each delivery how many more are to come, so a comparison would refuse honest repeats.
#[test]
fn an_event_id_of_stripe_is_trusted() {
    for (all, promise) in [("", AtLeastOnce), (PARK, AtMostOnce)] {
        judge(&[STRIPE, all], &good(), &Proved(promise, Everything));
        let stripe = route(&[STRIPE, all]);
        let line = line(&stripe, &good(), &shown(&stripe, &good()), None);
        let says = "assuming that an event id of stripe names the content of its event";
        assert!(line.contains(says), "{line}");
        let other = "key = \"/data/object/id\"";
        judge(&[STRIPE, all, other], &good(), &No("key = \"stripe\""));
    }
}

/// A larger body was refused without a letter under a proved *at least once*.
#[test]
fn a_body_that_is_refused_is_no_promise() {
    for (source, most) in [
        ("source = \"github\"\nsecrets = [\"env:PATH\"]", "25MiB"),
        ("source = \"pubsub\"\nbody_bytes_max = 1", ""),
        (
            "source = \"cloud-tasks\"\nkey = \"/id\"\nbody_bytes_max = 1",
            "",
        ),
        (
            "source = \"pubsub\"\nrecord = \"none\"\ndead_letter_topic = true\nbody_bytes_max = 1",
            "",
        ),
    ] {
        let small = route(&[source]);
        let shown = shown(&small, &good());
        assert!(
            matches!(&shown, Shown::Unproved(why) if why[0].contains("raise body_bytes_max")),
            "{source}: {shown:?}"
        );
        let rests = assumed(&small, &good()).unwrap();
        let line = line(&small, &good(), &shown, Some(&rests));
        let says = "assumed, not proved: at-least-once, as long as no body of";
        assert!(line.contains(says), "{line}");
        assert!(!line.contains("; proved: "), "{line}");
        if !most.is_empty() {
            let enough = format!("body_bytes_max = {most:?}");
            judge(
                &[source, &enough],
                &good(),
                &Proved(AtLeastOnce, Everything),
            );
        }
    }
}

/// A quota that no letter fits into keeps nothing.
#[test]
fn a_quota_that_holds_no_letter_proves_nothing() {
    let says = No("may not hold one letter");
    for settings in [
        PUBSUB,
        "source = \"github\"\nsecrets = [\"env:PATH\"]\nbody_bytes_max = \"25MiB\"",
    ] {
        for bytes in ["1KiB", "16MiB", "32MiB"] {
            let small = format!("letters_bytes_max = {bytes:?}");
            judge(&[settings, &small], &good(), &says);
        }
    }
    let small = "letters_bytes_max = \"1KiB\"";
    judge(&[PUBSUB, HANDLER, small], &good(), &says);
    judge(&[PUBSUB, KEYS, small], &good(), &says);
    judge(&[API, small], &good(), &Proved(AtLeastOnce, Everything));
    let enough = "letters_bytes_max = \"33MiB\"";
    judge(&[PUBSUB, enough], &good(), &Proved(AtLeastOnce, Everything));
}

#[test]
fn an_emulator_keeps_nothing() {
    let emulator = on(Store::Firestore { is_emulator: true }, None);
    for all in [HANDLER, KEYS, PARK, ""] {
        judge(&[PUBSUB, all], &emulator, &No("FIRESTORE_EMULATOR_HOST"));
        judge(
            &[PUBSUB, all],
            &declared_durable(emulator.clone()),
            &No("FIRESTORE_EMULATOR_HOST"),
        );
    }
    let firestore = on(Store::Firestore { is_emulator: false }, None);
    judge(
        &[PUBSUB, HANDLER],
        &firestore,
        &Proved(ExactlyOnce, Transaction),
    );
}

#[test]
fn a_machine_that_is_replaced_is_not_told_to_use_its_disk() {
    let replaced = disk(Disk::Replaced);
    let shown = shown(&route(&[PUBSUB]), &replaced);
    let why = format!("{shown:?}");
    assert!(why.contains("declare durable_disk = true"), "{why}");
    assert!(!why.contains("local disk"), "{why}");
    let durable = declared_durable(replaced);
    judge(&[PUBSUB], &durable, &Proved(AtLeastOnce, Everything));
}
