//! Every combination of settings and stores: what is proved is what the table lists, no more and no less.

use super::*;
use http::Method;
use semel::protocol::InDoubt;
use semel::work::Completes;
use semel_gate::settings::{
    Downstream as Service, DownstreamKeys, FingerprintRule, KeyMissing, PROBE_AFTER, Probe, Source,
    Terms,
};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// The table, read plainly: what a route may promise.
fn listed(route: &Route, facts: &StoreFacts) -> Option<Promise> {
    let sound =
        route.fingerprint != FingerprintRule::Off && route.key_missing == KeyMissing::Refuse;
    if !sound {
        return None;
    }
    let nobody = facts.declared.failover == Some(Failover::Nobody);
    let (keeps_letters, loses_nothing, transaction) = match &facts.store {
        Store::Directory(disk) => {
            let stays =
                *disk == Disk::Local || (*disk != Disk::Memory && facts.declared.durable_disk);
            (stays, stays, false)
        }
        Store::Postgres {
            hosts,
            relaxed_claims,
            server,
        } => {
            let Some(server) = server else {
                return listed_on(route, false, false, false);
            };
            let synced =
                server.fsync && ["on", "remote_apply"].contains(&&*server.synchronous_commit);
            let waits = !server.synchronous_standby_names.is_empty();
            let survives = match facts.declared.failover {
                Some(Failover::Nobody) => *hosts == 1,
                Some(Failover::SameDisk) => true,
                Some(Failover::SynchronousStandby) | None => waits,
            };
            let stays = synced && survives && server.unlogged_tables.is_none();
            let parks = route.in_doubt == InDoubt::Park && route.completes == Completes::Run;
            let claims = !relaxed_claims || parks;
            let transaction = stays && !relaxed_claims && server.relaxed_roles.is_none();
            (stays, stays && claims, transaction)
        }
        Store::Redis { server } => {
            let Some(server) = server else {
                return listed_on(route, false, false, false);
            };
            let always = match server.appendfsync.as_deref() {
                Some(level) => level == "always",
                None => facts.declared.durable_disk,
            };
            let stays = server.appendonly && always && nobody && !server.evicts;
            (stays, stays, false)
        }
        Store::Firestore { is_emulator } => (!is_emulator, !is_emulator, !is_emulator),
    };
    listed_on(route, keeps_letters, loses_nothing, transaction)
}

/// The same for a store that keeps this.
fn listed_on(
    route: &Route,
    keeps_letters: bool,
    loses_nothing: bool,
    transaction: bool,
) -> Option<Promise> {
    let source = route.sources[0];
    let terms = route.terms(source);
    let keeps_letters = keeps_letters || source == Source::Api;
    let remembers = terms
        .horizon
        .is_some_and(|horizon| terms.retention >= horizon);
    if source == Source::CloudTasks && !route.task_names_unique {
        return None;
    }
    if route.completes == Completes::Handler && transaction && remembers {
        return Some(ExactlyOnce);
    }
    if let (Some(Service { keys, window }), Some(horizon)) = (route.downstream, terms.horizon)
        && remembers
        && window >= terms.retention + horizon
        && (loses_nothing || (keys == DownstreamKeys::Key && keeps_letters))
    {
        return Some(ExactlyOnce);
    }
    if loses_nothing && remembers && route.probe.as_ref().is_some_and(|probe| probe.fences) {
        return Some(ExactlyOnce);
    }
    match (route.in_doubt, route.completes) {
        (InDoubt::Park, Completes::Run) => (loses_nothing && remembers).then_some(AtMostOnce),
        (InDoubt::Park | InDoubt::Probe, Completes::Handler) => transaction.then_some(AtLeastOnce),
        (InDoubt::Retry, _) | (InDoubt::Probe, Completes::Run) => {
            keeps_letters.then_some(AtLeastOnce)
        }
    }
}

/// Routes of every shape.
fn routes() -> Vec<Route> {
    let mut all = vec![route(&[PUBSUB]), route(&[API]), route(&[TASKS])];
    vary(&mut all, &[|route| route.completes = Completes::Handler]);
    vary(
        &mut all,
        &[
            |route| route.in_doubt = InDoubt::Park,
            |route| probes(route, true),
            |route| probes(route, false),
        ],
    );
    vary(
        &mut all,
        &[
            |route| route.downstream = service(DownstreamKeys::Key, 1),
            |route| route.downstream = service(DownstreamKeys::Key, 14),
            |route| route.downstream = service(DownstreamKeys::Steps, 1),
            |route| route.downstream = service(DownstreamKeys::Steps, 14),
        ],
    );
    vary(
        &mut all,
        &[
            |route| route.fingerprint = FingerprintRule::Off,
            |route| route.key_missing = KeyMissing::Pass,
            |route| terms_of(route, |terms| terms.retention = DAY / 100),
            |route| terms_of(route, |terms| terms.horizon = None),
            |route| route.task_names_unique = false,
        ],
    );
    all
}

