//! The embedded store of Semel: a directory, no server, one process.
//!
//! A call goes to the writer, a thread that decides it with the functions of [`semel::protocol`] and hands
//! it to the operating system in a group with everything else that was queued; the syncer,
//! another thread, brings the journal to disk and then answers who needs that. The engine below is
//! fjall; `recovery` verifies every file before it is trusted. Why it is like this, and which
//! damage is noticed: `docs/decisions/0003-embedded-store.md`.

mod store;
mod reopening;
mod session;
mod call;
mod writer;
mod group;
mod durability;
mod syncer;
mod engine;
mod clock;
mod codec;
mod pages;
mod tombstones;
mod index;
mod due;
mod open;
mod guard;
mod recovery;
mod failure;

pub use store::{EmbeddedSettings, EmbeddedStore};
