//! What Semel promises, checked by machines: [`model`] walks through every interleaving of a small world, [`crash`]
//! kills and pauses real workers on real stores, [`race`] lets many processes race for a few keys, [`commit`]
//! loses and delays the commits of the Firestore store, `gate`
//! (with the feature `failpoints`) attacks gate, broker and handler together. [`faults`] lists what is broken on purpose, so
//! that each of them must show its teeth.
#![allow(
    clippy::disallowed_methods,
    reason = "what repeats a run is drawn from its seed; the rest may be random"
)]
#![cfg_attr(
    not(feature = "failpoints"),
    allow(dead_code, unused_imports, reason = "the attack on the gate uses it")
)]

pub mod faults;
pub mod model;
pub mod harness;
pub mod crash;
pub mod race;
pub mod commit;
#[cfg(feature = "failpoints")]
pub mod gate;
