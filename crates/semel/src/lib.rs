//! Deliver at least once. Take effect once.

pub mod key;
mod json;
pub mod fingerprint;
pub mod outcome;
pub mod record;
pub mod store;
pub mod letter;
pub mod work;
pub mod run;
mod lease;
pub mod step;
mod flight;
pub mod memory;
pub mod clock;
pub mod batch;
#[cfg(feature = "conformance")]
pub mod conformance;

pub use fingerprint::Fingerprint;
pub use flight::Recorded;
pub use key::Key;
pub use outcome::Outcome;
pub use run::{Ended, Failed, Semel, Settings};
pub use step::{Run, Step};
pub use store::{Error, Store};
