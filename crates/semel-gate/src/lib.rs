//! The gate: a reverse proxy that lets each delivery take effect once.
//!
//! The way of one delivery: [`source`] reads it, a key rule names it, `semel` claims and runs it,
//! `upstream` forwards it to the handler, `reply` tells the sender. `handle` is that list as one
//! function.

pub mod settings;
pub mod path;
mod gate;
mod server;
mod listener;
mod connections;
mod origins;
mod activity;
mod routed;
mod intake;
mod head;
mod bodies;
mod room;
mod pace;
mod silence;
mod handle;
mod readers;
mod health;
pub mod delivery;
pub mod source;
mod naming;
mod fingerprint;
mod effect;
mod crossing;
mod headers;
mod trailers;
mod upstream;
mod runs;
mod steps;
mod reply;
mod letters;
mod keeping;
mod standing;
mod quota;
mod keeper;
mod line;
mod metrics;
mod timed;
pub mod failpoint;
pub mod operate;
mod redrive;
mod admin;

pub use server::{Bound, Left};
