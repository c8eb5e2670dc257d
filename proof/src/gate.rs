//! The whole of Semel under attack: gates, a broker and a handler as processes of their own, while they are killed,
//! paused and restarted, lose their store and their connections, and are flooded with duplicates.
//!
//! A [`Scene`] is one store in one mode, and who listens where. A fight lets a broker deliver tasks through the gates
//! while a nemesis strikes. What is left behind is evidence for the checker of [`crash`](crate::crash), which knows
//! nothing of gates. [`Table`] sums up, and calls a run invalid that met too few faults to prove anything.

mod scene;
mod snare;
mod flaw;
mod ear;
mod program;
mod handler;
mod links;
mod half;
mod store;
mod strike;
mod crew;
mod nemesis;
mod havoc;
mod sender;
mod storm;
mod fight;
mod heal;
mod trace;
mod table;
mod suite;
mod teeth;

pub use flaw::GateFlaw;
pub use program::play;
pub use scene::{Long, Order, Role, Scene, Seat};
pub use snare::{HandlerPoint, Snare};
pub use suite::{Plan, Where, prove};
pub use table::Table;
pub use teeth::show_teeth;
