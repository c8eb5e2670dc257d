//! A handler with a transaction of its own, in the same database as the records, at any isolation level.

use super::call::{Nonce, Request, Response, RunEnded, RunId};
use super::caller::Caller;
use super::racer::GrantedRun;
use crate::harness::{StoreLocation, connect};
use rand::Rng;
use semel::protocol::{Lease, State};
use semel::{Key, Outcome};
use semel_postgres::complete_in;
use std::time::Duration;
use tokio::time::sleep;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, IsolationLevel, Transaction};

/// How long a transaction stays open after its completion, in ms, now and then.
const OPEN_MS: std::ops::Range<u64> = 0..60;

/// How often a lease is renewed between effect and completion, at the most.
const RENEWALS_MAX: u32 = 3;

const INSERT: &str = "INSERT INTO race.effect (key, born, fence, nonce) VALUES ($1, $2, $3, $4)";

const COMPLETE: &str = "SELECT semel.complete($1, $2, 200, $3)";

/// A handler's own connection.
#[derive(Debug)]
pub(super) struct TransactionHandler {
    client: Client,
}

// === impl TransactionHandler ===

impl TransactionHandler {
    /// A handler, where the store is a database.
    pub(super) async fn at(location: &StoreLocation) -> anyhow::Result<Option<Self>> {
        let Some(url) = location.database() else {
            return Ok(None);
        };
        let client = connect(url).await?;
        Ok(Some(Self { client }))
    }

    /// Takes effect and completes in one transaction, which is committed or not.
    pub(super) async fn complete(
        &mut self,
        caller: &mut Caller,
        run: &GrantedRun,
    ) -> anyhow::Result<()> {
        let nonce = Nonce(caller.rng.random_range(1..u64::MAX));
        let began = caller.now();
        let request = Request::End(RunId::of(&run.lease), RunEnded::CompleteIn(nonce));
        let response = self.transact(caller, run, nonce).await?;
        caller.write(run.key, began, request, response);
        Ok(())
    }

    async fn transact(
        &mut self,
        caller: &mut Caller,
        run: &GrantedRun,
        nonce: Nonce,
    ) -> anyhow::Result<Response> {
        let lease = &run.lease;
        let level = match caller.rng.random_range(0..3) {
            0 => IsolationLevel::ReadCommitted,
            1 => IsolationLevel::RepeatableRead,
            _ => IsolationLevel::Serializable,
        };
        let transaction = self.client.build_transaction().isolation_level(level);
        let transaction = transaction.start().await?;
        take_effect(&transaction, lease, nonce).await?;
        // The snapshot is taken; the gate renews meanwhile.
        for _ in 0..caller.rng.random_range(0..=RENEWALS_MAX) {
            caller.call(run.key, run.renewal()).await;
        }
        let done = if caller.rng.random_bool(0.5) {
            in_rust(&transaction, lease, nonce).await
        } else {
            in_sql(&transaction, lease, nonce).await
        };
        if caller.rng.random_ratio(1, 3) {
            sleep(Duration::from_millis(caller.rng.random_range(OPEN_MS))).await;
        }
        if let Err(why) = done {
            transaction.rollback().await?;
            return Ok(Response::RolledBack(format!("{why:#}")));
        }
        if caller.rng.random_ratio(1, 4) {
            transaction.rollback().await?;
            return Ok(Response::RolledBack("by choice".into()));
        }
        match transaction.commit().await {
            Ok(()) => Ok(Response::Applied(State::Succeeded.number())),
            // At SERIALIZABLE, handlers of other keys may stand in the way.
            Err(error) if error.code() == Some(&SqlState::T_R_SERIALIZATION_FAILURE) => {
                Ok(Response::RolledBack(error.to_string()))
            }
            Err(error) => Err(error.into()),
        }
    }
}

async fn in_rust(transaction: &Transaction<'_>, lease: &Lease, nonce: Nonce) -> anyhow::Result<()> {
    let outcome = Outcome::ok(nonce.0.to_string());
    Ok(complete_in(transaction, lease, &outcome).await?)
}

/// As a handler in any other language does it.
async fn in_sql(transaction: &Transaction<'_>, lease: &Lease, nonce: Nonce) -> anyhow::Result<()> {
    let (key, body) = (lease.key.to_string(), nonce.0.to_string());
    let fence = lease.fence.0.cast_signed();
    transaction
        .execute(COMPLETE, &[&key, &fence, &body])
        .await?;
    Ok(())
}

async fn take_effect(
    transaction: &Transaction<'_>,
    lease: &Lease,
    nonce: Nonce,
) -> anyhow::Result<()> {
    let (born, fence) = (lease.born.0.cast_signed(), lease.fence.0.cast_signed());
    let key = Key::as_bytes(&lease.key).as_slice();
    let row: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
        [&key, &born, &fence, &nonce.0.to_string()];
    transaction.execute(INSERT, &row).await?;
    Ok(())
}
