//! What a route promises, as `semel check` says it without asking the store.

use super::{check, check_with, in_route, on_top};
use crate::support::root;
use crate::support::said::Says;

const POSTGRES: &str = "store = \"postgres://h/d\"\n";

#[test]
fn every_route_has_one_line_of_what_a_crash_does() {
    for (settings, says) in [
        ("", "the work runs again, and its effect can happen twice"),
        (
            "in_doubt = \"park\"",
            "the work is parked: a person finds out",
        ),
        ("completes = \"handler\"", "are both there or both not"),
        (
            "downstream = \"deduplicates\"\ndownstream_keys = \"key\"\ndownstream_window = \"62d\"",
            "runs again with the same key, and the downstream drops what it knows",
        ),
    ] {
        let remembered = format!("retention = \"31d\"\ntask_names = \"never reused\"\n{settings}");
        let said = check(&format!("{POSTGRES}{}", in_route(&remembered))).good();
        said.has(says);
        let lines = said.lines().filter(|line| line.contains("after a crash"));
        assert_eq!(lines.count(), 1, "{said}");
        // Nothing was read of the server, so nothing is proved.
        said.has("proved only once the gate has read fsync, synchronous_commit");
        for promise in ["exactly-once", "at-most-once", "at-least-once"] {
            said.lacks(promise);
        }
    }
}

#[test]
fn a_demand_that_nothing_can_prove_is_refused_before_a_store_is_asked() {
    for (settings, says) in [
        ("promise = \"exactly-once\"", "set completes = \"handler\""),
        ("promise = \"at-most-once\"", "set in_doubt = \"park\""),
        (
            "promise = \"at-least-once\"\nin_doubt = \"park\"",
            "set in_doubt = \"retry\"",
        ),
        (
            "promise = \"at-least-once\"\nfingerprint = \"off\"",
            "set it to \"full\"",
        ),
    ] {
        check(&format!("{POSTGRES}{}", in_route(settings))).ends(64, says);
    }
    let several = "failover = \"none\"\nstore = \"postgres://a,b/d\"";
    let demand = "task_names = \"never reused\"\npromise = \"at-least-once\"\n";
    check(&format!("{}{demand}", on_top(several))).ends(64, "store names several hosts");
    let open = format!("{POSTGRES}{}", in_route(demand));
    let said = check(&open).good();
    said.has("note     route orders: promise = \"at-least-once\": ");
    said.has("proved only once the gate has read");
}

const PARKS: &str = "in_doubt = \"park\"\ntask_names = \"never reused\"";

#[test]
fn a_memory_that_is_too_short_is_an_assumption_and_under_a_demand_an_error() {
    let parks = |lines: &str| {
        let durable = on_top("durable_disk = true");
        check(&format!(
            "{durable}{PARKS}\nsource = \"cloud-tasks\"\n{lines}\n"
        ))
    };
    let said = parks("").good();
    said.has("note     route orders: after a crash");
    said.has("assumed, not proved: at-most-once, as long as no delivery of cloud-tasks comes later than retention 24h (it may deliver for 31d)");
    said.lacks("; proved: ");
    let demand = "promise = \"at-most-once\"";
    // The default of a route that demands it is the horizon.
    let said = parks(demand).good();
    said.has("proved   route orders, cloud-tasks: retention 31d ≥ horizon 31d");
    said.has("proved   route orders: promise = \"at-most-once\"");
    parks(&format!("{demand}\nretention = \"24h\"")).ends(64, "retention 24h < horizon 31d");
    let said = parks(&format!("{demand}\nhorizon = \"7d\"")).good();
    said.has("retention 7d ≥ horizon 7d");
    said.has("proved: at-most-once, as declared that ");
    said.has("that no caller uses the name of a task again, that no delivery of cloud-tasks comes later than horizon 7d (it can deliver for 31d)");
    // What was forgotten only repeats.
    let least = in_route(
        "source = \"cloud-tasks\"\ntask_names = \"never reused\"\npromise = \"at-least-once\"",
    );
    let said = check(&format!("durable_disk = true\n{least}")).good();
    said.has("retention 24h < horizon 31d");
    said.has("assuming that cloud-tasks delivers a task 100 times (a queue's default), until the letters' quota is full");
}

