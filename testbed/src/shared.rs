//! The servers that tests of one run share.
//!
//! `cargo xtask test` starts them once and names them in the environment. A test started alone, by `cargo test`,
//! finds nothing there and gets servers of its own, one of each per process.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{anyhow, bail};

use crate::{FIRESTORE_NOT_RUN, Firestore, Postgres, Redis};

/// A server of this process's own, or why it has none.
type Own<S> = OnceLock<Result<S, String>>;

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
    static OWN: Own<Redis> = OnceLock::new();
    given_or_own(
        "SEMEL_TEST_REDIS_URL",
        &OWN,
        || Redis::start(&[]),
        Redis::url,
    )
}

/// `host:port` of the Firestore emulator of this test run; none where there is no emulator, which the caller then says
/// and passes. Other tests use it at the same time: keep to a project of your own.
///
/// # Errors
/// When it cannot be started, or is missing though `SEMEL_TEST_REQUIRE` has `firestore` in it.
pub fn firestore_host() -> anyhow::Result<Option<String>> {
    static OWN: Own<Firestore> = OnceLock::new();
    const VARIABLE: &str = "FIRESTORE_EMULATOR_HOST";
    if given(VARIABLE).is_none() && !Firestore::is_installed() {
        return unless_required(&given("SEMEL_TEST_REQUIRE").unwrap_or_default());
    }
    given_or_own(VARIABLE, &OWN, Firestore::start, Firestore::host).map(Some)
}

/// No emulator, if one may be missing.
fn unless_required(required: &str) -> anyhow::Result<Option<String>> {
    if required.split(',').any(|it| it == "firestore") {
        bail!("SEMEL_TEST_REQUIRE={required}, and it cannot be run: {FIRESTORE_NOT_RUN}");
    }
    Ok(None)
}

fn postgres_url() -> anyhow::Result<String> {
    static OWN: Own<Postgres> = OnceLock::new();
    given_or_own(
        "SEMEL_TEST_POSTGRES_URL",
        &OWN,
        Postgres::start,
        Postgres::url,
    )
}

/// The URL in the environment, or that of this process's own server, which is started first if need be.
fn given_or_own<S>(
    variable: &str,
    own: &Own<S>,
    start: impl FnOnce() -> anyhow::Result<S>,
    url: impl FnOnce(&S) -> String,
) -> anyhow::Result<String> {
    if let Some(url) = given(variable) {
        return Ok(url);
    }
    let own = own.get_or_init(|| start().map_err(|error| format!("{error:#}")));
    own.as_ref().map(url).map_err(|error| anyhow!("{error}"))
}

#[expect(
    clippy::disallowed_methods,
    reason = "tests have no command line: the environment is how xtask tells them of its servers"
)]
fn given(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[cfg(test)]
mod tests {
    use super::unless_required;

    #[test]
    fn emulator_may_be_missing_unless_it_is_required() {
        assert_eq!(unless_required("").unwrap(), None);
        let error = unless_required("other,firestore").unwrap_err().to_string();
        assert!(
            error.contains("no emulator (install google-cloud-cli"),
            "{error}"
        );
    }
}
