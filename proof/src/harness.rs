//! What crash runs, races and the attack on the gate share: processes with ledgers, faults that are injected into them,
//! stores that somebody stands before, verdicts, and reports.

mod profile;
mod suite;
mod location;
mod firestore;
mod interceptor;
mod ledger;
mod injected;
mod fault_points;
mod processes;
mod verdict;
mod report;

pub(crate) use fault_points::{ArmedFault, FaultPoints};
pub(crate) use firestore::{
    Completing, FirestoreDatabase, created, is_worth_another, micros, value,
};
pub(crate) use injected::{FaultKind, InjectedFault, ProcessFault, Role};
pub(crate) use interceptor::{Intercepted, Interceptor};
pub(crate) use ledger::{Attempt, EffectPart, Event, Ledger, WorkId};
pub(crate) use location::{GRACE, StoreKind, StoreLocation, connect, firestore_emulator};
pub(crate) use processes::{ProcessConfig, Processes, RunningProcess};
pub use profile::Profile;
pub use report::Report;
pub(crate) use report::{Cell, Row};
pub(crate) use suite::{convict, run_process, side_by_side};
pub use suite::{main, prove};
pub(crate) use verdict::Verdict;
