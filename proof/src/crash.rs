//! Crash runs: worker processes are killed and paused while they run deliveries, and a ledger outside the system
//! under test counts what really happened.
//!
//! A `Case` is one store in one mode. `drive` lets a sender deliver every piece of work at least once to worker
//! processes, and injects SIGKILL and SIGSTOP at random moments and at every `Point`. `Evidence` is what is left
//! behind; `check` reads it and knows only what is promised. The report sums up, and calls a run invalid that met too
//! few faults to prove anything.

mod case;
mod point;
mod message;
mod worker;
mod store_points;
mod effect;
mod transaction;
mod commit;
mod downstream;
mod drive;
mod sender;
mod evidence;
mod check;
mod suite;

pub(crate) use case::{Case, LongEffects, Mode, payload};
pub(crate) use check::{Counts, Promise, check, promise_cells};
pub(crate) use downstream::Downstream;
pub(crate) use drive::DriveLog;
pub(crate) use effect::Actor;
pub(crate) use evidence::Evidence;
pub(crate) use message::{Delivery, EffectBehaviour, SenderAnswer};
pub(crate) use point::{ArmedPoint, Point};
pub(crate) use sender::{Sent, always_fails};
pub(crate) use suite::CASES;
pub use suite::{convict_broken_builds, prove};
pub(crate) use transaction::prepare;
pub use worker::work;