#[test]
fn names_of_tasks_must_be_declared_unique_where_they_are_the_key() {
    let demand = "source = \"cloud-tasks\"\nin_doubt = \"park\"\npromise = \"at-most-once\"";
    let durable = on_top("durable_disk = true");
    check(&format!("{durable}{demand}\n")).ends(64, "task_names = \"never reused\"");
    check(&format!("{durable}{demand}\nkey = \"/id\"\n")).good();
    let least = "source = \"cloud-tasks\"\npromise = \"at-least-once\"";
    check(&format!("{durable}{least}\n")).ends(64, "task_names = \"never reused\"");
    let said = check(&format!("{durable}source = \"cloud-tasks\"\n")).good();
    said.has(
        "assumed, not proved: at-least-once, as long as no caller uses the name of a task again",
    );
    said.lacks("; proved: ");
}

/// A route that `semel check` refused for one reason was called proved for another.
#[test]
fn a_refused_route_has_no_proved_promise() {
    let durable = on_top("durable_disk = true");
    let demand = "source = \"pubsub\"\npromise = \"at-least-once\"\n";
    let good = format!("{durable}{demand}");
    check(&good)
        .good()
        .has("proved   route orders: promise = \"at-least-once\"");
    for broken in ["wait = \"10s\"\n", "deadline = \"1s\"\n"] {
        let output = check(&format!("{good}{broken}"));
        output.refused();
        output.stdout.lacks("proved: at-least-once");
    }
}

/// The advice that `semel check` gives for a dead-letter policy is enough.
#[test]
fn the_advice_for_a_dead_letter_policy_passes() {
    let durable = on_top("durable_disk = true");
    let lines = |rest: &str| {
        check(&format!(
            "{durable}source = \"pubsub\"\nkey = \"/id\"\nsender_attempts = 5\nin_doubt = \"park\"\npromise = \
             \"at-most-once\"\n{rest}\n"
        ))
    };
    lines("retention = \"7d\"").ends(
        64,
        "seek = \"never\" and retention to 14d if neither the subscription nor the dead-letter one is ever sought back",
    );
    lines("retention = \"14d\"\nseek = \"never\"").good();
    lines("retention = \"14d\"\nhorizon = \"14d\"").good();
    lines("retention = \"62d\"").good();
}

#[test]
fn an_emulator_proves_nothing() {
    let firestore = "store = \"firestore://shop-prod\"\n";
    let handler = in_route("source = \"pubsub\"\ncompletes = \"handler\"\nretention = \"31d\"");
    let file = format!("{firestore}{handler}");
    check(&file).good().has("proved: exactly-once");
    let emulator = &[("FIRESTORE_EMULATOR_HOST", "127.0.0.1:8080")];
    let said = check_with(&file, "", emulator).good();
    said.has("no promise: FIRESTORE_EMULATOR_HOST is set");
    said.lacks("; proved: ");
    let demand = format!("{file}promise = \"exactly-once\"\n");
    check_with(&demand, "", emulator).ends(64, "FIRESTORE_EMULATOR_HOST is set");
}

#[test]
fn more_attempts_than_a_schedule_has_need_a_horizon() {
    let durable = on_top("durable_disk = true");
    let lines = |rest: &str| {
        let file = format!(
            "{durable}source = \"standard-webhooks\"\nsecrets = [\"env:S\"]\nin_doubt = \"park\"\npromise = \
             \"at-most-once\"\n{rest}\n"
        );
        check_with(&file, "", &[("S", "whsec_b3RoZXItb3RoZXI=")])
    };
    lines("sender_attempts = 10").good();
    lines("sender_attempts = 30").ends(
        64,
        "is not known (sender_attempts 30 is more than its documented schedule has): set horizon",
    );
    lines("sender_attempts = 30\nhorizon = \"7d\"").good();
}

