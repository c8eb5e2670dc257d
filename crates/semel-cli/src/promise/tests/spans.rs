//! The span of a sender's deliveries: a memory that ends before it proves neither *exactly once* nor *at most once*.

use super::*;
use semel_gate::settings::{Source, Webhook};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

/// Asserts that nothing stronger than at-least-once is proved, and that these words are among the assumptions.
fn only_assumed(settings: &[&str], promise: Promise, says: &str) {
    let (route, store) = (route(settings), good());
    let shown = shown(&route, &store);
    assert!(
        !matches!(&shown, Shown::Proved(promise, _) if *promise != AtLeastOnce),
        "{shown:?}"
    );
    let assumed = assumed(&route, &store).unwrap();
    assert_eq!(assumed.promise, promise);
    let assumptions = assumed.assumptions.join("; ");
    assert!(assumptions.contains(says), "{assumptions}");
    let refused = demanded(&route, &store, promise);
    assert!(matches!(refused, Shown::Unproved(_)), "{refused:?}");
}

/// Sixteen deliveries made three charges, at 0, 7 and 14 s: the pause between two attempts was taken for the span of all.
#[test]
fn the_pause_between_two_attempts_proves_no_memory() {
    let tasks = "source = \"cloud-tasks\"\ntask_names = \"never reused\"\nmax_backoff = \"5s\"\ndeadline = \"2s\"\n\
                 retention = \"7s\"";
    let downstream = "downstream = \"deduplicates\"\ndownstream_keys = \"key\"\ndownstream_window";
    let short = format!("{downstream} = \"14s\"");
    let refused = demanded(&route(&[tasks, &short]), &good(), ExactlyOnce);
    let says = "downstream_window 14s < retention + horizon 2678407s of cloud-tasks";
    assert!(
        matches!(&refused, Shown::Unproved(why) if why.iter().any(|it| it.contains(says))),
        "{refused:?}"
    );
    let long = format!("{downstream} = \"62d\"");
    let says = "no delivery of cloud-tasks comes later than retention 7s (it may deliver for 31d)";
    only_assumed(&[tasks, &long], ExactlyOnce, says);
}

/// A queue that was paused for longer than retention ran its work twice.
#[test]
fn a_queue_may_pause_for_longer_than_retention() {
    let tasks = "source = \"cloud-tasks\"\ntask_names = \"never reused\"";
    let says = "later than retention 24h (it may deliver for 31d)";
    only_assumed(&[tasks, PARK], AtMostOnce, says);
    for enough in [
        "retention = \"31d\"",
        "horizon = \"24h\"",
        "promise = \"at-most-once\"",
    ] {
        judge(
            &[tasks, PARK, enough],
            &good(),
            &Proved(AtMostOnce, Everything),
        );
    }
}

#[test]
fn a_subscription_that_is_sought_back_delivers_what_was_forgotten() {
    let pubsub = "source = \"pubsub\"";
    let says = "later than retention 7d (it may deliver for 31d)";
    only_assumed(&[pubsub, PARK], AtMostOnce, says);
    let never = "seek = \"never\"";
    let most = || Proved(AtMostOnce, Everything);
    judge(&[pubsub, PARK, never], &good(), &most());
    // A copy in the dead-letter topic is delivered for as long again.
    let dead_letters = "sender_attempts = 5\nkey = \"/id\"";
    let says = "later than retention 7d (it may deliver for 14d)";
    only_assumed(&[pubsub, PARK, never, dead_letters], AtMostOnce, says);
    let long = "retention = \"14d\"";
    judge(&[pubsub, PARK, never, dead_letters, long], &good(), &most());
}

#[test]
fn callers_that_choose_names_may_use_them_again() {
    let tasks = "source = \"cloud-tasks\"\nhorizon = \"24h\"";
    let says = "no caller uses the name of a task again";
    for key in ["", "key = \"cloud-tasks\"", "key = \"task-name\""] {
        only_assumed(&[tasks, PARK, key], AtMostOnce, says);
        let demand = format!("promise = \"at-most-once\"\n{key}");
        only_assumed(&[tasks, PARK, &demand], AtMostOnce, says);
    }
    for enough in ["task_names = \"never reused\"", "key = \"/order_id\""] {
        judge(
            &[tasks, PARK, enough],
            &good(),
            &Proved(AtMostOnce, Everything),
        );
    }
}

