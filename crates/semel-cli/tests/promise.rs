//! Promises, proved against live stores when a gate starts, or it does not start.

use crate::support::counter::Counter;
use crate::support::gate::{Gate, GateFile};
use crate::support::said::{Said, Says, command};
use crate::support::wait_for;
use semel_rig::http::Request;
use std::time::Duration;
use testbed::{Postgres, Program};

/// Part of the log's line of a proved landing. The log is written beside the gate's work, so a test waits for it.
const PROVED: &str = "proved: at-least-once";

/// A route of Pub/Sub with more settings.
fn route(settings: &str) -> String {
    format!("[[route]]\nname = \"orders\"\npath = \"/orders\"\nsource = \"pubsub\"\n{settings}\n")
}

/// A gate that must not start: what it says at its end.
fn refused(store: &str, rest: &str) -> Said {
    let file = GateFile::write(store, 9, rest);
    let said: Said = file.command().output().unwrap().into();
    assert_eq!(said.code, Some(64), "{said:?}");
    said
}

/// The log of a gate that starts.
fn started(store: &str, rest: &str) -> String {
    let counter = Counter::start(Duration::ZERO);
    let mut gate = Gate::start(store, counter.port, rest);
    let log = gate.log();
    gate.stop();
    log
}

const EXACTLY: &str = "promise = \"exactly-once\"\ncompletes = \"handler\"";

#[test]
fn a_postgres_proves_what_its_settings_allow() {
    let url = testbed::fresh_database("promise").unwrap();
    let log = started(&url, &format!("failover = \"none\"\n{}", route(EXACTLY)));
    log.has("proved: exactly-once, of what that transaction writes");
    refused(&url, &route(EXACTLY))
        .stderr
        .has("declare failover = \"none\"");
}

#[test]
fn a_setting_of_the_server_that_loses_commits_is_found_at_start() {
    let mut postgres = Postgres::start().unwrap();
    let url = postgres.create_database("shop").unwrap();
    let rest = format!("failover = \"none\"\n{}", route(EXACTLY));
    started(&url, &rest).has("proved: exactly-once");
    for (change, says, back) in [
        (
            "ALTER DATABASE shop SET synchronous_commit = off",
            "synchronous_commit is",
            "ALTER DATABASE shop RESET synchronous_commit",
        ),
        (
            "ALTER TABLE semel.letter SET UNLOGGED",
            "empties semel's tables letter",
            "ALTER TABLE semel.letter SET LOGGED",
        ),
    ] {
        testbed::query(&url, change).unwrap();
        refused(&url, &rest).stderr.has(says);
        testbed::query(&url, back).unwrap();
    }
    let standby = format!("failover = \"synchronous-standby\"\n{}", route(EXACTLY));
    refused(&url, &standby)
        .stderr
        .has("synchronous_standby_names is empty");
    postgres.stop().unwrap();
}

#[test]
fn a_store_that_comes_late_is_proved_when_it_comes() {
    let mut postgres = Postgres::start().unwrap();
    let url = postgres.create_database("shop").unwrap();
    postgres.stop().unwrap();
    let file = GateFile::write(&url, 9, &route(EXACTLY));
    let mut program = Program::start(&mut file.command()).unwrap();
    program
        .wait_until(|it| it.log().contains("waiting for the store"))
        .unwrap();
    postgres.restart().unwrap();
    assert_eq!(program.ended().unwrap().code(), Some(64));
    let log = program.log();
    log.has("promise = \"exactly-once\" is not proved");
    log.lacks("\"ready\"");
}

#[test]
fn a_redis_proves_what_its_settings_allow() {
    let always = [("appendonly", "yes"), ("appendfsync", "always")];
    let redis = testbed::Redis::start(&always).unwrap();
    let demand = route("promise = \"at-least-once\"");
    let alone = format!("failover = \"none\"\n{demand}");
    let log = started(&redis.url(), &alone);
    log.has("proved: at-least-once");
    refused(&redis.url(), &demand)
        .stderr
        .has("declare failover = \"none\"");
    let every_second = [("appendonly", "yes"), ("appendfsync", "everysec")];
    let redis = testbed::Redis::start(&every_second).unwrap();
    refused(&redis.url(), &alone)
        .stderr
        .has("appendfsync is everysec in the Redis server");
    // Without a demand it starts, and promises nothing.
    let log = started(&redis.url(), &format!("failover = \"none\"\n{}", route("")));
    log.has("no promise: appendfsync is everysec");
    log.lacks("proved:");
}

// === Where rows land ===

/// No store, and no handler: rows are all there is.
const NO_STORE: &str = "redis://127.0.0.1:1";

/// A server with the tables for rows; its URL, and the configuration of a gate whose rows land there.
fn landing(postgres: &Postgres) -> (String, String) {
    let url = postgres.create_database("shop").unwrap();
    let tables = command("warehouse sql --dialect postgres --part ddl").output();
    let tables = String::from_utf8(tables.unwrap().stdout).unwrap();
    testbed::query(&url, &tables).unwrap();
    let land = url.replacen("/shop", "/shop/landing", 1);
    let demand = format!(
        "record = \"none\"\ndead_letter_topic = true\npromise = \"at-least-once\"\nland = \"{land}\""
    );
    (url, format!("failover = \"none\"\n{}", route(&demand)))
}

