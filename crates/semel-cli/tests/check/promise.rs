//! What a route promises, as `semel check` says it without asking the store.

use super::{check, check_with, in_route, on_top};
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
            "downstream = \"deduplicates\"\ndownstream_keys = \"key\"\ndownstream_window = \"60d\"",
            "runs again with the same key, and the downstream drops what it knows",
        ),
    ] {
        let said = check(&format!("{POSTGRES}{}", in_route(settings))).good();
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
    let demand = "promise = \"at-least-once\"\n";
    check(&format!("{}{demand}", on_top(several))).ends(64, "store names several hosts");
    let open = format!("{POSTGRES}{}", in_route(demand));
    let said = check(&open).good();
    said.has("note     route orders: promise = \"at-least-once\": ");
    said.has("proved only once the gate has read");
}

#[test]
fn a_directory_is_judged_by_what_it_is_on() {
    let demand = in_route("promise = \"at-least-once\"");
    let memory = format!("store = \"dir:/dev/shm/semel-none\"\ndurable_disk = true\n{demand}");
    check(&memory).ends(64, "in memory (tmpfs)");
    // A platform replaces machines, whatever the directory is on here.
    let platform = &[("K_SERVICE", "x")];
    let alone = format!("single_instance = true\n{demand}");
    check_with(&alone, "", platform).ends(64, "declare durable_disk = true");
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
