//! Crash runs: worker processes are killed and paused while they run deliveries, and a ledger outside the system
//! under test counts what really happened.
//!
//! A [`Case`] is one store in one mode. [`drive`] lets a sender deliver every piece of work at least once to worker
//! processes, and strikes them with SIGKILL and SIGSTOP at random moments and at every [`Point`]. [`Evidence`] is what is left
//! behind; [`check`] reads it and knows only what is promised. [`Report`] sums up, and calls a run invalid that met
//! too few faults to prove anything.

mod case;
mod point;
mod message;
mod ledger;
mod worker;
mod trap;
mod effect;
mod transaction;
mod downstream;
mod drive;
mod sender;
mod fleet;
mod evidence;
mod check;
mod report;
mod suite;

pub(crate) use case::payload;
pub use case::{Broken, Case, Mode, Senders, WorkId};
pub use check::{Promise, Tally, Verdict, Violation, check};
pub(crate) use downstream::charge;
pub use downstream::{Charge, Downstream};
pub use drive::{Drive, Effort, drive};
pub(crate) use effect::nonce;
pub use evidence::{Evidence, Row};
pub use fleet::Strike;
pub use ledger::{Attempt, Ledger, Line, Part};
pub(crate) use ledger::{open, read};
pub use message::{Armed, Delivery, Heard, Manner, Order, Said};
pub use point::{Fault, Point};
pub use report::Report;
pub use sender::Sent;
pub(crate) use sender::is_hopeless;
pub use suite::{prove, show_teeth};
pub(crate) use transaction::{INSERT, prepare};
pub use worker::work;
