//! The Firestore store: every operation reads its record, lets [`decide`](semel::protocol::decide) decide, and commits on
//! condition that nothing changed meanwhile. The server's own time of the read is the clock.
//!
//! ```no_run
//! use semel::Key;
//! use semel::store::StoreExt;
//! use semel_firestore::{FirestoreSettings, FirestoreStore};
//!
//! # async fn example() -> Result<(), semel::Error> {
//! let mut settings = FirestoreSettings::from_url("firestore://my-project")?;
//! settings.emulator_host = Some("127.0.0.1:8080".into());
//! let store = FirestoreStore::connect(settings).await?;
//! assert_eq!(store.look(&Key::from_bytes([1; 32])).await?, None);
//! # Ok(())
//! # }
//! ```
//!
//! # What the handler shares
//!
//! Records live in the project and database of the handler's own documents, so a handler can complete its record in the
//! transaction or the batch that makes its writes: both happen or neither. The documents are written down by example in
//! `vectors/firestore.json`; whoever writes one by hand takes that as the contract.
//!
//! # What a killed handler leaves
//!
//! A process that dies inside a Firestore transaction leaves locks on what it had read, for up to 60 s. The record is then
//! ABORTED for everybody: the store says `Unavailable` after its timeout, and the work is taken over later.

mod settings;
mod store;
mod apply;
mod snapshot;
mod forget;
mod turn;
mod attempts;
mod belief;
mod steps;
mod index;
mod letters;
mod list;
mod sweep;
mod sweep_turn;
mod foreign;
mod record_document;
mod letter_document;
mod parts;
mod names;
mod value;
mod client;
mod writes;
mod server_clock;
mod channel;
mod query;
mod token;
mod errors;
#[doc(hidden)]
pub mod proto;

#[cfg(test)]
mod exemptions;

pub use settings::FirestoreSettings;
pub use store::FirestoreStore;
