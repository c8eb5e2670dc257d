//! The suite that every store passes; also for stores of your own (feature `conformance`).
//!
//! Two judges, and a store needs both:
//!
//! - [`suite`] tries named behaviours one by one: `stale::a_stale_run_cannot_complete`,
//!   `claim::same_owner_is_granted_again`, races of many callers on one key, and a storm of actors
//!   whose answers are checked against the invariants of the protocol. It tells every behaviour
//!   that did not hold, what was expected and what was answered.
//! - [`compare`] makes random calls to the store and to [`decide`](fn@crate::record::decide), and
//!   compares answer by answer and record by record. It tells the shortest sequence it can find in
//!   which the two part, with the seed that leads there again.
//!
//! # Judging a store
//!
//! Say how to reach the store and how to let time pass for it, then ask both judges from a test:
//!
//! ```
//! use async_trait::async_trait;
//! use semel::Store;
//! use semel::clock::{ManualClock, Time};
//! use semel::conformance::{SuitePart, Subject, compare, part, suite};
//! use semel::memory::MemoryStore;
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! struct Memory {
//!     clock: Arc<ManualClock>,
//!     store: Arc<MemoryStore>,
//! }
//!
//! #[async_trait]
//! impl Subject for Memory {
//!     fn store(&self) -> Arc<dyn Store> {
//!         self.store.clone()
//!     }
//!
//!     async fn advance(&self, by: Duration) {
//!         self.clock.advance(by);
//!     }
//! }
//!
//! # #[tokio::main]
//! # async fn main() {
//! let clock = Arc::new(ManualClock::at(Time(1_800_000_000_000_000)));
//! let store = Arc::new(MemoryStore::with_clock(clock.clone()));
//! let memory = Memory { clock, store };
//! let report = suite(&memory).await.unwrap();
//! assert!(report.held.contains(&"stale::a_stale_run_cannot_complete".to_owned()));
//! compare(&memory, 20, 50, 1).await.unwrap();
//!
//! // A store in the making is judged part by part.
//! part(&memory, SuitePart::Claim).await.unwrap();
//! # }
//! ```
//!
//! A store of its own process has a clock that can be moved. A store on a server has not: there,
//! `advance` ages the records instead, as by
//! `UPDATE rec SET lease_until = lease_until - $1, expires_at = expires_at - $1, acts_until = acts_until - $1,
//! doubted_at = doubted_at - $1`. Fences stay as they are, and with them the age of the work.
//!
//! A store without letters says so by not overriding [`Subject::letters`], one without operators' acts by overriding
//! [`Subject::has_operators`]: both are judged by what is left.
//!
//! # What to know
//!
//! - Both judges use fresh random keys and look at nothing else, so the store need not be empty.
//!   But `advance` reaches every record: give the judges a schema, a prefix or a file of their own,
//!   and let one judge at a time use it.
//! - Leases are minutes and hours long and end by `advance` alone, so a slow machine changes
//!   nothing. The suite makes some 6,000 calls; 500 cases of 50 operations make 50,000, of which 16
//!   at a time go side by side. The more the store holds, the longer the lists take.
//! - Use a runtime with several threads and its timer on (`#[tokio::test(flavor = "multi_thread")]`),
//!   or races will not be races.
//! - Neither judge sees durability, a call that is dropped halfway, or a server that is killed:
//!   kill it yourself.

mod answer;
mod behaviour;
mod stage;
mod claim;
mod lease;
mod outcome;
mod stale;
mod park;
mod limit;
mod probe;
mod step;
mod operator;
mod keeper;
mod retention;
mod incarnation;
mod label;
mod history;
mod index;
mod list;
mod letter;
mod tombstone;
mod invalid;
mod race;
mod compare;
mod report;
mod part;

pub use compare::{Difference, compare};
pub use part::SuitePart;
pub use report::{Report, Violation, Violations};

use crate::store::{Letters, Store};
use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;

/// A store to be judged, and a way to let time pass for it.
#[async_trait]
pub trait Subject: Send + Sync {
    /// The store. Each call gives the same one.
    fn store(&self) -> Arc<dyn Store>;

    /// The same store, if it keeps letters. Without them, nothing is asked about letters.
    fn letters(&self) -> Option<Arc<dyn Letters>> {
        None
    }

    /// Whether it does what operators and keepers ask for: resolve, redrive, retain, release and forget. Without them, nothing is
    /// asked about those, and [`compare`] leaves them out.
    fn has_operators(&self) -> bool {
        true
    }

    /// Lets `by` pass on the store's clock, or makes it look so by ageing every record: `by` is
    /// subtracted from each `lease_until`, `expires_at`, `acts_until` and `doubted_at`. Never called while another call is on
    /// its way.
    async fn advance(&self, by: Duration);
}

/// Judges the store by every behaviour, one after the other.
///
/// # Errors
/// Every behaviour that did not hold, with what was expected and what was answered.
pub async fn suite(subject: &dyn Subject) -> Result<Report, Violations> {
    behaviour::judge(subject, &SuitePart::ALL).await
}

/// Judges the store by one part of the suite: for a store that is in the making.
///
/// # Errors
/// Every behaviour of this part that did not hold, as [`suite`] tells it.
pub async fn part(subject: &dyn Subject, part: SuitePart) -> Result<Report, Violations> {
    behaviour::judge(subject, &[part]).await
}
