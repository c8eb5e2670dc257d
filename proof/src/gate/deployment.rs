//! A deployment: one store in one mode, and who listens where. Everything a process needs to know.

use super::armed_fault::ArmedFault;
use super::flaw::GateFlaw;
use crate::crash::Case;
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
    /// What is wrong with the gates on purpose.
    pub flaw: Option<GateFlaw>,
}

/// How many effects in a hundred last longer than a lease.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct LongEffects {
    /// Of first attempts.
    pub first: u64,
    /// Of later ones.
    pub later: u64,
}

/// A gate's place.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GateAddress {
    /// Its port.
    pub port: u16,
    /// The store as this gate reaches it.
    pub location: StoreLocation,
    /// The handler's port as this gate reaches it.
    pub handler: u16,
}

/// What a process plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Role {
    /// One of the gates, by its place.
    Gate(usize),
    /// The broker.
    Broker,
    /// The handler.
    Handler,
}

/// What a process is started with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProcessConfig {
    /// What it plays.
    pub role: Role,
    /// The number of this process within its deployment; its ledger has it.
    pub number: u32,
    /// The fault that waits for it, if one does.
    pub armed_fault: Option<ArmedFault>,
    /// The deployment.
    pub deployment: Deployment,
}

// === impl Role ===

impl Role {
    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gate(_) => "gate",
            Self::Broker => "broker",
            Self::Handler => "handler",
        }
    }
}
