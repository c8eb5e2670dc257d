//! PostgreSQL and PgBouncer start, answer, come back and end.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::process::Command;

use testbed::{PgBouncer, Postgres, Process};

fn psql(url: &str, sql: &str) -> String {
    testbed::query(url, sql).unwrap()
}

#[test]
fn data_survives_stop_and_crash_on_the_same_port() {
    let mut postgres = Postgres::start().unwrap();
    let url = postgres.create_database("survivor").unwrap();
    psql(&url, "create table t (n int); insert into t values (1)");

    let before = postgres.pid().unwrap();
    postgres.restart().unwrap();
    assert_ne!(postgres.pid().unwrap(), before);
    psql(&url, "insert into t values (2)");

    postgres.kill().unwrap();
    assert_eq!(postgres.pid(), None);
    postgres.restart().unwrap();
    assert_eq!(psql(&url, "select sum(n) from t"), "3");
}

#[test]
fn settings_are_safe_and_can_be_replaced() {
    let postgres = Postgres::start_with(&[("max_connections", "17")]).unwrap();
    let url = postgres.url();
    assert_eq!(psql(&url, "show fsync"), "on");
    assert_eq!(psql(&url, "show synchronous_commit"), "on");
    assert_eq!(psql(&url, "show listen_addresses"), "127.0.0.1");
    assert_eq!(psql(&url, "show max_connections"), "17");
}

#[test]
fn drop_ends_the_server_with_a_client_connected() {
    let postgres = Postgres::start().unwrap();
    let process = Process::new(postgres.pid().unwrap()).unwrap();
    let dir = psql(&postgres.url(), "show unix_socket_directories");
    let mut client = Command::new("psql")
        .args(["-X", "-d", &postgres.url(), "-c", "select pg_sleep(600)"])
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    assert!(process.is_alive());
    assert!(std::path::Path::new(&dir).exists());

    drop(postgres);
    assert!(!process.is_alive());
    assert!(!std::path::Path::new(&dir).exists());
    assert!(!client.wait().unwrap().success());
}

#[test]
fn paused_server_can_still_be_stopped() {
    let mut postgres = Postgres::start().unwrap();
    let process = Process::new(postgres.pid().unwrap()).unwrap();
    process.pause().unwrap();
    postgres.stop().unwrap();
    assert!(!process.is_alive());
    postgres.restart().unwrap();
    assert_eq!(psql(&postgres.url(), "select 1"), "1");
}

#[test]
fn database_names_that_need_quoting_are_refused() {
    let postgres = Postgres::start().unwrap();
    for name in ["", "a b", "a/b", "A", &"a".repeat(64)] {
        let error = postgres.create_database(name).unwrap_err().to_string();
        assert!(error.contains("cannot name a test database"), "{error}");
    }
    postgres.create_database("twice").unwrap();
    let error = format!("{:#}", postgres.create_database("twice").unwrap_err());
    assert!(error.contains("already exists"), "{error}");
}

#[test]
fn fresh_databases_are_empty_and_different() {
    let one = testbed::fresh_database("fresh").unwrap();
    let other = testbed::fresh_database("fresh").unwrap();
    assert_ne!(one, other);
    psql(&one, "create table t ()");
    psql(&other, "create table t ()");
}

#[test]
fn pgbouncer_pools_by_transaction_and_ends_with_its_handle() {
    let postgres = Postgres::start().unwrap();
    let direct = postgres.create_database("behind").unwrap();
    psql(&direct, "create table t (n int)");

    let pgbouncer = PgBouncer::start(&direct).unwrap();
    psql(&pgbouncer.url(), "insert into t values (7)");
    assert_eq!(psql(&direct, "select n from t"), "7");
    assert_eq!(
        psql(&pgbouncer.url_of("postgres"), "select current_database()"),
        "postgres"
    );
    let modes = psql(&pgbouncer.url_of("pgbouncer"), "show config");
    assert!(modes.contains("pool_mode|transaction"), "{modes}");

    let process = Process::new(pgbouncer.pid().unwrap()).unwrap();
    assert!(process.is_alive());
    drop(pgbouncer);
    assert!(!process.is_alive());
}
