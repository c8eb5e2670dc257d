//! Crash runs: worker processes are killed and paused while they run deliveries, and a ledger outside the system
//! under test counts what really happened.
//!
//! A [`Case`] is one store in one mode. [`drive`] lets a sender deliver every piece of work at least once to worker
//! processes, and injects faults into them with SIGKILL and SIGSTOP at random moments and at every [`Point`]. [`Evidence`] is what is left
//! behind; [`check`] reads it and knows only what is promised. [`CrashReport`] sums up, and calls a run invalid that met
//! too few faults to prove anything.

mod case;
mod point;
mod message;
mod ledger;
mod worker;
mod armed;
mod effect;
mod transaction;
mod downstream;
mod drive;
mod sender;
mod processes;
mod evidence;
mod check;
mod report;
mod suite;

pub(crate) use case::payload;
pub use case::{Broken, Case, Mode, Senders, WorkId};
pub use check::{CrashCounts, Promise, Verdict, Violation, check};
pub(crate) use downstream::charge;
pub use downstream::{Charge, Downstream};
pub use drive::{DriveLog, DriveSettings, drive};
pub(crate) use effect::nonce;
pub use evidence::{EffectRow, Evidence};
pub use ledger::{Attempt, EffectPart, Ledger, Line};
pub(crate) use ledger::{open, read};
pub use message::{
    ArmedPoint, Delivery, EffectBehaviour, SenderAnswer, WorkerConfig, WorkerMessage,
};
pub use point::{Point, ProcessFault};
pub use processes::InjectedFault;
pub use report::CrashReport;
pub use sender::Sent;
pub(crate) use sender::always_fails;
pub use suite::{convict_broken_builds, prove};
pub(crate) use transaction::{INSERT, prepare};
pub use worker::work;
