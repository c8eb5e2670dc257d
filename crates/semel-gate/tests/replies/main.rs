//! Who is told what: every outcome, for every sender.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may fail where it stands"
)]

#[path = "../support/mod.rs"]
mod support;

mod ran;
mod duplicates;
mod in_flight;
mod mismatched;
mod retryable;
mod for_good;
mod parked;
mod in_doubt;
mod completes;
mod invalid;
mod store;
mod full;
