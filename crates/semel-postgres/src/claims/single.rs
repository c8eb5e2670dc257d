//! A claim by itself: the same statements, without a group.

use super::sent::{Params, ask_one, fresh, taken_over};
use super::{Asked, Shown, Writer};
use crate::errors::QueryError;
use semel::Error;
use semel::protocol::{Claim, Claimed};

impl Writer {
    /// Claims one key.
    pub(super) async fn write_one(&self, claim: &Claim) -> Result<Asked, Error> {
        if self.fresh_keys.are_expected() {
            let params = Params::of(claim);
            let statement = &self.statements(&[claim]).fresh_one;
            match self
                .connections
                .query(statement, statement.taken(&params.all()))
                .await
            {
                Ok(rows) => {
                    self.fresh_keys.note(rows.len(), 1);
                    if let Some(row) = rows.first() {
                        let lease = fresh(claim, row)?;
                        return Ok(Asked::Answered(Claimed::Granted(lease)));
                    }
                }
                Err(QueryError::Held | QueryError::Again | QueryError::Failed(_)) => {
                    self.fresh_keys.note(0, 1)
                }
                Err(QueryError::Broken(error)) => return Err(error),
            }
        }
        // Rarely reached by a first run, so it does not make every future larger.
        Box::pin(self.claim_known_one(claim)).await
    }

    /// Claims a key that has a record, or may have one.
    async fn claim_known_one(&self, claim: &Claim) -> Result<Asked, Error> {
        let mut lent = self.connections.lend().await?;
        let answer = ask_one(claim, &lent, &self.statements(&[claim]).one).await;
        if matches!(answer, Err(QueryError::Broken(_))) {
            lent.discard();
        }
        drop(lent);
        let shown = Shown::or_error(answer)?;
        self.fresh_keys
            .note(usize::from(matches!(shown, Shown::Granted(_))), 1);
        match shown.decide(claim) {
            Some(asked) => Ok(asked),
            None => self.take_over_one(claim).await,
        }
    }

    async fn take_over_one(&self, claim: &Claim) -> Result<Asked, Error> {
        match self.try_take_over(&[claim]).await {
            Ok(rows) => rows.first().map_or(Ok(Asked::Raced), |row| {
                taken_over(claim, row).map(Asked::Answered)
            }),
            Err(QueryError::Held | QueryError::Again) => Ok(Asked::Raced),
            Err(QueryError::Failed(error) | QueryError::Broken(error)) => Err(error),
        }
    }
}
