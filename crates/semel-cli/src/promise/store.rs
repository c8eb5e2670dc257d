//! Facts about the store, and about the places where rows land: what was read, and what an operator declares of what cannot be
//! read.

use super::Disk;
use super::table::Holds;
use crate::config::{Config, StoreOptions};
use crate::landing_url::LandingUrl;
use crate::open_store::{self, ServerSettings};
use crate::store_url::StoreUrl;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Facts about a store, and about the places where rows land.
#[derive(Clone, Debug)]
pub(crate) struct StoreFacts {
    pub(crate) store: Store,
    /// Places where rows land, by the names of their routes.
    pub(crate) landings: BTreeMap<String, Store>,
    pub(crate) declared: Declared,
    /// Names of routes whose horizon follows from `seek = "never"`.
    pub(crate) never_sought: BTreeSet<String>,
}

/// What was read of a store; of a server none before it was asked.
#[derive(Clone, Debug)]
pub(crate) enum Store {
    Directory(Disk),
    Postgres {
        /// How many hosts its URL names.
        hosts: u32,
        /// Whether claims are granted before they are on disk.
        relaxed_claims: bool,
        server: Option<semel_postgres::DurabilitySettings>,
    },
    Redis {
        server: Option<semel_redis::DurabilitySettings>,
    },
    /// Its commits are on disk in several places before they are answered, by Google's word.
    Firestore {
        /// Whether it is an emulator, which keeps everything in memory.
        is_emulator: bool,
    },
}

/// What an operator says of a store because nobody can read it there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Declared {
    /// Whether another server takes over, and what it has then.
    pub(crate) failover: Option<Failover>,
    /// What the store has synced survives its machine.
    pub(crate) durable_disk: bool,
}

/// Who takes over when the store's server fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failover {
    /// Nobody: work waits until the server is back.
    Nobody,
    /// A standby that each commit waited for.
    SynchronousStandby,
    /// A server on the same disk, or on a copy of it that each write waited for.
    SameDisk,
}

/// The setting that names a place where rows land.
const LAND: &str = "land";

// === impl StoreFacts ===

impl StoreFacts {
    /// What is known before a server is asked.
    pub(crate) fn unread(config: &Config) -> Self {
        let store = match &config.store {
            StoreUrl::Embedded(path) => directory(path, config),
            StoreUrl::Postgres(url) => postgres(url, config.options),
            StoreUrl::Redis(_) => Store::Redis { server: None },
            StoreUrl::Firestore(url) => Store::Firestore {
                is_emulator: open_store::is_emulator(url),
            },
        };
        let landings = config.landings.iter();
        let landings = landings.map(|(route, url)| {
            let place = match url {
                LandingUrl::Files(path) => directory(path, config),
                LandingUrl::Table(database, _) => postgres(database, StoreOptions::default()),
            };
            (route.clone(), place)
        });
        Self {
            store,
            landings: landings.collect(),
            declared: config.declared,
            never_sought: config.never_sought.clone(),
        }
    }

    /// The same once the server was asked where this route's rows land.
    pub(crate) fn landed(&mut self, route: &str, settings: &semel_postgres::DurabilitySettings) {
        if let Some(Store::Postgres { server, .. }) = self.landings.get_mut(route) {
            *server = Some(semel_postgres::DurabilitySettings {
                // These are tables of a store. The landing itself refuses a table that is UNLOGGED.
                unlogged_tables: None,
                ..settings.clone()
            });
        }
    }

    /// The same once its server was asked.
    pub(crate) fn read(mut self, settings: ServerSettings) -> Self {
        match (&mut self.store, settings) {
            (Store::Postgres { server, .. }, ServerSettings::Postgres(read)) => {
                *server = Some(read)
            }
            (Store::Redis { server }, ServerSettings::Redis(read)) => *server = Some(read),
            // Nothing is read of another server than the store's.
            (
                Store::Directory(_)
                | Store::Postgres { .. }
                | Store::Redis { .. }
                | Store::Firestore { .. },
                _,
            ) => {}
        }
        self
    }

    /// Whether letters that it has acknowledged stay.
    pub(super) fn keeps_letters(&self) -> Vec<Holds> {
        self.keeps(&self.store, "store")
    }

    /// The conditions under which acknowledged rows of this route stay where they landed.
    pub(super) fn keeps_rows(&self, route: &str) -> Vec<Holds> {
        let place = self.landings.get(route);
        place.map_or_else(Vec::new, |place| self.keeps(place, LAND))
    }

