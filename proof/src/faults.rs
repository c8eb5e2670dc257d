//! The catalogue of deliberate faults: every way in which Semel is broken here on purpose, with where it is planted and
//! what must notice. A checker that lets one of them pass has no teeth.
//!
//! A fault can be planted in the model, as a changed decision; in the processes of crash runs, races and the attack on
//! the gate, as a `Defect`; or in both. Each checker tries all that are listed for it.

mod decisions;
mod builds;
mod defect;

use crate::crash::{ArmedPoint, LongEffects, Mode, Promise};
use crate::harness::{ProcessFault, StoreKind};
use crate::model::mutant::Mutant;
use crate::race::Rule;
pub(crate) use defect::{Defect, plant};

/// A fault made on purpose.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeliberateFault {
    /// What is wrong, in words.
    pub(crate) name: &'static str,
    /// How the model is broken by it.
    pub(crate) mutant: Option<Mutant>,
    /// How processes are broken by it.
    pub(crate) defect: Option<Defect>,
    /// The broken processes that are tried.
    pub(crate) trials: &'static [Trial],
}

/// Broken processes, what brings the fault to light, and what must be seen broken.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trial {
    /// Workers in a crash run.
    Crash {
        store: StoreKind,
        mode: Mode,
        promise: Promise,
        /// The fault that every other piece of work runs into.
        armed: Option<ArmedPoint>,
    },
    /// Racing workers.
    Race {
        stores: &'static [StoreKind],
        /// Of which at least one must be seen broken.
        rules: &'static [Rule],
        /// How many calls in a hundred are an operator's.
        operator_percent: u32,
    },
    /// Gates under attack.
    Gate {
        store: StoreKind,
        mode: Mode,
        promise: Promise,
        /// The point where a gate runs into a fault; what the broker does wrong may be enough.
        armed: Option<(&'static str, ProcessFault)>,
        /// How many effects are long.
        long: LongEffects,
    },
}

/// Every fault.
pub(crate) fn all() -> impl Iterator<Item = &'static DeliberateFault> {
    decisions::FAULTS.iter().chain(builds::FAULTS)
}

/// Every mutant of the model, with the name of its fault.
pub fn mutants() -> impl Iterator<Item = (&'static str, &'static Mutant)> {
    all().filter_map(|fault| Some((fault.name, fault.mutant.as_ref()?)))
}

/// Every trial of broken processes, with its fault.
pub(crate) fn trials() -> impl Iterator<Item = (&'static DeliberateFault, Trial)> {
    all().flat_map(|fault| fault.trials.iter().map(move |trial| (fault, *trial)))
}
