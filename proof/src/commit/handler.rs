//! A handler that completes its run in the commit that has its effect. Each try has an effect of its own, as an
//! increment would be: nothing but the record keeps it from being made twice.

use crate::harness::{Completing, FirestoreDatabase, created, is_worth_another};
use bytes::Bytes;
use semel::Outcome;
use semel::protocol::Lease;
use std::collections::HashMap;
use tonic::Status;

/// The collection of effects.
pub(super) const EFFECTS: &str = "commit_effects";

/// How the body of a handler's answer begins; the id of its effect follows.
pub(super) const EFFECT: &str = "effect ";

/// How often it tries; then it vanishes.
const TRIES: usize = 5;

/// The handler, and whether its effect is in the commit that completes.
#[derive(Clone, Debug)]
pub(super) struct Handler {
    pub(super) database: FirestoreDatabase,
    pub(super) completes_apart: bool,
}

// === impl Handler ===

impl Handler {
    /// Makes the effect and completes; the answer that is recorded, if it knows of one. `ids` are for the effects.
    pub(super) async fn complete(
        &self,
        lease: &Lease,
        mut ids: impl Iterator<Item = u64>,
    ) -> Option<Bytes> {
        for _ in 0..TRIES {
            match self.attempt(lease, ids.next()?).await {
                Ok(answer) => return answer,
                Err(refused) if is_worth_another(&refused) => {}
                Err(_) => return None,
            }
        }
        None
    }

    /// Reads the record, and writes on condition that it stays so.
    async fn attempt(&self, lease: &Lease, id: u64) -> Result<Option<Bytes>, Status> {
        let result = Outcome::ok(format!("{EFFECT}{id:016x}")).encode();
        let completion = match self.database.completing(lease, &result).await? {
            Completing::By(completion) => completion,
            Completing::Already(result) => return Ok(Some(result)),
            Completing::Stale => return Ok(None),
        };
        let name = self.database.document(&format!("{EFFECTS}/{id:016x}"));
        let effect = created(name, HashMap::new());
        if self.completes_apart {
            self.database.commit(vec![effect]).await?;
            self.database.commit(vec![completion]).await?;
        } else {
            self.database.commit(vec![effect, completion]).await?;
        }
        Ok(Some(result))
    }
}
