//! Effect and completion in one transaction of the handler's own.

use super::case::Case;
use super::commit;
use super::effect::{Actor, nonce};
use super::evidence::EffectRow;
use super::point::Point;
use crate::faults::Defect;
use crate::harness::{Attempt, WorkId, connect};
use anyhow::Context;
use semel::Outcome;
use semel::protocol::Lease;
use semel::work::Failure;
use semel_postgres::complete_in;
use std::fmt::Display;
use tokio_postgres::Client;

/// The handler's own table. Nothing in it forbids a second effect.
const TABLE: &str =
    "CREATE TABLE effect (work bigint NOT NULL, fence bigint NOT NULL, nonce text NOT NULL)";

const INSERT: &str = "INSERT INTO effect (work, fence, nonce) VALUES ($1, $2, $3)";

const SELECT: &str = "SELECT work, fence, nonce FROM effect";

// === impl Actor ===

impl Actor {
    /// Writes the effect's row and completes the run, in one transaction.
    pub(crate) async fn in_a_transaction(
        &self,
        lease: &Lease,
        attempt: Attempt,
    ) -> Result<Outcome, Failure> {
        let pass = |point| self.pass(&lease.key, point);
        let mut client = self.connect().await?;
        let transaction = client.transaction().await.map_err(rolled_back)?;
        let nonce = nonce();
        let (work, fence) = (i64::from(attempt.work.0), attempt.fence.cast_signed());
        transaction
            .execute(INSERT, &[&work, &fence, &nonce])
            .await
            .map_err(rolled_back)?;
        pass(Point::TransactionWritten);
        let transaction = if self.case.defect == Some(Defect::CompletesApart) {
            transaction.commit().await.map_err(rolled_back)?;
            client.transaction().await.map_err(rolled_back)?
        } else {
            transaction
        };
        let outcome = Outcome::ok(nonce);
        complete_in(&transaction, lease, &outcome)
            .await
            .map_err(rolled_back)?;
        pass(Point::TransactionCompleted);
        let (commit, sent) = (transaction.commit(), Point::CommitSent.name());
        self.fault_points
            .pass_within(Some(&lease.key), &sent, commit)
            .await
            .map_err(|error| Failure::in_doubt(format!("the commit was not answered: {error}")))?;
        pass(Point::Committed);
        Ok(outcome)
    }

    async fn connect(&self) -> Result<Client, Failure> {
        let client = match self.case.location.database() {
            Some(url) => connect(url).await,
            None => Err(anyhow::anyhow!("there is no database")),
        };
        client.map_err(|error| Failure::not_started(format!("{error:#}")))
    }
}

fn rolled_back(error: impl Display) -> Failure {
    Failure::retryable(format!("the transaction is rolled back: {error}"))
}

/// Makes the handler's table, where handlers have one.
pub(crate) async fn prepare(case: &Case) -> anyhow::Result<()> {
    let Some(url) = case.location.database() else {
        return Ok(());
    };
    let made = connect(url).await?.batch_execute(TABLE).await;
    made.context("cannot make the handler's table")
}

/// The effects that were committed.
pub(super) async fn rows(case: &Case) -> anyhow::Result<Vec<EffectRow>> {
    let Some(url) = case.location.database() else {
        return commit::rows(case).await;
    };
    let rows = connect(url).await?.query(SELECT, &[]).await?;
    rows.iter()
        .map(|row| {
            Ok(EffectRow {
                work: WorkId(u32::try_from(row.get::<_, i64>(0))?),
                fence: u64::try_from(row.get::<_, i64>(1))?,
                nonce: row.get(2),
            })
        })
        .collect()
}
