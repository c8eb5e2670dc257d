//! A deployment: one store in one mode, and who listens where. Everything a process needs to know.

use crate::crash::{Case, LongEffects};
use crate::harness::StoreLocation;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Everything the processes of one attack share.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Deployment {
    /// The store, the mode, the lease and the ledgers.
    pub case: Case,
    /// What every choice is drawn from.
    pub seed: u64,
    /// The gates.
    pub gates: Vec<GateAddress>,
    /// The broker's port.
    pub broker: u16,
    /// Where the broker keeps its tasks.
    pub broker_dir: PathBuf,
    /// What the broker is told to do wrong.
    pub broker_faults: Vec<String>,
    /// The handler's port.
    pub handler: u16,
    /// How many effects in a hundred last longer than a lease.
    pub long: LongEffects,
}

/// Where a gate is, and what it reaches.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GateAddress {
    /// Its port.
    pub port: u16,
    /// The store as this gate reaches it.
    pub location: StoreLocation,
    /// The handler's port as this gate reaches it.
    pub handler: u16,
}