    /// The conditions under which acknowledged data stays in the place that this setting names.
    fn keeps(&self, place: &Store, setting: &str) -> Vec<Holds> {
        match place {
            Store::Directory(disk) => vec![self.disk(*disk, setting)],
            Store::Postgres { hosts, server, .. } => {
                self.postgres(*hosts, server.as_ref(), setting)
            }
            Store::Redis { server } => self.redis(server.as_ref()),
            Store::Firestore { is_emulator } => vec![Holds::unless(*is_emulator, || {
                "FIRESTORE_EMULATOR_HOST is set, and the emulator keeps everything in memory: unset it".into()
            })],
        }
    }

    /// Whether all that it has acknowledged stays. Claims under `park` are never relaxed.
    pub(super) fn loses_nothing(&self, parks: bool) -> Vec<Holds> {
        let mut holds = self.keeps_letters();
        match &self.store {
            Store::Postgres {
                relaxed_claims: true,
                ..
            } if !parks => {
                holds.push(Holds::no(
                    "relaxed_claims lets a crash of the server forget claims: leave it out",
                ));
            }
            Store::Directory(_)
            | Store::Postgres { .. }
            | Store::Redis { .. }
            | Store::Firestore { .. } => {}
        }
        holds
    }

    /// Whether a transaction of the handler and its record commit together, and stay.
    pub(super) fn commits_together(&self) -> Vec<Holds> {
        let server = match &self.store {
            Store::Postgres { server, .. } => server,
            Store::Firestore { .. } => return self.loses_nothing(false),
            Store::Directory(_) | Store::Redis { .. } => {
                return vec![Holds::no(
                    "completes = \"handler\" needs a postgres:// or firestore:// store in the handler's own database",
                )];
            }
        };
        let mut holds = self.loses_nothing(false);
        let relaxed = server.as_ref().and_then(|it| it.relaxed_roles.as_deref());
        holds.extend(relaxed.map(|roles| {
            Holds::no(format!(
                "synchronous_commit is weaker than on for {roles} (ALTER ROLE or DATABASE … SET): a handler's commit may \
                 be lost; reset it there"
            ))
        }));
        holds
    }

    fn disk(&self, disk: Disk, setting: &str) -> Holds {
        match disk {
            Disk::Local => Holds::Yes,
            Disk::Memory => Holds::no(format!(
                "{setting} is a directory in memory (tmpfs), which a restart of the machine empties: put it on a disk"
            )),
            Disk::Unknown | Disk::Replaced if self.declared.durable_disk => Holds::Declared(
                format!("the directory of `{setting}` outlives this machine or container"),
            ),
            // No disk of such a machine is known to stay.
            Disk::Replaced => Holds::no(format!(
                "the platform replaces machines, and whether the directory of `{setting}` outlives them cannot be read: declare \
                 durable_disk = true where it is a volume that does, or use postgres:// or firestore://"
            )),
            Disk::Unknown => Holds::no(format!(
                "whether the directory of `{setting}` outlives this machine or container cannot be read: put it on a local \
                 disk, or declare durable_disk = true"
            )),
        }
    }

    fn postgres(
        &self,
        hosts: u32,
        server: Option<&semel_postgres::DurabilitySettings>,
        setting: &str,
    ) -> Vec<Holds> {
        let several = hosts > 1 && self.declared.failover == Some(Failover::Nobody);
        if several {
            return vec![Holds::no(format!(
                "failover = \"none\", but {setting} names several hosts: name one, or set failover to what takes over"
            ))];
        }
        let server_of = format!("the PostgreSQL server that `{setting}` names");
        // Each transaction of a landing sets synchronous_commit itself, whatever the role's own setting.
        let commits_by_itself = setting == LAND;
        let Some(server) = server else {
            let settings = if commits_by_itself {
                "fsync and synchronous_standby_names"
            } else {
                "fsync, synchronous_commit and synchronous_standby_names"
            };
            return vec![Holds::unread(format!("{settings} of {server_of}"))];
        };
        let commit = server.synchronous_commit.as_str();
        let mut holds = vec![
            Holds::unless(!server.fsync, || {
                format!("fsync is off in {server_of}: turn it on")
            }),
            Holds::unless(
                !commits_by_itself && !matches!(commit, "on" | "remote_apply"),
                || {
                    format!(
                        "synchronous_commit is {commit:?} in {server_of}: set it to on for the user of its URL"
                    )
                },
            ),
            self.takes_over(!server.synchronous_standby_names.is_empty(), &server_of),
        ];
        holds.extend(server.unlogged_tables.as_ref().map(|tables| {
            Holds::no(format!(
                "a crash of {server_of} empties semel's tables {tables}: ALTER TABLE … SET LOGGED"
            ))
        }));
        holds
    }

