//! Promises, proved against live stores when a gate starts, or it does not start.

use crate::support::counter::Counter;
use crate::support::gate::{Gate, GateFile};
use crate::support::said::{Said, Says};
use std::time::Duration;
use testbed::Program;

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
    let mut postgres = testbed::Postgres::start().unwrap();
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
    let mut postgres = testbed::Postgres::start().unwrap();
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
