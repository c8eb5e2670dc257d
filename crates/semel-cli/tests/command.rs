//! The `semel` command, run as a person would.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test may stop at the first surprise"
)]

mod support;
#[path = "../../semel-gate/tests/support/mod.rs"]
mod bed;
mod cli;
mod check;
mod operate;
mod find;
mod ui;
mod dev;
mod broker;
mod clients;
mod prove;
mod certify;
mod deploy;
mod reference;
mod warehouse;