#[test]
fn a_promise_needs_room_for_the_largest_body_of_its_sender() {
    for (source, small, enough, largest) in [
        ("cloud-tasks", "1048575", "1MiB", "1048576"),
        ("pubsub", "14MiB", "15MiB", "15029588"),
        ("cloudevents", "14MiB", "15MiB", "15029588"),
    ] {
        let lines = |size: &str| {
            in_route(&format!(
                "source = \"{source}\"\nbody_bytes_max = \"{size}\""
            ))
            .replace("\"1048575\"", "1048575")
        };
        let says = format!("{source} may send");
        let said = check(&lines(small)).good();
        said.has(&format!("warning  route orders, {source}: body_bytes_max"));
        said.has(&says);
        let demand = "promise = \"at-least-once\"\n";
        let demanded = format!("durable_disk = true\n{}{demand}", lines(small));
        check(&demanded).ends(64, &format!("raise body_bytes_max to {largest}"));
        check(&lines(enough)).good().lacks(&says);
    }
    let signed = |file: &str| check_with(file, "", &[("S", "whsec_b3RoZXItb3RoZXI=")]);
    let github = in_route("source = \"github\"\nsecrets = [\"env:S\"]");
    signed(&github)
        .good()
        .has("github may send a payload of 25 MB");
    let demanded = format!("durable_disk = true\n{github}promise = \"at-least-once\"\n");
    signed(&demanded).ends(64, "raise body_bytes_max to 26214400");
    // Without a documented limit, a promise needs the default.
    for source in ["stripe", "shopify", "standard-webhooks"] {
        let lines = |rest: &str| {
            let sent = format!("source = \"{source}\"\nsecrets = [\"env:S\"]\n{rest}");
            format!("durable_disk = true\n{}", in_route(&sent))
        };
        let small = "body_bytes_max = 16777215";
        let says = "no limit is documented; a promise needs the default of body_bytes_max";
        signed(&lines(small))
            .good()
            .has(&format!("note     route orders, {source}: {small}").replace(" = ", " "));
        let demand = "promise = \"at-least-once\"";
        signed(&lines(&format!("{small}\n{demand}"))).ends(64, says);
        signed(&lines(demand)).good();
    }
}

/// The text between two lines of a page.
fn example<'a>(page: &'a str, language: &str) -> &'a str {
    let (_, after) = page.split_once(&format!("```{language}\n")).unwrap();
    after.split_once("```").unwrap().0
}

#[test]
fn the_example_of_the_page_is_accepted() {
    let page = std::fs::read_to_string(root().join("docs/promises.md")).unwrap();
    let said = check(example(&page, "toml")).good();
    said.has("route charge: promise = \"exactly-once\": ");
    said.has("proved only once the gate has read");
}

#[test]
fn where_rows_land_is_part_of_the_demand() {
    let lands = |place: &str| {
        format!(
            "durable_disk = true\n{}",
            in_route(&format!(
                "source = \"pubsub\"\npromise = \"at-least-once\"\nlands = \"answer\"\nland = \"{place}\""
            ))
        )
    };
    check(&lands("file:./landing"))
        .good()
        .has("proved   route orders: promise = \"at-least-once\"");
    check(&lands("file:/dev/shm/semel-none")).ends(64, "land is a directory in memory (tmpfs)");
    let said = check(&lands("postgres://h/shop/landing")).good();
    said.has("note     route orders: promise = \"at-least-once\"");
    said.has("proved only once the gate has read fsync and synchronous_standby_names of the PostgreSQL server that `land` names");
}

#[test]
fn a_directory_is_judged_by_what_it_is_on() {
    let demand = in_route("source = \"pubsub\"\npromise = \"at-least-once\"");
    let memory = format!("store = \"dir:/dev/shm/semel-none\"\ndurable_disk = true\n{demand}");
    check(&memory).ends(64, "in memory (tmpfs)");
    // A platform replaces machines, whatever the directory is on here.
    let platform = &[("K_SERVICE", "x")];
    let alone = format!("single_instance = true\n{demand}");
    let output = check_with(&alone, "", platform);
    output.ends(64, "declare durable_disk = true");
    output.stdout.lacks("local disk");
    let durable = format!("durable_disk = true\n{alone}");
    let said = check_with(&durable, "", platform).good();
    said.has("proved   route orders: promise = \"at-least-once\": ");
}

#[test]
fn what_is_said_of_a_downstream_is_said_whole() {
    let only = check(&in_route("downstream = \"deduplicates\""));
    only.ends(64, "`downstream_keys` is missing beside `downstream`");
    only.ends(64, "`downstream_window` is missing beside `downstream`");
    let lonely = check(&in_route("downstream_window = \"1d\""));
    lonely.ends(64, "`downstream_window` is for routes with downstream");
    check(&in_route("promise = \"always\"")).ends(64, "\"always\" is unknown: write");
    check(&on_top("failover = \"maybe\"")).ends(64, "\"maybe\" is unknown: write");
}
