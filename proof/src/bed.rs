//! What crash runs and races share: how long to try, where a store is, and how to stand between a run and its store.

mod profile;
mod place;
mod tap;
mod flaw;

pub use flaw::Flaw;
pub(crate) use flaw::lease_of_record;
pub use place::{GRACE, Place, connect};
pub use profile::{Profile, only};
pub use tap::{Tap, Tapped};
