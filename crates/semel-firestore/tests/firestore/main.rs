//! The store on Google's emulator of Firestore. Where there is none, nothing is tested, and the test command says so.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;
mod proxy;
mod raw;
mod acts;
mod conformance;
mod deadline;
mod endpoint;
mod errors;
mod refusals;
mod guess;
mod large;
mod sweep;
