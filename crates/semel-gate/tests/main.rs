//! The gate at work, before a handler that does what the test says.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may fail where it stands"
)]

mod support;
mod http2;
mod log_lines;
#[cfg(feature = "otlp")]
mod receiver;

mod front_end;
mod verify;
mod sources;
mod same_work;
mod input;
mod turned_away;
mod replies;
mod letters;
mod unfinished;
mod forwarded_request;
mod upstream;
mod tls;
mod pending;
mod steps;
mod lifecycle;
mod long_work;
mod probe;
mod stateless;
mod landing;
mod edge;
mod wire;
mod bodies;
mod connections;
mod flood;
mod admin;
mod page;
mod log;
mod labels;
mod find;
mod live;
#[cfg(feature = "otlp")]
mod traces;
mod docs;
#[cfg(feature = "otlp")]
mod dashboard;
