//! The servers that tests of one run share.
//!
//! `cargo xtask test` starts them once and names them in the environment. A test started alone, by `cargo test`,
//! finds nothing there and gets servers of its own, one of each per process.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::anyhow;

use crate::{Postgres, Redis};

static DATABASES: AtomicU32 = AtomicU32::new(0);

/// The URL of a new, empty database on the PostgreSQL of this test run. `name` shows up in its name.
///
/// # Errors
/// When PostgreSQL cannot be started, or `name` is not lower-case letters, digits and `_`.
pub fn fresh_database(name: &str) -> anyhow::Result<String> {
    let number = DATABASES.fetch_add(1, Ordering::Relaxed);
    let name = format!("{name}_{}_{number}", std::process::id());
    crate::postgres::create_database(&postgres_url()?, &name)
}

/// The URL of the Redis of this test run. Other tests use it at the same time: keep to names of your own.
///
/// # Errors
/// When Redis cannot be started.
pub fn redis_url() -> anyhow::Result<String> {
    static OWN: OnceLock<Result<Redis, String>> = OnceLock::new();
    if let Some(url) = given("SEMEL_TEST_REDIS_URL") {
        return Ok(url);
    }
    let own = OWN.get_or_init(|| Redis::start(&[]).map_err(|error| format!("{error:#}")));
    own.as_ref()
        .map(Redis::url)
        .map_err(|error| anyhow!("{error}"))
}

fn postgres_url() -> anyhow::Result<String> {
    static OWN: OnceLock<Result<Postgres, String>> = OnceLock::new();
    if let Some(url) = given("SEMEL_TEST_POSTGRES_URL") {
        return Ok(url);
    }
    let own = OWN.get_or_init(|| Postgres::start().map_err(|error| format!("{error:#}")));
    own.as_ref()
        .map(Postgres::url)
        .map_err(|error| anyhow!("{error}"))
}

#[allow(
    clippy::disallowed_methods,
    reason = "tests have no command line: the environment is how xtask tells them of its servers"
)]
fn given(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
