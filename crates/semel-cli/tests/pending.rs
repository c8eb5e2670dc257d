//! A real gate on a real PostgreSQL that stops taking writes between an effect and its record: the
//! effect happened once, its sender hears so, and the record follows when the server is fixed.

use crate::support::counter::Counter;
use crate::support::fleet::work;
use crate::support::gate::{API_ROUTE, Gate};
use crate::support::said::{Says, semel};
use crate::support::sender::{Sent, deliver, send};
use crate::support::wait_for;
use serde_json::Value;
use std::time::Duration;
use testbed::Postgres;

/// The lease is far shorter than the outage: what is in hand outlives it.
const TERMS: &str = "lease = \"2s\"\ntimeout = \"20s\"\n";

/// How many keys are settled.
const SETTLED: &str = "SELECT count(*) FROM semel.rec WHERE state = 2";

/// A server whose user is not its superuser, a handler, and a gate between.
struct World {
    postgres: Postgres,
    counter: Counter,
    gate: Gate,
    url: String,
}

impl World {
    fn new(settings: &str) -> Self {
        let postgres = Postgres::start().unwrap();
        let admin = |sql: &str| testbed::query(&postgres.url(), sql).unwrap();
        admin("CREATE ROLE app LOGIN PASSWORD 'first'");
        admin("CREATE DATABASE shop OWNER app");
        let hba = admin("SHOW hba_file");
        let rules =
            "local all all trust\nhost all postgres all trust\nhost all app all scram-sha-256\n";
        std::fs::write(hba.trim(), rules).unwrap();
        admin("SELECT pg_reload_conf()");
        let url = format!("postgres://app:first@127.0.0.1:{}/shop", postgres.port());
        let counter = Counter::start(Duration::ZERO);
        let gate = Gate::start(&url, counter.port, &format!("{settings}{API_ROUTE}{TERMS}"));
        assert_eq!(deliver(gate.port, &work("before")).status, 200);
        Self {
            postgres,
            counter,
            gate,
            url,
        }
    }

    /// Says this to the server, as its superuser, in the gate's database.
    fn sql(&self, statement: &str) -> String {
        let url = format!(
            "postgres://postgres@127.0.0.1:{}/shop",
            self.postgres.port()
        );
        testbed::query(&url, statement).unwrap()
    }

    /// The gate must come in again.
    fn cut(&self) {
        self.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'");
    }

    /// Lets a run take effect, and breaks the store before its outcome is recorded.
    fn effect_then(&self, breaks: impl FnOnce(&Self)) -> Sent {
        let delivery = send(self.gate.port, work("held"));
        wait_for("a run", || self.counter.count("held") == 1);
        breaks(self);
        self.counter.let_go();
        wait_for("a refusal of the store", || {
            self.gate.log().contains("an outcome is not recorded yet")
        });
        delivery
    }

    /// While the outcome is in hand it is told, nothing is run again, and nothing new is begun.
    fn is_in_hand(&self) {
        let again = work("held").send_blocking(self.gate.port).unwrap();
        assert_eq!((again.status, &*again.body), (200, "did held"));
        assert_eq!(again.header("semel-recorded"), Some("pending"));
        let new = work("new").send_blocking(self.gate.port).unwrap();
        assert_eq!(new.status, 503, "{new:?}");
        assert!(new.header("retry-after").is_some());
        assert_eq!(self.gate.ready(), 503);
        assert_eq!(self.counter.count("held"), 1);
        assert_eq!(self.counter.count("new"), 0);
    }

    /// After the repair it is recorded, and everything goes on.
    fn is_recorded(&self) {
        wait_for("the record", || self.sql(SETTLED) == "2");
        wait_for("the gate's word for it", || {
            self.gate.log().contains("a pending outcome is recorded")
        });
        wait_for("a ready gate", || self.gate.ready() == 200);
        let again = deliver(self.gate.port, &work("held"));
        assert_eq!(again.header("idempotent-replayed"), Some("true"));
        assert_eq!(again.header("semel-recorded"), None);
        assert_eq!(again.body, "did held");
        assert_eq!(deliver(self.gate.port, &work("new")).status, 200);
        assert_eq!(self.counter.count("held"), 1);
    }
}

/// From the effect to its record, over an outage that is longer than anybody waits.
fn outlives(breaks: impl FnOnce(&World), repairs: impl FnOnce(&World)) {
    let world = World::new("");
    let first = world.effect_then(breaks).join().unwrap().unwrap();
    assert_eq!((first.status, &*first.body), (200, "did held"));
    assert_eq!(first.header("semel-recorded"), Some("pending"));
    world.is_in_hand();
    repairs(&world);
    world.is_recorded();
}

