//! What crash runs and races share: how long to try, where a store is, and how to stand between a run and its store.

mod profile;
mod location;
mod interceptor;
mod flaw;

pub use flaw::Flaw;
pub(crate) use flaw::lease_of_record;
pub use interceptor::{Intercepted, Interceptor};
pub use location::{GRACE, StoreLocation, connect};
pub use profile::{Profile, name_filter};
