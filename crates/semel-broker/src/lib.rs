//! A local Cloud Tasks and Pub/Sub: Google's own clients talk to it, it keeps what it accepted, and it can be told to
//! misbehave as the real ones may.

mod settings;
mod declared;
mod server;
mod methods;
mod interface;
mod rest;
mod admin;
mod ui;
mod tasks;
mod pubsub;
mod context;
mod policies;
mod schema;
mod clock;
mod duration;
mod field_mask;
mod filter;
mod status;
mod storage;
mod faults;
mod history;
mod http_client;
mod issuer;
mod proto;
pub mod failpoint;
#[cfg(test)]
#[path = "../tests/support/handler.rs"]
mod handler;
#[cfg(test)]
#[path = "../tests/support/table.rs"]
mod table;

pub use declared::{BadDeclared, Declared};
pub use faults::{BadFault, Fault, Kind};
pub use server::{Bound, StartError};
pub use settings::{Keep, Settings};
