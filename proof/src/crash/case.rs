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
pub(crate) struct Case {
    /// Keeps the keys of this run apart from everybody else's.
    pub(crate) name: String,
    /// Where the records are.
    pub(crate) location: StoreLocation,
    /// How effect and record belong together.
    pub(crate) mode: Mode,
    /// What is wrong on purpose.
    pub(crate) defect: Option<Defect>,
    /// The lease of every run.
    pub(crate) lease: Duration,
    /// Where the ledger's files are.
    pub(crate) dir: PathBuf,
    /// The port of the downstream, on the loopback interface.
    pub(crate) downstream: u16,
    /// Through a gate: which pieces of work API clients ask for, every nth; a broker's tasks bring the others. Without a
    /// gate, the driver delivers all of them, and every second one does a part of itself as a step.
    pub(crate) api_every: Option<u32>,
}

/// How effect and record belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Mode {
    /// Effect and completion commit together.
    Transaction,
    /// The effect is handed to a downstream that de-duplicates by key.
    Downstream,
    /// Doubt parks.
    Park,
    /// Doubt runs again.
    Retry,
    /// Doubt is asked about: the handler keeps its effects under their keys, and refuses lower fences. Through a gate.
    Probe,
}

/// How many effects in a hundred last longer than a lease.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct LongEffects {
    /// Of first attempts.
    pub(crate) first: u64,
    /// Of later ones.
    pub(crate) later: u64,
}

// === impl Case ===

impl Case {
    pub(crate) fn key(&self, work: WorkId) -> anyhow::Result<Key> {
        let rule: KeyRule = "/work".parse()?;
        let mut scope = Scope::new(&*self.name, "crash");
        if self.is_asked_for(work) {
            scope.method = Some("POST".into());
            scope.caller = Some("shared".into());
        }
        Ok(rule.key(&scope, &Delivered::payload(&payload(work)))?)
    }

    /// Whether API clients ask for this work, through a gate.
    pub(crate) const fn is_asked_for(&self, work: WorkId) -> bool {
        match self.api_every {
            Some(every) => work.0 % every == every - 1,
            None => false,
        }
    }

    /// Whether a part of this work is a step.
    pub(crate) const fn has_step(&self, work: WorkId) -> bool {
        self.api_every.is_none() && work.has_step()
    }

    pub(crate) fn fingerprint(&self, work: WorkId) -> Fingerprint {
        Fingerprint::of(&payload(work))
    }
}

/// What is delivered.
pub(crate) fn payload(work: WorkId) -> Vec<u8> {
    format!(r#"{{"work": {}}}"#, work.0).into_bytes()
}

// === impl Mode ===

impl Mode {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Transaction => "transaction",
            Self::Downstream => "downstream key",
            Self::Park => "park",
            Self::Retry => "retry",
            Self::Probe => "probe",
        }
    }
}

// === impl LongEffects ===

impl LongEffects {
    /// Most effects are still running when they are delivered again.
    pub(crate) const NEARLY_ALL: Self = Self {
        first: 90,
        later: 90,
    };
}