    /// Whether a PostgreSQL server that takes over has every commit.
    fn takes_over(&self, waits_for_standby: bool, server_of: &str) -> Holds {
        match (self.declared.failover, waits_for_standby) {
            (Some(Failover::Nobody), _) => {
                Holds::Declared(format!("no other server takes over from {server_of}"))
            }
            (Some(Failover::SameDisk), _) => Holds::Declared(format!(
                "a server that takes over from {server_of} starts on the same disk"
            )),
            (Some(Failover::SynchronousStandby) | None, true) => Holds::Yes,
            (Some(Failover::SynchronousStandby), false) => Holds::no(format!(
                "failover = \"synchronous-standby\", but synchronous_standby_names is empty in {server_of}: commits wait for \
                 no standby; set it there"
            )),
            (None, false) => Holds::no(format!(
                "commits in {server_of} wait for no standby (synchronous_standby_names), and whether another server may take \
                 over cannot be read: declare failover = \"none\" or \"same-disk\", or set synchronous_standby_names"
            )),
        }
    }

    fn redis(&self, server: Option<&semel_redis::DurabilitySettings>) -> Vec<Holds> {
        let failover = match self.declared.failover {
            Some(Failover::Nobody) => {
                Holds::Declared("no replica takes over from the Redis server".into())
            }
            Some(Failover::SynchronousStandby | Failover::SameDisk) => Holds::no(
                "a Redis that fails over can lose what it acknowledged: use postgres://, or a Redis without failover \
                 (failover = \"none\")",
            ),
            None => Holds::no(
                "whether a replica may take over from this Redis cannot be read: declare failover = \"none\" where none \
                 does",
            ),
        };
        let Some(server) = server else {
            let unread = "appendonly, appendfsync and maxmemory-policy of the Redis server";
            return vec![failover, Holds::unread(unread)];
        };
        let appendfsync = match (server.appendonly, server.appendfsync.as_deref()) {
            (false, _) => Holds::no(
                "appendonly is off in the Redis server: set appendonly yes and appendfsync always",
            ),
            (true, Some("always")) => Holds::Yes,
            (true, Some(other)) => Holds::no(format!(
                "appendfsync is {other} in the Redis server: set appendfsync always"
            )),
            (true, None) if self.declared.durable_disk => {
                Holds::Declared("appendfsync is always in the Redis server".into())
            }
            (true, None) => Holds::no(
                "the Redis server does not let its appendfsync be read: let this user run CONFIG GET, or declare \
                 durable_disk = true where it is always",
            ),
        };
        let evicts = Holds::unless(server.evicts, || {
            "the Redis server evicts records when its memory is full: set maxmemory-policy noeviction".into()
        });
        vec![failover, appendfsync, evicts]
    }
}

/// A directory, by what it is on.
fn directory(path: &Path, config: &Config) -> Store {
    Store::Directory(match Disk::under(path) {
        // Platforms replace the machine under a directory: what it is on does not say whether it stays.
        Disk::Local | Disk::Unknown if config.platform.is_some() => Disk::Replaced,
        disk @ (Disk::Local | Disk::Memory | Disk::Unknown | Disk::Replaced) => disk,
    })
}

/// A PostgreSQL server that was not asked yet.
fn postgres(url: &str, options: StoreOptions) -> Store {
    Store::Postgres {
        // A URL that cannot be read is refused long before anything is proved.
        hosts: open_store::postgres(url, options)
            .hosts_count()
            .unwrap_or(1),
        relaxed_claims: options.relaxed_claims,
        server: None,
    }
}

// === impl Store ===

impl Store {
    /// Standbys or replicas, where it is declared that none takes over.
    pub(crate) fn followers(&self) -> i64 {
        match self {
            Self::Directory(_) | Self::Firestore { .. } => 0,
            Self::Postgres { server, .. } => server.as_ref().map_or(0, |server| server.standbys),
            Self::Redis { server } => server
                .as_ref()
                .map_or(0, |server| i64::from(server.replicas)),
        }
    }
}

// === impl Failover ===

impl Failover {
    pub(crate) const WORDS: [(&str, Self); 3] = [
        ("none", Self::Nobody),
        ("synchronous-standby", Self::SynchronousStandby),
        ("same-disk", Self::SameDisk),
    ];
}
