//! The attack on the Firestore store around its Commit: requests that are lost, answers that are lost, commits that arrive
//! late. A proxy before the emulator does it, and adds what each commit was decided on to that same commit, so that the
//! history is as true as the records. Half of the runs are completed by a handler, in the commit that has its effect. What
//! is broken on purpose is broken in the proxy or in the handler.

mod proxy;
mod tamper;
mod handler;
mod caller;
mod check;
mod suite;

pub use suite::{convict_broken_builds, prove};
