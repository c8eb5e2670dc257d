//! The Redis store: each operation is one call of a Lua function on the server, atomic, one round
//! trip, pipelined with its neighbours over few connections.
//!
//! ```no_run
//! use semel::Key;
//! use semel::store::StoreExt;
//! use semel_redis::{RedisSettings, RedisStore};
//!
//! # async fn example() -> Result<(), semel::Error> {
//! let store = RedisStore::connect(RedisSettings::new("redis://127.0.0.1:6379")).await?;
//! for line in store.start_notes().lines() {
//!     println!("{line}"); // what the server's settings mean for your records
//! }
//! assert_eq!(store.look(&Key::from_bytes([1; 32])).await?, None);
//! # Ok(())
//! # }
//! ```
//!
//! # Best effort under failover
//!
//! Redis replicates after it has answered. A failover can therefore lose records that were
//! acknowledged, and work whose record is lost can run twice. [`RedisSettings::wait_replicas`] makes
//! every write wait for replicas and reports the ones that were not confirmed; that narrows the
//! window and does not close it, because the replica that takes over is not chosen by who confirmed.
//! A single server is as durable as its append-only file: [`StartNotes::durability`] says it in one
//! sentence. Where a second effect must not happen, use a store with consensus or PostgreSQL, or
//! hand the key to a downstream that de-duplicates.
//!
//! # What the server needs
//!
//! Redis 7.0 or later (or Valkey) with `maxmemory-policy noeviction`: an evicted record runs its
//! work again, so [`RedisStore::connect`] refuses every other policy. A user of its own needs the keys
//! and commands of this line, and `+wait` with [`RedisSettings::wait_replicas`]; without
//! `+function|load`, somebody who may loads the [`library`] once per version:
//!
//! ```text
//! ACL SETUSER semel on >password ~sml:* +info +config|get +cluster|info +scan +fcall +function|load +time
//!     +hmget +hget +hkeys +hset +hsetnx +hdel +del +get +set +pexpireat +persist +zadd +zrange +zrem
//! ```
//!
//! # Cluster
//!
//! All keys of one call carry the same hash tag and live in one slot. Routing to several masters is
//! not there yet: a node that is one of many is refused at start.

mod settings;
mod store;
mod command;
mod names;
mod answer;
mod list;
mod connections;
mod connection;
mod tls;
mod replicas;
mod library;
mod start;
mod eviction;
mod errors;

pub use library::library;
pub use settings::{RedisSettings, WaitReplicas};
pub use start::{DurabilitySettings, StartNotes};
pub use store::RedisStore;
