//! What Semel promises, checked by machines: [`model`] walks through every interleaving of a small world.

pub mod model;
pub mod bed;
pub mod crash;
pub mod race;
