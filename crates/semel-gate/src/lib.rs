//! The gate: a reverse proxy that lets each delivery take effect once.
//!
//! The way of one delivery: [`verify`] asks who sent it, [`source`] reads it, [`naming`] names it, `semel` claims and runs it, `upstream`
//! forwards it to the handler, [`disposition`] says what becomes of it, and [`reply`] tells the sender. `handle`
//! is that list as one function.
//!
//! Another front end, a function or a framework's middleware, does the same without a server:
//! [`NamedRequest::read`](naming::NamedRequest::read) gives key and fingerprint, [`naming::work`] the terms to run
//! on, [`reply::meaning`] what a handler's status means, [`Disposition`](disposition::Disposition) what becomes of
//! the delivery, and [`reply::reply`] status, headers and body. All of these are pure functions.

pub mod settings;
pub mod path;
mod gate;
mod server;
mod listener;
mod rate_limited_log;
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
mod key_missing;
mod handle;
mod flow;
mod stateless;
mod landed;
mod blocking_pool;
mod health;
pub mod verify;
mod waiting_sender;
pub mod delivery;
mod arrival;
pub mod source;
pub mod naming;
pub mod fingerprint;
pub mod label;
mod effect;
mod forwarded_request;
mod headers;
mod map_body;
mod upstream;
mod active_runs;
mod steps;
pub mod disposition;
pub mod reply;
pub mod letters;
mod trace;
mod long_run;
mod invalid_streak;
mod delivery_log;
mod index;
mod recent;
mod rates;
mod metrics;
mod metered_store;
mod store_times;
mod promise_lines;
pub mod failpoint;
mod hiding;
pub mod invisible;
pub mod operate;
pub mod find;
mod redrive;
pub mod audit;
mod census;
mod bulk;
mod page;
mod store_page;
mod admin;

pub use promise_lines::{PromiseLine, PromiseLines};
pub use server::{Landings, Server, Unfinished};
pub use store_page::StorePage;
