//! The prover, attacked: configurations with the verdict that each must get, and every combination against the table
//! read a second time, as plainly as it is written.

mod every;
mod grounds;
mod landings;
mod spans;
mod repeats;

use super::store::Store;
use super::table::Covers::{self, Downstream, Everything, Transaction};
use super::{Declared, Disk, Failover, Shown, StoreFacts, assumed, demanded, line, shown};
use crate::config;
use semel_gate::settings::Promise::{self, AtLeastOnce, AtMostOnce, ExactlyOnce};
use semel_gate::settings::Route;
use std::collections::{BTreeMap, BTreeSet};

/// What a configuration must get.
enum Expected {
    Proved(Promise, Covers),
    /// It remains to be read.
    Unread(&'static str),
    /// Nothing, with this in the reason.
    No(&'static str),
}
use Expected::{No, Proved, Unread};

const PUBSUB: &str = "source = \"pubsub\"\nhorizon = \"7d\"";
const TASKS: &str = "source = \"cloud-tasks\"\nhorizon = \"24h\"\ntask_names = \"never reused\"";
const API: &str = "source = \"api\"\ncaller = \"shared\"\nhorizon = \"24h\"";
const HANDLER: &str = "completes = \"handler\"";
const PARK: &str = "in_doubt = \"park\"";
const KEYS: &str =
    "downstream = \"deduplicates\"\ndownstream_keys = \"key\"\ndownstream_window = \"14d\"";
const STEPS: &str =
    "downstream = \"deduplicates\"\ndownstream_keys = \"steps\"\ndownstream_window = \"14d\"";

fn route(settings: &[&str]) -> Route {
    let text = format!(
        "upstream = \"http://127.0.0.1:9\"\nstore = \"postgres://h/d\"\n[[route]]\nname = \"r\"\npath = \"/r\"\n{}",
        settings.join("\n")
    );
    let mut routes = config::from_text(&text).unwrap().settings.routes;
    routes.pop().unwrap()
}

fn on(store: Store, failover: Option<Failover>) -> StoreFacts {
    let declared = Declared {
        failover,
        durable_disk: false,
    };
    StoreFacts {
        store,
        landings: BTreeMap::new(),
        declared,
        never_sought: BTreeSet::new(),
    }
}

fn declared_durable(mut facts: StoreFacts) -> StoreFacts {
    facts.declared.durable_disk = true;
    facts
}

fn disk(disk: Disk) -> StoreFacts {
    on(Store::Directory(disk), None)
}

/// What a good server says.
fn server() -> semel_postgres::DurabilitySettings {
    semel_postgres::DurabilitySettings {
        fsync: true,
        synchronous_commit: "on".into(),
        synchronous_standby_names: String::new(),
        standbys: 0,
        unlogged_tables: None,
        relaxed_roles: None,
    }
}

/// A PostgreSQL that is good but for this.
fn postgres(
    failover: Option<Failover>,
    change: impl FnOnce(&mut semel_postgres::DurabilitySettings),
) -> StoreFacts {
    let mut server = server();
    change(&mut server);
    let store = Store::Postgres {
        hosts: 1,
        relaxed_claims: false,
        server: Some(server),
    };
    on(store, failover)
}

/// One that says this, and nobody takes over from it.
fn alone(change: impl FnOnce(&mut semel_postgres::DurabilitySettings)) -> StoreFacts {
    postgres(Some(Failover::Nobody), change)
}

fn good() -> StoreFacts {
    alone(|_| {})
}

fn standby(server: &mut semel_postgres::DurabilitySettings) {
    server.synchronous_standby_names = "ANY 1 (a, b)".into();
}

fn commit(level: &'static str) -> impl FnOnce(&mut semel_postgres::DurabilitySettings) {
    move |server| server.synchronous_commit = level.into()
}

fn hosts(count: u32, mut facts: StoreFacts) -> StoreFacts {
    if let Store::Postgres { hosts, .. } = &mut facts.store {
        *hosts = count;
    }
    facts
}

fn relaxed(mut facts: StoreFacts) -> StoreFacts {
    if let Store::Postgres { relaxed_claims, .. } = &mut facts.store {
        *relaxed_claims = true;
    }
    facts
}

fn unread(mut facts: StoreFacts) -> StoreFacts {
    match &mut facts.store {
        Store::Directory(_) | Store::Firestore { .. } => {}
        Store::Postgres { server, .. } => *server = None,
        Store::Redis { server } => *server = None,
    }
    facts
}

/// A Redis with this `appendfsync`; none: it hides it.
fn redis(appendfsync: Option<&str>) -> StoreFacts {
    redis_with(appendfsync, Some(Failover::Nobody), |_| {})
}

fn redis_with(
    appendfsync: Option<&str>,
    failover: Option<Failover>,
    change: impl FnOnce(&mut semel_redis::DurabilitySettings),
) -> StoreFacts {
    let mut server = semel_redis::DurabilitySettings {
        appendonly: true,
        appendfsync: appendfsync.map(str::to_owned),
        evicts: false,
        replicas: 0,
    };
    change(&mut server);
    let server = Some(server);
    on(Store::Redis { server }, failover)
}

fn judge(settings: &[&str], facts: &StoreFacts, expected: &Expected) {
    let shown = shown(&route(settings), facts);
    let case = format!("{settings:?} on {facts:?}: {shown:?}");
    match (&shown, expected) {
        (Shown::Proved(promise, covers), Proved(p, c)) => {
            assert_eq!((promise, covers), (p, c), "{case}");
        }
        (Shown::Unread(_, _, what), Unread(part)) | (Shown::Unproved(what), No(part)) => {
            assert!(what.iter().any(|what| what.contains(part)), "{case}");
        }
        (Shown::Proved(..) | Shown::Unread(..) | Shown::Unproved(_), _) => panic!("{case}"),
    }
}

#[test]
fn a_transaction_of_the_handler_is_exactly_once_where_commits_stay() {
    let exactly = Proved(ExactlyOnce, Transaction);
    let cases = [
        (good(), exactly),
        (
            postgres(Some(Failover::SameDisk), |_| {}),
            Proved(ExactlyOnce, Transaction),
        ),
        (
            postgres(Some(Failover::SynchronousStandby), standby),
            Proved(ExactlyOnce, Transaction),
        ),
        (postgres(None, standby), Proved(ExactlyOnce, Transaction)),
        (
            hosts(2, postgres(None, standby)),
            Proved(ExactlyOnce, Transaction),
        ),
        (
            alone(commit("remote_apply")),
            Proved(ExactlyOnce, Transaction),
        ),
        (unread(good()), Unread("fsync, synchronous_commit")),
        (alone(|server| server.fsync = false), No("fsync is off")),
        (alone(commit("off")), No("synchronous_commit is \"off\"")),
        (
            alone(commit("local")),
            No("synchronous_commit is \"local\""),
        ),
        (
            alone(commit("remote_write")),
            No("synchronous_commit is \"remote_write\""),
        ),
        (postgres(None, |_| {}), No("declare failover = \"none\"")),
        (
            postgres(Some(Failover::SynchronousStandby), |_| {}),
            No("synchronous_standby_names is empty"),
        ),
        (hosts(2, good()), No("store names several hosts")),
        (hosts(2, unread(good())), No("store names several hosts")),
        (
            alone(|server| server.unlogged_tables = Some("rec".into())),
            No("empties semel's tables rec"),
        ),
        (
            disk(Disk::Local),
            No("needs a postgres:// or firestore:// store"),
        ),
        (
            redis(Some("always")),
            No("needs a postgres:// or firestore:// store"),
        ),
    ];
    for (facts, expected) in cases {
        judge(&[PUBSUB, HANDLER, PARK], &facts, &expected);
    }
    // Here the row of `retry` is left: its letters are kept, its commits are not.
    let least = Proved(AtLeastOnce, Everything);
    judge(&[PUBSUB, HANDLER], &relaxed(good()), &least);
    let roles = alone(|server| server.relaxed_roles = Some("shop".into()));
    judge(&[PUBSUB, HANDLER], &roles, &least);
    judge(
        &[PUBSUB, HANDLER, PARK],
        &roles,
        &No("weaker than on for shop"),
    );
    judge(
        &[PUBSUB, HANDLER, PARK],
        &relaxed(good()),
        &No("leave it out"),
    );
}

/// A demanded *at least once* was refused because of a memory that it does not need.
#[test]
fn a_transaction_of_the_handler_whose_record_is_forgotten_runs_at_least_once() {
    for in_doubt in ["", PARK] {
        let short = route(&[PUBSUB, HANDLER, in_doubt, "retention = \"24h\""]);
        let least = demanded(&short, &good(), AtLeastOnce);
        assert_eq!(least, Shown::Proved(AtLeastOnce, Everything), "{in_doubt}");
        let exactly = demanded(&short, &good(), ExactlyOnce);
        assert!(matches!(exactly, Shown::Unproved(_)), "{exactly:?}");
    }
}

#[test]
fn a_downstream_that_deduplicates_is_exactly_once_there_where_letters_stay() {
    let there = || Proved(ExactlyOnce, Downstream);
    for (settings, facts, expected) in [
        (vec![PUBSUB, KEYS], good(), there()),
        (vec![PUBSUB, KEYS, PARK], good(), there()),
        (vec![TASKS, KEYS], disk(Disk::Local), there()),
        (vec![PUBSUB, KEYS], redis(Some("always")), there()),
        (vec![PUBSUB, KEYS], relaxed(good()), there()),
        (vec![API, KEYS], redis(Some("everysec")), there()),
        (vec![API, KEYS], disk(Disk::Memory), there()),
        (
            vec![PUBSUB, KEYS],
            redis(Some("everysec")),
            No("set appendfsync always"),
        ),
        (
            vec![PUBSUB, KEYS],
            disk(Disk::Memory),
            No("in memory (tmpfs)"),
        ),
        (
            vec![PUBSUB, KEYS],
            unread(redis(None)),
            Unread("appendonly, appendfsync"),
        ),
        (vec![PUBSUB, STEPS], good(), there()),
        (vec![PUBSUB, STEPS], disk(Disk::Local), there()),
        (vec![API, STEPS], redis(Some("always")), there()),
        // They contain what a store forgets that loses claims, so less is left of them.
        (
            vec![PUBSUB, STEPS],
            relaxed(good()),
            Proved(AtLeastOnce, Everything),
        ),
        (vec![PUBSUB, STEPS, PARK], relaxed(good()), there()),
        (
            vec![API, STEPS],
            redis(Some("everysec")),
            Proved(AtLeastOnce, Everything),
        ),
        (
            vec![API, STEPS, PARK],
            redis(Some("everysec")),
            No("set appendfsync always"),
        ),
    ] {
        judge(&settings, &facts, &expected);
    }
    let short = KEYS.replace("14d", "13d");
    let least = Proved(AtLeastOnce, Everything);
    judge(&[PUBSUB, &short], &good(), &least);
    let refused = demanded(&route(&[PUBSUB, &short]), &good(), ExactlyOnce);
    let says = "downstream_window 13d < retention + horizon 14d of pubsub";
    assert!(
        matches!(&refused, Shown::Unproved(why) if why[0].contains(says)),
        "{refused:?}"
    );
}

#[test]
fn park_is_at_most_once_where_nothing_is_lost() {
    let most = || Proved(AtMostOnce, Everything);
    for (settings, facts, expected) in [
        (vec![PUBSUB, PARK], good(), most()),
        (vec![PUBSUB, PARK], relaxed(good()), most()),
        (vec![TASKS, PARK], disk(Disk::Local), most()),
        (vec![API, PARK], redis(Some("always")), most()),
        (
            vec![API, PARK],
            redis(Some("everysec")),
            No("set appendfsync always"),
        ),
        (
            vec![API, PARK],
            unread(good()),
            Unread("synchronous_standby_names"),
        ),
        (
            vec![PUBSUB, PARK],
            postgres(None, |_| {}),
            No("declare failover"),
        ),
        (
            vec![PUBSUB, PARK],
            disk(Disk::Unknown),
            No("declare durable_disk = true"),
        ),
        (
            vec![PUBSUB, PARK],
            declared_durable(disk(Disk::Unknown)),
            most(),
        ),
        (
            vec![PUBSUB, PARK],
            declared_durable(disk(Disk::Memory)),
            No("in memory (tmpfs)"),
        ),
    ] {
        judge(&settings, &facts, &expected);
    }
}

#[test]
fn retry_is_at_least_once_where_letters_stay() {
    let least = || Proved(AtLeastOnce, Everything);
    for (settings, facts, expected) in [
        (vec![PUBSUB], good(), least()),
        (vec![PUBSUB], relaxed(good()), least()),
        (vec![TASKS], disk(Disk::Local), least()),
        (vec![API], disk(Disk::Memory), least()),
        (vec![API], redis(Some("no")), least()),
        (vec![PUBSUB], redis(Some("always")), least()),
        (
            vec![PUBSUB],
            redis(Some("everysec")),
            No("set appendfsync always"),
        ),
        (
            vec![PUBSUB],
            redis(None),
            No("does not let its appendfsync be read"),
        ),
        (vec![PUBSUB], declared_durable(redis(None)), least()),
        (
            vec![PUBSUB],
            declared_durable(redis(Some("everysec"))),
            No("set appendfsync always"),
        ),
        (
            vec![PUBSUB],
            redis_with(Some("always"), None, |_| {}),
            No("declare failover = \"none\""),
        ),
        (
            vec![PUBSUB],
            redis_with(Some("always"), Some(Failover::SameDisk), |_| {}),
            No("a Redis that fails over"),
        ),
        (
            vec![PUBSUB],
            redis_with(Some("always"), Some(Failover::SynchronousStandby), |_| {}),
            No("a Redis that fails over"),
        ),
        (
            vec![PUBSUB],
            redis_with(Some("always"), Some(Failover::Nobody), |it| {
                it.appendonly = false
            }),
            No("appendonly is off"),
        ),
        (
            vec![PUBSUB],
            declared_durable(redis_with(None, Some(Failover::Nobody), |it| {
                it.appendonly = false
            })),
            No("appendonly is off"),
        ),
        (
            vec![PUBSUB],
            redis_with(Some("always"), Some(Failover::Nobody), |it| {
                it.evicts = true
            }),
            No("noeviction"),
        ),
    ] {
        judge(&settings, &facts, &expected);
    }
}

#[test]
fn no_promise_outlives_what_every_row_needs() {
    for all in [HANDLER, KEYS, STEPS, PARK, ""] {
        for (settings, says) in [
            (
                vec![PUBSUB, all, "fingerprint = \"off\""],
                "set it to \"full\"",
            ),
            (
                vec![API, all, "key_missing = \"pass\""],
                "set it to \"refuse\"",
            ),
        ] {
            let settings = settings
                .into_iter()
                .filter(|it| !it.is_empty())
                .collect::<Vec<_>>();
            judge(&settings, &good(), &No(says));
        }
    }
}

#[test]
fn a_demand_is_met_by_what_implies_it_and_by_nothing_else() {
    let met = |settings: &[&str], promise| {
        let shown = demanded(&route(settings), &good(), promise);
        matches!(shown, Shown::Proved(..))
    };
    for (settings, exactly, most, least) in [
        (vec![PUBSUB, HANDLER], true, true, true),
        (vec![PUBSUB, KEYS], true, true, true),
        (vec![PUBSUB, PARK], false, true, false),
        (vec![PUBSUB], false, false, true),
    ] {
        let got = [ExactlyOnce, AtMostOnce, AtLeastOnce].map(|it| met(&settings, it));
        assert_eq!(got, [exactly, most, least], "{settings:?}");
    }
    // What holds already does not wait for a server.
    let route = route(&[API, HANDLER]);
    let shown = demanded(&route, &unread(good()), AtLeastOnce);
    assert_eq!(shown, Shown::Proved(AtLeastOnce, Everything));
}
