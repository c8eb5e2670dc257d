//! Landings: nothing is proved of a route whose rows can vanish after they were acknowledged.

use super::*;
use semel_postgres::DurabilitySettings;

const LANDS: &str = "source = \"pubsub\"\nland = \"file:./landing\"\nlands = \"answer\"";
const STATELESS: &str = "source = \"pubsub\"\nrecord = \"none\"\ndead_letter_topic = true\nland = \"file:./landing\"\nlands = \"answer\"";

/// A good store, with this place for the rows of the route.
fn landing_on(place: Store) -> StoreFacts {
    let mut facts = good();
    facts.landings.insert("r".into(), place);
    facts
}

fn table(server: Option<DurabilitySettings>) -> StoreFacts {
    landing_on(Store::Postgres {
        hosts: 1,
        relaxed_claims: false,
        server,
    })
}

fn table_with(change: impl FnOnce(&mut DurabilitySettings)) -> StoreFacts {
    let mut server = server();
    change(&mut server);
    table(Some(server))
}

#[test]
fn rows_must_stay_where_they_land() {
    let least = || Proved(AtLeastOnce, Everything);
    for route in [LANDS, STATELESS] {
        for (facts, expected) in [
            (landing_on(Store::Directory(Disk::Local)), least()),
            (
                landing_on(Store::Directory(Disk::Memory)),
                No("land is a directory in memory (tmpfs)"),
            ),
            (
                landing_on(Store::Directory(Disk::Unknown)),
                No("whether the directory of `land` outlives"),
            ),
            (
                declared_durable(landing_on(Store::Directory(Disk::Unknown))),
                least(),
            ),
            (
                declared_durable(landing_on(Store::Directory(Disk::Memory))),
                No("land is a directory in memory (tmpfs)"),
            ),
            (table_with(|_| {}), least()),
            (
                table(None),
                Unread("of the PostgreSQL server that `land` names"),
            ),
            (
                table_with(|server| server.fsync = false),
                No("fsync is off in the PostgreSQL server that `land` names"),
            ),
            // Each of its transactions sets synchronous_commit itself.
            (table_with(commit("off")), least()),
        ] {
            judge(&[route], &facts, &expected);
        }
        let mut undeclared = table_with(|_| {});
        undeclared.declared.failover = None;
        undeclared.store = Store::Directory(Disk::Local);
        judge(
            &[route],
            &undeclared,
            &No("that `land` names wait for no standby"),
        );
        undeclared.landed("r", &{
            let mut good = server();
            standby(&mut good);
            good
        });
        judge(&[route], &undeclared, &least());
    }
}

#[test]
fn unlogged_tables_of_a_store_in_the_same_database_hold_no_rows() {
    let mut facts = table(None);
    let mut read = server();
    read.unlogged_tables = Some("rec".into());
    facts.landed("r", &read);
    judge(&[LANDS], &facts, &Proved(AtLeastOnce, Everything));
}
