//! The configuration of a gate: `semel.toml`, or one route by flags. It is read once, judged whole,
//! and all mistakes are told together.

mod fields;
mod mistakes;
mod tree;
mod values;
mod route_values;
mod urls;
mod section;
mod terms;
mod volatile;
mod sources;
mod secrets;
mod verify_values;
mod verify;
mod stateless;
mod landing;
mod route;
mod overlaps;
mod self_upstream;
mod admin_access;
mod gate;
mod load;
mod admin_address;
mod check;
mod docs;

pub(crate) use admin_address::{AdminAddress, admin_address};
pub(crate) use check::{Broken, Finding, Verdict, check, check_on, check_promises};
pub(crate) use docs::{commented_file, page};
pub(crate) use load::{FILE_DEFAULT, from_new_text, from_text, load, load_on};
pub(crate) use mistakes::Mistakes;
pub(crate) use sources::{SenderLimit, body_bytes_max_of, letters_bytes_min};
pub(crate) use terms::{
    changed_by_copy, default_horizon, is_named_by_task, longest_horizon, needs_memory,
};
pub(crate) use values::{read_duration, written};
pub(crate) use volatile::of_work as volatile_part;

use crate::landing_url::LandingUrl;
use crate::promise::Declared;
use crate::store_url::StoreUrl;
use semel_gate::settings::{Route, Settings};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// All that a gate needs to start.
#[derive(Debug)]
pub(crate) struct Config {
    /// Where records and letters are kept.
    pub(crate) store: StoreUrl,
    pub(crate) options: StoreOptions,
    /// What cannot be read of the store.
    pub(crate) declared: Declared,
    pub(crate) settings: Settings,
    /// Where deliveries land, by the names of their routes.
    pub(crate) landings: BTreeMap<String, LandingUrl>,
    /// Names of routes whose horizon follows from `seek = "never"`.
    pub(crate) never_sought: BTreeSet<String>,
    /// How many connections to its database the handler may use, over all instances.
    pub(crate) database_connections: Option<u64>,
    /// Where this process runs, when that is known.
    pub(crate) platform: Option<Platform>,
    /// Whether that stops this process between two requests.
    pub(crate) freezes: bool,
}

// === impl Config ===

impl Config {
    /// Whether any route needs the store.
    pub(crate) fn keeps_records(&self) -> bool {
        self.settings.routes.iter().any(Route::keeps_records)
    }
}

/// Choices about the store.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StoreOptions {
    /// Never two gates run at once.
    pub(crate) single_instance: bool,
    /// PostgreSQL grants claims before they are safe on disk.
    pub(crate) relaxed_claims: bool,
    /// The URL leads to a pooler.
    pub(crate) pooler: bool,
}

/// Who starts and stops this process, and as many more as it likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Platform {
    CloudRun,
    Kubernetes,
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CloudRun => "Cloud Run",
            Self::Kubernetes => "Kubernetes",
        })
    }
}
