//! Deliver at least once. Take effect once.
//!
//! Every push queue, event bus and webhook sender delivers at least once. This library lets each
//! piece of work take effect once and gives its recorded outcome to every duplicate:
//! delivery → [key] → claim → [run](Semel::run) → record → reply.
//!
//! ```
//! use semel::key::Delivered;
//! use semel::memory::MemoryStore;
//! use semel::{Ended, Fingerprint, KeyRule, Outcome, Scope, Semel, Work};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let semel = Semel::new(MemoryStore::new());
//! let payload = br#"{"order_id": 7, "cents": 900}"#;
//!
//! // Which deliveries are the same work: those with the same order_id on this route.
//! let rule: KeyRule = "/order_id".parse()?;
//! let key = rule.key(&Scope::new("shop", "charge"), &Delivered::payload(payload))?;
//!
//! for delivery in 1..=3 {
//!     let work = Work::new(key, Fingerprint::of(payload));
//!     let ended = semel.run(work, |_run| async { Ok(Outcome::ok("receipt 1")) }).await?;
//!     match ended {
//!         Ended::Ran(recorded) => assert_eq!((delivery, recorded.outcome.status), (1, 200)),
//!         Ended::Replayed(recorded) => assert_eq!(recorded.outcome, Outcome::ok("receipt 1")),
//!         other => panic!("{other:?}"),
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! What is promised depends on how an effect can be repeated: exactly one effect when it commits in
//! the same transaction as its record (`semel-postgres`), or at a downstream that honours the key it
//! is handed, or when it is found out before the next run what became of the last
//! ([`InDoubt::Probe`]); at most one under [`InDoubt::Park`]; at least one under
//! [`InDoubt::Retry`], and exactly one unless a crash falls between effect
//! and record.
//!
//! Stores: [`memory`] here, `semel-embedded`, `semel-postgres` and `semel-redis` beside it, or your
//! own: the trait is [`Store`], and the feature `conformance` has the suite that tells whether it
//! holds.

pub mod key;
mod json;
pub mod payload;
pub mod fingerprint;
pub mod outcome;
mod record;
pub mod store;
pub mod letter;
pub mod work;
pub mod slots;
pub mod run;
mod lease;
pub mod step;
mod single_flight;
mod settled_cache;
pub mod pending;
pub mod memory;
pub mod clock;
#[cfg(feature = "tower")]
pub mod tower;
#[cfg(feature = "conformance")]
pub mod conformance;

/// What stores, and tools for operators, need besides the [`Store`] trait: records and their states, claims and leases,
/// the operations on a record, and the pure functions that decide what each of them does.
pub mod protocol {
    pub use crate::record::*;
}

pub use fingerprint::Fingerprint;
pub use key::{Key, KeyRule, Scope};
pub use outcome::Outcome;
pub use payload::Payload;
pub use pending::{Paused, PendingOutcome};
pub use record::InDoubt;
pub use run::{Ended, Failed, Semel, Settings};
pub use settled_cache::Recorded;
pub use step::{Run, Step};
pub use store::{Error, Store};
pub use work::{Failure, Work};