#[test]
fn rows_that_the_server_of_a_landing_may_lose_leave_no_promise() {
    let mut postgres = Postgres::start().unwrap();
    let (url, rest) = landing(&postgres);
    started(NO_STORE, &rest).has("proved: at-least-once");
    let relax = "ALTER DATABASE shop SET synchronous_commit = off";
    testbed::query(&url, relax).unwrap();
    // Each transaction of a landing sets it to on.
    started(NO_STORE, &rest).has("proved: at-least-once");
    postgres.stop().unwrap();
    let mut postgres = Postgres::start_with(&[("fsync", "off")]).unwrap();
    let (_, rest) = landing(&postgres);
    refused(NO_STORE, &rest)
        .stderr
        .has("fsync is off in the PostgreSQL server that `land` names");
    postgres.stop().unwrap();
}

/// A gate that was started while the server of its landing was stopped, and refuses what is delivered.
fn waiting(rest: &str) -> (Program, GateFile) {
    let file = GateFile::write(NO_STORE, 9, rest);
    let mut program = Program::start(&mut file.command()).unwrap();
    program
        .wait_until(|it| it.log().contains("waiting for the landing"))
        .unwrap();
    wait_for("it listens", || deliver(&file).is_some());
    assert_eq!(deliver(&file), Some(503));
    (program, file)
}

/// The status that a message receives; none when no gate listens.
fn deliver(file: &GateFile) -> Option<u16> {
    let message = Request::post("/orders", "{}")
        .header(
            "x-goog-pubsub-subscription-name",
            "projects/p/subscriptions/s",
        )
        .header("x-goog-pubsub-message-id", "1");
    Some(message.send_blocking(file.port).ok()?.status)
}

#[test]
fn a_landing_that_comes_late_lands_nothing_before_it_is_proved() {
    let mut postgres = Postgres::start_with(&[("fsync", "off")]).unwrap();
    let (url, rest) = landing(&postgres);
    postgres.stop().unwrap();
    let (mut program, file) = waiting(&rest);
    postgres.restart().unwrap();
    wait_for("the end", || {
        let status = deliver(&file);
        assert!([Some(503), None].contains(&status), "{status:?}");
        status.is_none()
    });
    assert_eq!(program.ended().unwrap().code(), Some(64));
    program
        .log()
        .has("promise = \"at-least-once\" is not proved");
    let rows = testbed::query(&url, "SELECT count(*) FROM landing").unwrap();
    assert_eq!(rows.trim(), "0");
    postgres.stop().unwrap();
}

#[test]
fn a_landing_that_comes_late_lands_once_it_is_proved() {
    let mut postgres = Postgres::start().unwrap();
    let (url, rest) = landing(&postgres);
    postgres.stop().unwrap();
    let (mut program, file) = waiting(&rest);
    program.log().lacks("proved: at-least-once");
    postgres.restart().unwrap();
    wait_for("it lands", || {
        deliver(&file).is_some_and(|status| status < 300)
    });
    wait_for("the log says so", || program.log().contains(PROVED));
    assert_eq!(program.stop().unwrap().code(), Some(0));
    let rows = testbed::query(&url, "SELECT count(*) FROM landing").unwrap();
    assert_ne!(rows.trim(), "0");
    postgres.stop().unwrap();
}

/// A store that never comes kept rows of another route from landing.
#[test]
fn a_landing_waits_for_no_store_that_its_route_does_not_need() {
    let mut postgres = Postgres::start().unwrap();
    let (_, rest) = landing(&postgres);
    let records = "[[route]]\nname = \"other\"\npath = \"/other\"\nsource = \"pubsub\"\n";
    let file = GateFile::write(NO_STORE, 9, &format!("{rest}{records}"));
    let mut program = Program::start(&mut file.command()).unwrap();
    wait_for("it lands", || {
        deliver(&file).is_some_and(|status| status < 300)
    });
    wait_for("the log says so", || program.log().contains(PROVED));
    let log = program.log();
    log.has("waiting for the store");
    log.lacks("\"ready\"");
    assert_eq!(program.stop().unwrap().code(), Some(0));
    postgres.stop().unwrap();
}

#[test]
fn a_landing_that_comes_late_is_shown_once_it_is_read() {
    let mut postgres = Postgres::start().unwrap();
    let (_, rest) = landing(&postgres);
    let rest = rest.replace("promise = \"at-least-once\"\n", "");
    postgres.stop().unwrap();
    let (mut program, file) = waiting(&rest);
    let page = || file.admin(&Request::get("/ui/routes/orders"));
    page().has("only once the gate has read fsync and synchronous_standby_names");
    postgres.restart().unwrap();
    wait_for("it lands", || {
        deliver(&file).is_some_and(|status| status < 300)
    });
    wait_for("the page says so", || {
        !page().contains("only once the gate has read")
    });
    wait_for("the log says so", || program.log().contains(PROVED));
    assert_eq!(program.stop().unwrap().code(), Some(0));
    postgres.stop().unwrap();
}
