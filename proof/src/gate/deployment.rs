//! A deployment: one store in one mode, and who listens where. Everything a process needs to know.

use crate::crash::{Case, LongEffects};
use crate::harness::StoreLocation;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Everything the processes of one attack share.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Deployment {
    /// The store, the mode, the lease and the ledgers.
    pub(crate) case: Case,
    /// What every choice is drawn from.
    pub(crate) seed: u64,
    pub(crate) gates: Vec<GateAddress>,
    pub(crate) broker: u16,
    /// Where the broker keeps its tasks.
    pub(crate) broker_dir: PathBuf,
    /// What the broker is told to do wrong.
    pub(crate) broker_faults: Vec<String>,
    pub(crate) handler: u16,
    /// How many effects in a hundred last longer than a lease.
    pub(crate) long: LongEffects,
}

/// Where a gate is, and what it reaches.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct GateAddress {
    pub(crate) port: u16,
    /// The store as this gate reaches it.
    pub(crate) location: StoreLocation,
    /// The handler's port as this gate reaches it.
    pub(crate) handler: u16,
}