/// Work under a name whose task had been deleted was answered 200 from the record of the earlier task, and never ran, under a
/// proved *at least once*. Headers of the transport hid that the key was the name.
#[test]
fn a_name_that_is_used_again_swallows_new_work() {
    let tasks = "source = \"cloud-tasks\"";
    for key in [
        "",
        "key = \"cloud-tasks\"",
        "key = [\"queue\", \"task-name\", \"header:user-agent\"]",
        "key = \"header:x-cloudtasks-taskname\"",
        "key = \"header:x-appengine-taskname\"",
    ] {
        let says = "no caller uses the name of a task again";
        judge(&[tasks, key], &good(), &No("task_names = \"never reused\""));
        let plain = assumed(&route(&[tasks, key]), &good()).unwrap();
        assert_eq!(plain.promise, AtLeastOnce, "{key}");
        assert_eq!(plain.assumptions, [says], "{key}");
        let demand = route(&[tasks, key, "promise = \"at-least-once\""]);
        let refused = demanded(&demand, &good(), AtLeastOnce);
        assert!(matches!(refused, Shown::Unproved(_)), "{key}: {refused:?}");
        let unique = "task_names = \"never reused\"";
        let least = Proved(AtLeastOnce, Everything);
        judge(&[tasks, key, unique], &good(), &least);
    }
    for key in [
        "key = \"/order_id\"",
        "key = [\"task-name\", \"form:order\"]",
        "key = [\"task-name\", \"body\"]",
        "key = \"header:x-order-id\"",
    ] {
        judge(&[tasks, key], &good(), &Proved(AtLeastOnce, Everything));
    }
}

#[test]
fn a_client_whose_span_is_not_known_can_be_promised_only_to_run_at_least_once() {
    let api = "source = \"api\"\ncaller = \"shared\"";
    judge(&[api], &good(), &Proved(AtLeastOnce, Everything));
    only_assumed(&[api, PARK], AtMostOnce, "no horizon is declared");
    let both = "source = [\"pubsub\", \"api\"]\ncaller = \"shared\"\nretention = \"31d\"";
    only_assumed(&[both, PARK], AtMostOnce, "no request of api is repeated");
}

/// Letters came after 15.5 days, of messages that their subscription had dropped after 7.
#[test]
fn a_declared_horizon_never_lengthens_the_time_that_a_sender_delivers() {
    for (settings, source, expected) in [
        (
            "source = \"pubsub\"\nhorizon = \"31d\"",
            Source::PubSub,
            7 * 24,
        ),
        ("source = \"pubsub\"\nhorizon = \"12h\"", Source::PubSub, 12),
        (
            "source = \"cloudevents\"\nhorizon = \"31d\"",
            Source::CloudEvents,
            24,
        ),
        (
            "source = \"cloud-tasks\"\nsender_attempts = \"unlimited\"",
            Source::CloudTasks,
            24,
        ),
        (
            "source = \"cloud-tasks\"\nsender_attempts = \"unlimited\"\nhorizon = \"31d\"",
            Source::CloudTasks,
            24,
        ),
        (
            "source = \"shopify\"\nsecrets = [\"env:PATH\"]\nhorizon = \"3d\"",
            Source::Webhook(Webhook::Shopify),
            4,
        ),
    ] {
        let route = route(&[settings]);
        let terms = route.terms(source);
        assert_eq!(terms.delivers_for, Some(HOUR * expected), "{settings}");
        let parks = terms.park_after.unwrap_or_default();
        assert!(parks <= HOUR * expected / 10 * 9, "{settings}: {parks:?}");
    }
}

#[test]
fn a_demand_never_shortens_the_default_memory() {
    for (sender, days) in [
        ("pubsub", 7),
        ("shopify", 7),
        ("github", 7),
        ("cloudevents", 1),
    ] {
        let secrets = if days == 7 && sender != "pubsub" {
            "secrets = [\"env:PATH\"]"
        } else {
            ""
        };
        let source = format!("source = {sender:?}\nhorizon = \"1h\"\n{secrets}");
        let plain = route(&[&source, PARK]);
        let demands = route(&[&source, PARK, "promise = \"at-most-once\""]);
        assert_eq!(plain.retention(), HOUR * 24 * days, "{sender}");
        assert_eq!(demands.retention(), plain.retention(), "{sender}");
    }
}

