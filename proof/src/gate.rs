//! The whole of Semel under attack: gates, a broker and a handler as processes of their own, while they are killed,
//! paused and restarted, lose their store and their connections, and are flooded with duplicates.
//!
//! A `Deployment` is one store in one mode, and who listens where. An attack lets a broker deliver tasks through the
//! gates while a nemesis injects faults. What is left behind is evidence for the checker of [`crash`](crate::crash),
//! which knows nothing of gates. The report sums up, and calls a run invalid that met too few faults to prove anything.

mod deployment;
mod points;
mod store_probe;
mod program;
mod kept_effects;
mod handler;
mod links;
mod partial_message;
mod store;
mod processes;
mod nemesis;
mod injector;
mod sender;
mod storm;
mod attack;
mod recovery;
mod trace;
mod suite;

pub use program::work;
pub use suite::{Plan, convict_broken_gates, prove};
