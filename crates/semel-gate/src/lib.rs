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
mod address_limits;
mod activity;
mod router_service;
mod normalize;
mod refusal;
mod head;
mod bodies;
mod byte_budget;
mod pace;
mod silence;
mod handle;
mod flow;
mod blocking_pool;
mod health;
pub mod delivery;
pub mod source;
pub mod naming;
mod fingerprint;
mod effect;
mod forwarded_request;
mod headers;
mod trailers;
mod upstream;
mod active_runs;
mod steps;
pub mod disposition;
pub mod reply;
mod letters;
mod delivery_log;
mod metrics;
mod metered_store;
pub mod failpoint;
pub mod operate;
mod redrive;
mod admin;

pub use server::{Server, Unfinished};
