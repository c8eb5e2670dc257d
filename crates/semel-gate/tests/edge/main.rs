//! The edges of a delivery: its path, its headers, its host, and the way to handlers over HTTP/2.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may fail where it stands"
)]

#[path = "../support/mod.rs"]
mod support;

mod paths;
mod spellings;
mod headers;
mod overrides;
mod panics;
mod head;
mod cookies;
mod trailers;
mod wire;
mod h2c;
mod h2_peer;
mod answers;
mod cors;