/// The configuration refuses it where the handler completes by itself.
fn probes(route: &mut Route, fences: bool) {
    if route.completes == Completes::Run {
        route.in_doubt = InDoubt::Probe;
        route.probe = Some(Probe {
            method: Method::GET,
            path: "/effects/{key}".into(),
            fences,
            after: PROBE_AFTER,
        });
    }
}

const fn service(keys: DownstreamKeys, days: u32) -> Option<Service> {
    let window = DAY.saturating_mul(days);
    Some(Service { keys, window })
}

fn terms_of(route: &mut Route, change: fn(&mut Terms)) {
    route.terms.iter_mut().for_each(change);
}

/// Adds each of them once more with each of these changes.
fn vary(routes: &mut Vec<Route>, changes: &[fn(&mut Route)]) {
    let plain = routes.clone();
    for change in changes {
        routes.extend(plain.iter().cloned().map(|mut route| {
            change(&mut route);
            route
        }));
    }
}

const FAILOVERS: [Option<Failover>; 4] = [
    None,
    Some(Failover::Nobody),
    Some(Failover::SynchronousStandby),
    Some(Failover::SameDisk),
];

/// Stores of every kind.
fn stores() -> Vec<StoreFacts> {
    let disks = [Disk::Local, Disk::Memory, Disk::Unknown, Disk::Replaced];
    let mut all: Vec<_> = disks.map(disk).into();
    all.extend([true, false].map(|is_emulator| on(Store::Firestore { is_emulator }, None)));
    for failover in FAILOVERS {
        for level in ["on", "remote_apply", "remote_write", "local", "off"] {
            let changes: [fn(&mut semel_postgres::DurabilitySettings); 5] = [
                |_| {},
                |server| server.fsync = false,
                standby,
                |server| server.unlogged_tables = Some("rec".into()),
                |server| server.relaxed_roles = Some("shop".into()),
            ];
            for change in changes {
                all.push(postgres(failover, |server| {
                    server.synchronous_commit = level.into();
                    change(server);
                }));
            }
        }
        for appendfsync in [Some("always"), Some("everysec"), Some("no"), None] {
            let changes: [fn(&mut semel_redis::DurabilitySettings); 3] = [
                |_| {},
                |server| server.appendonly = false,
                |server| server.evicts = true,
            ];
            for change in changes {
                all.push(redis_with(appendfsync, failover, change));
            }
        }
    }
    let several = all.clone().into_iter().map(|facts| hosts(2, facts));
    let claims = all.clone().into_iter().map(relaxed);
    let durable = all.clone().into_iter().map(declared_durable);
    let asked_nothing = all.clone().into_iter().map(unread);
    let more: Vec<_> = several
        .chain(claims)
        .chain(durable)
        .chain(asked_nothing)
        .collect();
    all.extend(more);
    all
}

#[test]
fn what_is_proved_is_what_the_table_lists() {
    let (routes, stores) = (routes(), stores());
    let mut proved = 0;
    for route in &routes {
        for facts in &stores {
            let listed = listed(route, facts);
            let case = || {
                let Route {
                    completes,
                    downstream,
                    in_doubt,
                    sources,
                    ..
                } = route;
                format!("{completes:?} {downstream:?} {in_doubt:?} {sources:?} on {facts:?}")
            };
            match shown(route, facts) {
                Shown::Proved(promise, _) => assert_eq!(Some(promise), listed, "{}", case()),
                Shown::Unread(..) => assert!(is_unread(facts), "{}", case()),
                Shown::Unproved(why) => {
                    assert!(!why.is_empty(), "{}", case());
                    assert!(listed.is_none(), "{why:?}: {}", case());
                }
            }
            for promise in Promise::ALL {
                let met = matches!(demanded(route, facts, promise), Shown::Proved(..));
                let implied = listed.is_some_and(|listed| listed.implies(promise));
                assert!(met == implied, "{promise}: {}", case());
                proved += usize::from(met);
            }
        }
    }
    let all = routes.len() * stores.len();
    assert!(all > 50_000 && proved > 1_000, "{proved} of {all}");
}

fn is_unread(facts: &StoreFacts) -> bool {
    match &facts.store {
        Store::Directory(_) | Store::Firestore { .. } => false,
        Store::Postgres { server, .. } => server.is_none(),
        Store::Redis { server } => server.is_none(),
    }
}
