//! Races: many processes on a few hot keys, with leases of a few milliseconds, every kind of lateness, and an operator
//! and a sweeper in between. The checker knows only the rules of the protocol, and judges every answer that anybody
//! got; on PostgreSQL also every change of every record.

mod call;
mod worker;
mod racer;
mod caller;
mod transaction;
mod history;
mod check;
mod suite;

pub(crate) use check::Rule;
pub(crate) use suite::OPERATOR_PERCENT;
pub use suite::{convict_broken_builds, prove};
pub use worker::work;
