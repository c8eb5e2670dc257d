//! Completion inside the caller's own transaction.

use crate::statement::{COMPLETE_IN, LOOK, Statement};
use crate::wire::{self, Id, Raw};
use semel::protocol::{Lease, State};
use semel::store::validate_result;
use semel::{Error, Outcome};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Row, Transaction};

/// Why a run was not completed. The transaction must be rolled back: its effect is not to happen.
#[derive(Debug, thiserror::Error)]
pub enum CompleteError {
    /// Another run, or an operator, has taken the record over.
    #[error(
        "stale: this run is no longer the owner of its record; roll back, its effect is not to happen"
    )]
    Stale,
    /// An earlier transaction of this run has committed, so its effect has happened.
    #[error(
        "already completed by an earlier transaction of this run; roll back, its effect has happened"
    )]
    Already,
    /// The outcome cannot be kept, or the record cannot be read.
    #[error(transparent)]
    Store(#[from] Error),
    /// PostgreSQL refused; the transaction is lost. A retry of the whole transaction is safe.
    #[error("completing failed: {0}; roll back, a retry of the whole transaction is safe")]
    Postgres(#[from] tokio_postgres::Error),
}

/// Records success inside the transaction that makes the effect: both commit, or neither does.
///
/// Call it last before COMMIT: from then on the record is held, and everybody who asks for it waits
/// or hears `busy`. The user of the transaction must be allowed to write `semel.rec` and read `semel.renewal`; one that is
/// not calls the function `semel.complete` instead.
///
/// ```
/// use semel::protocol::{Claim, Claimed};
/// use semel::store::StoreExt;
/// use semel::{Fingerprint, Key, Outcome};
/// use semel_postgres::{PostgresSettings, PostgresStore, complete_in};
/// use std::time::Duration;
/// use tokio_postgres::NoTls;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// # let url = testbed::fresh_database("guard").unwrap();
/// let store = PostgresStore::connect(PostgresSettings::new(&url)).await.unwrap();
/// let claim = Claim {
///     lease: Duration::from_secs(30),
///     retention: Duration::from_secs(3600),
///     ..Claim::new(Key::from_bytes([7; 32]), Fingerprint::of(b"{}"))
/// };
/// let Claimed::Granted(lease) = store.claim(&claim).await.unwrap() else { panic!() };
///
/// let (mut client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
/// tokio::spawn(connection);
/// client.batch_execute("CREATE TABLE stock (n int); INSERT INTO stock VALUES (1)").await.unwrap();
/// let transaction = client.transaction().await.unwrap();
/// transaction.execute("UPDATE stock SET n = n - 1", &[]).await.unwrap();
/// complete_in(&transaction, &lease, &Outcome::ok("reserved")).await.unwrap();
/// transaction.commit().await.unwrap();
///
/// assert!(matches!(store.claim(&claim).await.unwrap(), Claimed::Replayed(_)));
/// # });
/// ```
///
/// # Errors
/// [`CompleteError`], by what to do next; in each case roll back.
pub async fn complete_in(
    transaction: &Transaction<'_>,
    lease: &Lease,
    outcome: &Outcome,
) -> Result<(), CompleteError> {
    let result = outcome.encode();
    validate_result(&result)?;
    let (key, fence) = (Raw(lease.key.as_bytes()), wire::fence_out(lease.fence));
    let params: [&(dyn ToSql + Sync); 4] = [&key, &fence, &Id(lease.owner), &Raw(&result)];
    if !run(transaction, &COMPLETE_IN, &params).await?.is_empty() {
        return Ok(());
    }
    let rows = run(transaction, &LOOK, &[&key]).await?;
    let found = rows.first().map(|row| wire::record(row, 0)).transpose()?;
    match found {
        Some((record, _)) if record.is_of(lease) && record.state == State::Succeeded => {
            Err(CompleteError::Already)
        }
        Some(_) | None => Err(CompleteError::Stale),
    }
}

/// The connection is the caller's, so nothing is prepared on it.
async fn run(
    transaction: &Transaction<'_>,
    statement: &Statement,
    params: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>, tokio_postgres::Error> {
    let typed: Vec<(&(dyn ToSql + Sync), Type)> = params
        .iter()
        .copied()
        .zip(statement.types.iter().cloned())
        .collect();
    transaction.query_typed(&statement.text, &typed).await
}