#[test]
fn an_outcome_outlives_a_password_that_was_rotated() {
    outlives(
        |world| {
            world.sql("ALTER ROLE app PASSWORD 'second'");
            world.cut();
        },
        |world| drop(world.sql("ALTER ROLE app PASSWORD 'first'")),
    );
}

#[test]
fn an_outcome_outlives_a_right_that_was_revoked() {
    outlives(
        |world| drop(world.sql("REVOKE UPDATE ON semel.rec FROM app")),
        |world| drop(world.sql("GRANT UPDATE ON semel.rec TO app")),
    );
}

#[test]
fn an_outcome_outlives_a_server_that_is_read_only() {
    let set = |world: &World, value: &str| {
        world.sql(&format!(
            "ALTER SYSTEM SET default_transaction_read_only = {value}"
        ));
        world.sql("SELECT pg_reload_conf()");
    };
    outlives(
        |world| {
            set(world, "on");
            // Each session hears of it when it next has nothing else to do; a new one knows it.
            world.cut();
        },
        |world| set(world, "off"),
    );
}

#[test]
fn a_role_that_may_not_log_in_for_a_moment_costs_nothing() {
    let world = World::new("");
    let first = world.effect_then(|world| {
        world.sql("ALTER ROLE app NOLOGIN");
        world.cut();
    });
    world.sql("ALTER ROLE app LOGIN");
    let first = first.join().unwrap().unwrap();
    assert_eq!((first.status, &*first.body), (200, "did held"));
    assert_eq!(
        first.header("semel-recorded"),
        None,
        "it was recorded in time"
    );
    world.is_recorded();
}

// === Going down ===

#[test]
fn a_gate_that_goes_down_with_an_outcome_in_hand_names_it_and_it_can_be_repaired() {
    let mut world = World::new("grace = \"1s\"\n");
    let delivery = world.effect_then(|world| {
        world.sql("REVOKE UPDATE ON semel.rec FROM app");
    });
    assert_eq!(world.gate.stop().code(), Some(75), "{}", world.gate.log());
    drop(delivery.join().unwrap());

    let log = world.gate.log();
    let lines: Vec<Value> = log
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let [.., left, stopped] = &lines[..] else {
        panic!("{log}")
    };
    assert_eq!(
        (&stopped["message"], &stopped["pending"]),
        (&"stopped".into(), &1.into()),
        "{log}"
    );
    assert_eq!(
        (&left["status"], &left["outcome"]),
        (&200.into(), &"succeeded".into()),
        "{log}"
    );
    let (key, fence) = (
        left["key"].as_str().unwrap(),
        left["fence"].as_u64().unwrap().to_string(),
    );
    let to_do = format!("semel records resolve {key} --as succeeded --fence {fence}");
    left["message"].as_str().unwrap().has(&to_do);
    let named = format!(
        "SELECT fence FROM semel.rec WHERE 'v1_' || encode(key, 'hex') = '{key}' AND state = 1"
    );
    assert_eq!(world.sql(&named), fence);

    world.sql("GRANT UPDATE ON semel.rec TO app");
    wait_for("the lapse", || {
        let lapsed = format!("{named} AND lease_until <= clock_timestamp()");
        world.sql(&lapsed) == fence
    });
    let resolve = format!("records resolve {key} --as succeeded --store {}", world.url);
    assert_eq!(semel(&resolve).code, Some(1));
    semel(&format!("{resolve} --fence {fence}")).good();

    world.gate.again();
    let again = deliver(world.gate.port, &work("held"));
    assert_eq!(
        (again.status, again.header("semel-body")),
        (200, Some("not-kept"))
    );
    assert_eq!(world.counter.count("held"), 1);
}

#[test]
fn a_gate_that_goes_down_records_what_is_in_hand_if_the_store_comes_back() {
    let mut world = World::new("grace = \"25s\"\n");
    let delivery = world.effect_then(|world| {
        world.sql("REVOKE UPDATE ON semel.rec FROM app");
    });
    let first = delivery.join().unwrap().unwrap();
    assert_eq!(first.header("semel-recorded"), Some("pending"));
    world.gate.process().terminate().unwrap();
    wait_for("the drain", || {
        world.gate.log().contains("SIGTERM: draining")
    });
    world.sql("GRANT UPDATE ON semel.rec TO app");
    assert_eq!(world.gate.ended().code(), Some(0), "{}", world.gate.log());
    assert_eq!(world.sql(SETTLED), "2");
    assert_eq!(world.counter.count("held"), 1);
}
