//! What crash runs, races and the attack on the gate share: processes with ledgers, faults that are injected into them,
//! stores that somebody stands before, verdicts, and reports.

mod profile;
mod suite;
mod location;
mod interceptor;
mod ledger;
mod injected;
mod fault_points;
mod processes;
mod verdict;
mod report;

pub use fault_points::ArmedFault;
pub(crate) use fault_points::FaultPoints;
pub use injected::{FaultKind, InjectedFault, ProcessFault, Role};
pub use interceptor::{Intercepted, Interceptor};
pub use ledger::{Attempt, EffectPart, Event, Ledger, WorkId};
pub use location::{GRACE, StoreKind, StoreLocation, connect};
pub use processes::ProcessConfig;
pub(crate) use processes::{Processes, RunningProcess};
pub use profile::Profile;
pub use report::Report;
pub(crate) use report::{Cell, Row};
pub use suite::{main, prove};
pub(crate) use suite::{run_process, side_by_side};
pub use verdict::{Verdict, Violation};
