//! What is said of routes whose deliveries land, and what is refused there.

use super::{Says, check, check_with, in_route};
use tempfile::TempDir;

const STATELESS: &str = "source = \"pubsub\"\nkey = \"/id\"\nrecord = \"none\"";

/// A route without a handler.
fn landing(lines: &str) -> String {
    format!("[[route]]\nname = \"orders\"\npath = \"/orders\"\n{STATELESS}\n{lines}\n")
}

#[test]
fn where_deliveries_land_and_what_is_not_removed_there_is_said() {
    let said = check(&landing("land = \"file:./landing\"")).good();
    said.has("note     route orders: lands in ./landing/*.jsonl and, what is invalid, in ./landing/faults/*.jsonl");
    said.has("rows land at least once, within 1m of their arrival");
    said.has("nothing is remembered: every delivery lands, repeats included");
    said.lacks("refused with 400");
    said.lacks("repeats included; a bill");
    let answer = "land = \"postgres://u:canary@h/shop/landing\"\nlands = \"answer\"\nversion = \"/v\"\nupstream = \"http://h:1\"";
    let said = check(&landing(answer)).good();
    said.has("lands in the table landing and, what is invalid, in landing_faults");
    said.has("not the second bill");
    said.has("warning  route orders: record = \"none\": every delivery runs the handler");
    said.has("an answer of more than answer_bytes_max 1048576 does not land");
    said.lacks("canary");
    let off = "land = \"file:./landing\"\nfingerprint = \"off\"\non_invalid = \"reject\"";
    let said = check(&landing(off)).good();
    said.has("cannot be told from a repeat");
    said.has("refused with 400");
}

#[test]
fn a_place_that_keeps_nothing_is_refused() {
    let land = landing("land = \"file:/dev/shm/landing\"");
    check(&land).ends(64, "is in memory (tmpfs)");
    let home = TempDir::new().unwrap();
    let path = home.path().display();
    let land = landing(&format!(
        "land = \"file:{path}\"\nplatform_timeout = \"10s\""
    ));
    for variable in ["K_SERVICE", "KUBERNETES_SERVICE_HOST"] {
        let platform = [(variable, "x")];
        check_with(&land, "", &platform).ends(64, "which replaces the disks of its instances");
        let stays = format!("durable_disk = true\n{land}");
        check_with(&stays, "", &platform).good();
    }
}

#[test]
fn what_does_not_fit_together_is_refused_by_name() {
    for (lines, says) in [
        (
            "land = \"postgres://u:canary@h/shop\"",
            "`land`: a table is missing",
        ),
        (
            "land = \"postgres://u:canary@h/shop/La\"",
            "`land`: a table is named by small letters",
        ),
        (
            "land = \"postgres://u:canary@h:x/shop/la\"",
            "`land`: invalid: PostgreSQL store: a port of the URL is not a number",
        ),
        (
            "land = \"s3://canary\"",
            "`land`: this names no place to land",
        ),
        (
            "land = \"env:NOT_SET\"",
            "`land`: the variable NOT_SET is not set",
        ),
        (
            "land = \"file:semel.toml\"",
            "`land`: invalid: semel.toml is not a directory",
        ),
        (
            "land = \"file:./l\"\nlands = \"both\"",
            "write \"delivery\" or \"answer\"",
        ),
        (
            "land = \"file:./l\"\nlands = \"answer\"",
            "`upstream` is missing",
        ),
        (
            "land = \"file:./l\"\nupstream = \"http://h\"",
            "`upstream` is of no use here",
        ),
        (
            "land = \"file:./l\"\nversion = \"v\"",
            "is not a plain JSON pointer",
        ),
        (
            "lands = \"answer\"\nupstream = \"http://h\"",
            "`lands` is for routes that `land`",
        ),
        (
            "version = \"/v\"\nupstream = \"http://h\"",
            "`version` is for routes that `land`",
        ),
        (
            "on_invalid = \"land\"\nupstream = \"http://h\"",
            "`on_invalid` = \"land\" is for routes that `land`",
        ),
    ] {
        let said = check(&landing(lines));
        said.stderr.lacks("canary");
        said.ends(64, says);
    }
}

#[test]
fn with_records_a_row_is_part_of_the_run() {
    let lands = "land = \"file:./l\"\nlands = \"answer\"";
    check(&in_route(lands)).good();
    for (line, says) in [
        (
            "in_doubt = \"park\"",
            "only \"retry\" fits a route that lands",
        ),
        (
            "completes = \"handler\"",
            "records a success before its row has landed",
        ),
    ] {
        check(&in_route(&format!("{lands}\n{line}"))).ends(64, says);
    }
}

#[test]
fn a_handler_leaves_its_answer_time_to_land() {
    let tasks = |lines: &str| {
        in_route(&format!(
            "source = \"cloud-tasks\"\nland = \"file:./l\"\nlands = \"answer\"\n{lines}"
        ))
    };
    for record in ["", "record = \"none\""] {
        let said = check(&tasks(record)).good();
        said.has("proved   route orders, cloud-tasks: timeout 55s + 5s ≤ land_within 1m");
    }
    check(&tasks("timeout = \"56s\"")).ends(64, "timeout 56s + 5s > land_within 1m");
    let longer = "timeout = \"300s\"\nland_within = \"10m\"";
    check(&tasks(longer)).good().has("land_within 10m");
}

#[test]
fn the_place_may_stand_in_the_environment() {
    let land = landing("land = \"env:LANDING_URL\"");
    let url = [("LANDING_URL", "postgres://u:canary@h/shop/raw.landing")];
    let said = check_with(&land, "", &url).good();
    said.has("lands in the table raw.landing");
    said.lacks("canary");
}
