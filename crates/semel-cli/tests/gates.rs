//! Gates as processes: with their handlers, their stores and their ends.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test may stop at the first surprise"
)]

mod support;
mod fleet;
mod handler;
mod firestore;
mod steps;
mod verify;
mod python;
mod paused;
mod long_work;
mod pending;
mod stalled_log;
#[path = "../../semel-gate/tests/receiver.rs"]
mod receiver;
mod telemetry;
mod file_limit;
mod crowd;
mod promise;
mod late_store;
mod landing;
mod pipeline;
