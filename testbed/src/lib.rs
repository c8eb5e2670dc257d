//! Real servers for tests and benchmarks.
//!
//! Each server is private: its own temporary directory, a free port of the loopback interface, ended by its
//! process id. Dropping the handle ends the server and removes the directory; so does the death of the process
//! that started it, however it died. Servers come from Debian's packages; [`install`] fetches what is missing.

mod postgres;
mod redis;
mod pgbouncer;
mod shared;
mod packages;
mod process;
mod server;
mod keeper;
mod command;
mod port;
mod wait;

pub use packages::{install, missing_packages};
pub use pgbouncer::PgBouncer;
pub use port::free_port;
pub use postgres::Postgres;
pub use process::Process;
pub use redis::Redis;
pub use shared::{fresh_database, redis_url};
