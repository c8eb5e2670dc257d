//! The PostgreSQL store: each operation is one statement, many callers share one commit.
//!
//! ```
//! use semel::Key;
//! use semel::store::StoreExt;
//! use semel_postgres::{PostgresSettings, PostgresStore};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! # let url = testbed::fresh_database("crate").unwrap();
//! let store = PostgresStore::connect(PostgresSettings::new(url)).await.unwrap();
//! assert!(store.durability().contains("on the server's disk"));
//! assert_eq!(store.look(&Key::from_bytes([1; 32])).await.unwrap(), None);
//! # });
//! ```
//!
//! # What the server needs
//!
//! PostgreSQL 14 or later, a database encoded in UTF8, and a user that owns the schema `semel` or may
//! create it ([`migrate`]). The role `semel_handler` is created for handlers if the user may create
//! roles; otherwise an administrator does it once:
//!
//! ```sql
//! CREATE ROLE semel_handler NOLOGIN;
//! GRANT USAGE ON SCHEMA semel TO semel_handler;
//! GRANT EXECUTE ON FUNCTION semel.complete, semel.once, semel.key TO semel_handler;
//! ```
//!
//! # Exactly once, in one transaction
//!
//! A handler whose effect is in the same database completes its run there: [`complete_in`] from
//! Rust, from any other language `SELECT semel.complete(key, fence, status, body)`, last before
//! COMMIT. Code that has no run calls `SELECT semel.once(name)`, which is true exactly once.
//!
//! # TLS
//!
//! The URL says it in libpq's words: `sslmode` (`disable`, `allow`, `prefer`, `require`, `verify-ca`,
//! `verify-full`; `prefer` unless set), `sslrootcert` (a PEM file, or `system`), `sslcert` and `sslkey`.
//! Only `verify-full` makes sure who answers: `postgres://db/shop?sslmode=verify-full&sslrootcert=ca.pem`.
//! Files are read when the store is opened, and nowhere else than where the URL says.
//!
//! # Behind a pooler
//!
//! With [`PostgresSettings::pooler`] nothing is expected of a session, so PgBouncer may hand each
//! transaction to another connection.

mod settings;
mod hosts;
mod tls_options;
mod store;
mod claims;
mod writes;
mod steps;
mod operator;
mod pages;
mod index;
mod letters;
mod ready;
mod landing;
mod complete_in;
mod retry;
mod connections;
mod dialler;
mod tls;
mod channel_binding;
mod statement;
mod wire;
mod errors;
mod server;
mod migrate;

pub use complete_in::{CompleteError, complete_in};
pub use landing::{Table, TableNameError, TableSettings, TableSink};
pub use migrate::{KEY_FUNCTIONS, Migrated, migrate};
pub use server::DurabilitySettings;
pub use settings::PostgresSettings;
pub use store::PostgresStore;
