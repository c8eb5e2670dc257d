//! The broker as its clients see it: over its port, with real handlers.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may fail where it stands"
)]

#[path = "../support/mod.rs"]
mod support;
mod access;
mod declared;
mod page;
mod interface;
mod pubsub;
mod server;
mod tasks;
