//! What `semel check` says of sources, of answers in doubt, and of letters.

use super::{Says, check, in_route};

fn good(lines: &str) -> String {
    check(&in_route(lines)).good()
}

/// Which sources a route takes deliveries of.
fn taken(said: &str) -> Vec<&'static str> {
    let is_taken = |source: &&str| said.contains(&format!("route orders, {source}: "));
    let all = ["api", "cloud-tasks", "pubsub", "cloudevents"];
    all.into_iter().filter(is_taken).collect()
}

#[test]
fn auto_takes_brokers_or_where_a_caller_is_named_api_clients() {
    let brokers = ["cloud-tasks", "pubsub", "cloudevents"];
    assert_eq!(taken(&good("")), brokers);
    assert_eq!(taken(&good("source = \"auto\"")), brokers);
    let said = good("caller = \"shared\"");
    assert_eq!(taken(&said), ["api"]);
    said.has("only requests of API clients are taken");
}

#[test]
fn a_list_takes_those_that_it_names() {
    let said = good("source = [\"api\", \"pubsub\"]\ncaller = \"header:x-client\"");
    assert_eq!(taken(&said), ["api", "pubsub"]);
    let said = good("source = [\"pubsub\", \"cloudevents\"]\ncaller = \"shared\"");
    assert_eq!(taken(&said), ["pubsub", "cloudevents"]);
    said.has("warning  route orders: caller tells API clients apart");
}

#[test]
fn a_list_with_api_clients_needs_their_caller() {
    check(&in_route("source = [\"api\", \"pubsub\"]"))
        .ends(64, "route orders: `caller` is missing");
}

#[test]
fn parking_says_what_an_answer_means() {
    let said = good("in_doubt = \"park\"");
    said.has("may have taken effect and parks the work, and `undone` and `final` list none");
    let said = good("in_doubt = \"park\"\nundone = [503]\nfinal = [422]");
    said.has("except those in `undone`, which may run again");
    let said = good("undone = [503]");
    said.has("warning  route orders: undone has no effect here");
    good("").lacks("undone");
}

#[test]
fn a_body_that_could_never_be_kept_is_told() {
    let said = good("letters_bytes_max = \"20MiB\"");
    said.has("warning  route orders: body_bytes_max 16777216 and its headers > half of letters_bytes_max");
    said.lacks("; proved: ");
    good("letters_bytes_max = 33816576").lacks("and its headers");
    let demand = "letters_bytes_max = \"20MiB\"\nsource = \"pubsub\"\npromise = \"at-least-once\"";
    let durable = format!("durable_disk = true\n{}", in_route(demand));
    check(&durable).ends(64, "raise letters_bytes_max to 33816576");
}

#[test]
fn the_outage_that_the_quota_holds_is_printed() {
    let said = good("letters_max = 10000");
    said.has("an outage may leave 7500 unfinished pieces of work, or 201326592 bytes of them (2 h at 1/s, 12 min at 10/s, 75 s at 100/s)");
    said.has("`semel_work_unkept_total` counts it, and the promise ends");
    good("source = \"api\"\ncaller = \"shared\"").lacks("an outage may leave");
}
