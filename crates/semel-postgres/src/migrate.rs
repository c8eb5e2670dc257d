//! Migrations: numbered, each in a transaction of its own, one process at a time.

use crate::errors::invalid;
use crate::server::Session;
use crate::settings::PostgresSettings;
use semel::Error;
use std::time::Duration;
use tokio_postgres::{IsolationLevel, Transaction};

/// Every migration, from the first on.
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001_store.sql"),
    include_str!("../migrations/0002_key.sql"),
    include_str!("../migrations/0003_renewal.sql"),
    include_str!("../migrations/0004_letter.sql"),
    include_str!("../migrations/0005_label.sql"),
    include_str!("../migrations/0006_doubt.sql"),
    include_str!("../migrations/0007_reasons.sql"),
    include_str!("../migrations/0008_durable_complete.sql"),
    include_str!("../migrations/0009_history.sql"),
    include_str!("../migrations/0010_index.sql"),
    include_str!("../migrations/0011_label_index.sql"),
    include_str!("../migrations/0012_unfinished.sql"),
    include_str!("../migrations/0013_key_parts.sql"),
];

/// `semel.key` and its parts: all that a database needs to make keys, once it has the schema `semel`. The migration
/// installs it, too.
pub const KEY_FUNCTIONS: &str = concat!(
    include_str!("../migrations/0002_key.sql"),
    "\n",
    include_str!("../migrations/0013_key_parts.sql"),
);

/// Whoever migrates holds this advisory lock: "semel" as a number.
const MIGRATING: i64 = 0x73_656d_656c;

/// How long to wait for another process that migrates, and for tables that are in use.
const WAIT: Duration = Duration::from_secs(60);

/// What [`migrate`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The version the schema had; 0 when there was none.
    pub from: u32,
    /// The version it has now.
    pub to: u32,
    /// Whether the role `semel_handler` is there. Without it, which is how it stays where this user
    /// may not create roles, handlers that log in as somebody else cannot call `semel.complete` and
    /// `semel.once` until an administrator has created and granted it.
    pub handler_role: bool,
}

/// Brings the schema `semel` up to date. Safe to repeat, and to run from many processes at once.
///
/// ```
/// use semel_postgres::{PostgresSettings, migrate};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// # let url = testbed::fresh_database("migrate").unwrap();
/// let settings = PostgresSettings::new(url);
/// assert_eq!(migrate(&settings).await.unwrap().from, 0);
/// let again = migrate(&settings).await.unwrap();
/// assert_eq!(again.from, again.to);
/// # });
/// ```
///
/// # Errors
/// `Invalid` when a setting is wrong, a right is missing, or a newer version has migrated the
/// database; `Unavailable` when the server cannot be asked, or another process migrates too long.
pub async fn migrate(settings: &PostgresSettings) -> Result<Migrated, Error> {
    let mut session = Session::open(&settings.target()?, settings.connect_timeout).await?;
    session.check().await?;
    let migrated = bring_up_to_date(&mut session).await;
    session.close().await;
    migrated
}

/// Migrates on an open session.
pub(crate) async fn bring_up_to_date(session: &mut Session) -> Result<Migrated, Error> {
    let from = version(session).await?;
    let mut to = from;
    while to < latest() {
        to = step(session).await?;
    }
    refuse_newer(session.place(), to)?;
    let ask = "SELECT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'semel_handler')";
    let row = session.client.query_typed_one(ask, &[]).await;
    let handler_role: bool = row.map_err(|error| session.start_error(error))?.get(0);
    if from != to {
        tracing::info!(from, to, "migrated the schema semel");
        if !handler_role {
            tracing::warn!(
                "the role semel_handler does not exist and this user may not create it: handlers that \
                 log in as other users cannot call semel.complete and semel.once"
            );
        }
    }
    Ok(Migrated {
        from,
        to,
        handler_role,
    })
}

/// Refuses a schema that is not the one this build was made for.
pub(crate) async fn check(session: &Session) -> Result<(), Error> {
    let found = version(session).await?;
    refuse_newer(session.place(), found)?;
    if found < latest() {
        return Err(invalid(
            session.place(),
            &format!(
                "the schema semel has version {found}, this build needs {}",
                latest()
            ),
            "run `semel migrate`",
        ));
    }
    Ok(())
}

/// The version of the schema; 0 when there is none.
async fn version(session: &Session) -> Result<u32, Error> {
    let there = "SELECT to_regclass('semel.migration') IS NOT NULL";
    let there = session.client.query_typed_one(there, &[]).await;
    if !there
        .map_err(|error| session.start_error(error))?
        .get::<_, bool>(0)
    {
        return Ok(0);
    }
    let row = session.client.query_typed_one(VERSION, &[]).await;
    let row = row.map_err(|error| session.start_error(error))?;
    Ok(number(row.get(0)))
}

const VERSION: &str = "SELECT COALESCE(max(version), 0) FROM semel.migration";

/// Applies one migration, if one is left; the version afterwards.
async fn step(session: &mut Session) -> Result<u32, Error> {
    let applied = async {
        let transaction = session.client.build_transaction();
        let transaction = transaction.isolation_level(IsolationLevel::ReadCommitted);
        apply_next(transaction.start().await?).await
    }
    .await;
    applied.map_err(|error| session.start_error(error))
}

async fn apply_next(transaction: Transaction<'_>) -> Result<u32, tokio_postgres::Error> {
    let wait = WAIT.as_secs();
    transaction
        .batch_execute(&format!(
            "SET LOCAL lock_timeout = '{wait}s'; SELECT pg_advisory_xact_lock({MIGRATING});"
        ))
        .await?;
    // A schema made for this user beforehand is used, also without the right to make one.
    transaction
        .batch_execute(
            "DO $d$ BEGIN IF to_regnamespace('semel') IS NULL THEN CREATE SCHEMA semel; END IF; END $d$;
             CREATE TABLE IF NOT EXISTS semel.migration (
               version int NOT NULL PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT clock_timestamp());",
        )
        .await?;
    let done = number(transaction.query_typed_one(VERSION, &[]).await?.get(0));
    let Some(next) = usize::try_from(done).ok().and_then(|n| MIGRATIONS.get(n)) else {
        return Ok(done);
    };
    transaction.batch_execute(next).await?;
    transaction
        .batch_execute(&format!(
            "INSERT INTO semel.migration (version) VALUES ({})",
            done + 1
        ))
        .await?;
    transaction.commit().await?;
    Ok(done + 1)
}

fn refuse_newer(place: &str, found: u32) -> Result<(), Error> {
    if found <= latest() {
        return Ok(());
    }
    Err(invalid(
        place,
        &format!(
            "the schema semel has version {found}, made by a newer semel; this build knows versions up \
             to {}, and a retry is not safe",
            latest()
        ),
        "upgrade this semel",
    ))
}

fn latest() -> u32 {
    u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX)
}

fn number(version: i32) -> u32 {
    u32::try_from(version).unwrap_or(0)
}
