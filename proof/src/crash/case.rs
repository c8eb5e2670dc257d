//! A case: one store, one mode, and how hard to try.

use crate::faults::Defect;
use crate::harness::{StoreLocation, WorkId};
use semel::key::{Delivered, KeyRule, Scope};
use semel::{Fingerprint, Key};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// One crash run: everything a worker process needs to know of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Case {
    /// Keeps the keys of this run apart from everybody else's.
    pub name: String,
    /// Where the records are.
    pub location: StoreLocation,
    /// How effect and record belong together.
    pub mode: Mode,
    /// What is wrong on purpose.
    pub defect: Option<Defect>,
    /// The lease of every run.
    pub lease: Duration,
    /// Where the ledger's files are.
    pub dir: PathBuf,
    /// The port of the downstream, on the loopback interface.
    pub downstream: u16,
    /// Who delivers, and what a piece of work consists of.
    pub senders: Senders,
}

/// Who delivers, and what a piece of work consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Senders {
    /// The driver, to the library itself; every second piece of work does a part of itself as a step.
    Driver,
    /// A broker's tasks, through a gate; every nth piece of work is asked for by API clients instead. No steps.
    Gate {
        /// Which ones API clients ask for.
        api_every: u32,
    },
}

/// How effect and record belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Mode {
    /// Effect and completion commit together.
    Transaction,
    /// The effect is handed to a downstream that de-duplicates by key.
    Downstream,
    /// Doubt parks.
    Park,
    /// Doubt runs again.
    Retry,
}

/// How many effects in a hundred last longer than a lease.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct LongEffects {
    /// Of first attempts.
    pub first: u64,
    /// Of later ones.
    pub later: u64,
}

// === impl Case ===

impl Case {
    /// The key of a piece of work.
    ///
    /// # Errors
    /// When the name of the case is too long for a namespace.
    pub fn key(&self, work: WorkId) -> anyhow::Result<Key> {
        let rule: KeyRule = "/work".parse()?;
        let mut scope = Scope::new(&*self.name, "crash");
        if self.is_asked_for(work) {
            scope.method = Some("POST".into());
            scope.caller = Some("shared".into());
        }
        Ok(rule.key(&scope, &Delivered::payload(&payload(work)))?)
    }

    /// Whether API clients ask for this work, through a gate.
    #[must_use]
    pub const fn is_asked_for(&self, work: WorkId) -> bool {
        match self.senders {
            Senders::Driver => false,
            Senders::Gate { api_every } => work.0 % api_every == api_every - 1,
        }
    }

    /// Whether a part of this work is a step.
    #[must_use]
    pub const fn has_step(&self, work: WorkId) -> bool {
        match self.senders {
            Senders::Driver => work.has_step(),
            Senders::Gate { .. } => false,
        }
    }

    /// The fingerprint of a piece of work.
    #[must_use]
    pub fn fingerprint(&self, work: WorkId) -> Fingerprint {
        Fingerprint::of(&payload(work))
    }
}

/// What is delivered.
pub(crate) fn payload(work: WorkId) -> Vec<u8> {
    format!(r#"{{"work": {}}}"#, work.0).into_bytes()
}

// === impl Mode ===

impl Mode {
    /// The words for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Transaction => "transaction",
            Self::Downstream => "downstream key",
            Self::Park => "park",
            Self::Retry => "retry",
        }
    }
}

// === impl LongEffects ===

impl LongEffects {
    /// Most effects are still running when they are delivered again.
    pub const NEARLY_ALL: Self = Self {
        first: 90,
        later: 90,
    };
}