/// The copy in the dead-letter topic has another id, and comes through another subscription: it ran again under a proved
/// *at most once*.
#[test]
fn a_key_that_a_dead_letter_copy_changes_proves_no_memory() {
    let span = "horizon = \"7d\"\nsource = \"pubsub\"";
    let counted = "sender_attempts = 5";
    let most = || Proved(AtMostOnce, Everything);
    for key in [
        "",
        "key = \"message-id\"",
        "key = [\"/id\", \"subscription\"]",
        "key = [\"/id\", \"header:x-goog-pubsub-subscription-name\"]",
    ] {
        judge(&[span, PARK, key, counted], &good(), &No("another one"));
        for proves in [HANDLER, KEYS] {
            let refused = demanded(&route(&[span, key, counted, proves]), &good(), ExactlyOnce);
            assert!(matches!(refused, Shown::Unproved(_)), "{key}: {refused:?}");
        }
        // What runs again runs at least once.
        judge(
            &[span, key, counted],
            &good(),
            &Proved(AtLeastOnce, Everything),
        );
        for without in ["", "sender_attempts = \"unlimited\""] {
            judge(&[span, PARK, key, without], &good(), &most());
        }
    }
    judge(
        &[span, PARK, "key = \"ce:id\"", counted],
        &good(),
        &No("another one"),
    );
    let by_id = "key = \"/id\"";
    judge(&[span, PARK, by_id, counted], &good(), &most());
    let nack = "on_exhausted = \"nack\"";
    judge(&[span, PARK, by_id, counted, nack], &good(), &most());
    judge(
        &[span, PARK, by_id, nack],
        &good(),
        &No("write sender_attempts"),
    );
}

/// An API client may repeat a request at any time, so a downstream that remembers for a second drops nothing.
#[test]
fn a_window_is_compared_with_retention_where_no_span_is_known() {
    let api = "source = \"api\"\ncaller = \"shared\"";
    let window = |time: &str| KEYS.replace("14d", time);
    let short = route(&[api, &window("1s")]);
    assert_eq!(assumed(&short, &good()), None);
    only_assumed(
        &[api, &window("48h")],
        ExactlyOnce,
        "no horizon is declared",
    );
}

/// The copy of an event is another event, from another topic.
#[test]
fn a_dead_letter_copy_of_an_event_is_another_event() {
    let events = "source = \"cloudevents\"\nretention = \"48h\"";
    let counted = "sender_attempts = 5";
    for key in ["", "key = [\"/id\", \"ce:source\"]", "key = \"message-id\""] {
        judge(&[events, PARK, key, counted], &good(), &No("another one"));
        judge(
            &[events, key, counted],
            &good(),
            &Proved(AtLeastOnce, Everything),
        );
        judge(
            &[events, PARK, key],
            &good(),
            &Proved(AtMostOnce, Everything),
        );
    }
    let by_id = "key = \"/id\"";
    judge(
        &[events, PARK, by_id, counted],
        &good(),
        &Proved(AtMostOnce, Everything),
    );
    let short = "source = \"cloudevents\"\nretention = \"24h\"";
    let says = "later than retention 24h (it may deliver for 2d)";
    only_assumed(&[short, PARK, by_id, counted], AtMostOnce, says);
}

/// A number of attempts that no document knows has a schedule that none knows.
#[test]
fn more_attempts_than_are_documented_take_an_unknown_time() {
    let secrets = "secrets = [\"env:PATH\"]\nbody_bytes_max = \"32MiB\"";
    for (sender, documented) in [("github", 1), ("shopify", 9)] {
        let sent = format!("source = {sender:?}");
        let with = |attempts: u32| format!("sender_attempts = {attempts}");
        let known = with(documented);
        judge(
            &[&sent, secrets, PARK, &known],
            &good(),
            &Proved(AtMostOnce, Everything),
        );
        let more = with(documented + 1);
        let says = "no horizon is declared";
        only_assumed(&[&sent, secrets, PARK, &more], AtMostOnce, says);
        let refused = demanded(&route(&[&sent, secrets, PARK, &more]), &good(), AtMostOnce);
        let why = format!("sender_attempts {} is more than", documented + 1);
        assert!(
            matches!(&refused, Shown::Unproved(says) if says[0].contains(&why)),
            "{refused:?}"
        );
        judge(
            &[&sent, secrets, PARK, &more, "horizon = \"5d\""],
            &good(),
            &Proved(AtMostOnce, Everything),
        );
    }
}
