//! What Semel promises, checked by machines: [`model`] walks through every interleaving of a small world, [`crash`]
//! kills and pauses real workers on real stores, [`race`] lets many processes attack over a few keys, `gate`
//! (with the feature `failpoints`) attacks gate, broker and handler together.
#![allow(
    clippy::disallowed_methods,
    reason = "what repeats a run is drawn from its seed; the rest may be random"
)]
#![cfg_attr(
    not(feature = "failpoints"),
    allow(unused_imports, reason = "the attack on the gate uses them, too")
)]

pub mod model;
pub mod harness;
pub mod crash;
pub mod race;
#[cfg(feature = "failpoints")]
pub mod gate;
