//! Stores broken on purpose. A checker that lets one of them pass has no teeth.

use super::Interceptor;
use async_trait::async_trait;
use semel::protocol::{Acted, Answer, Claimed, Held, Lease, Operation};
use semel::store::StoreExt;
use semel::{Error, Store};
use serde::{Deserialize, Serialize};

/// What is wrong with a store. Each does behind its caller's back what a wrong statement would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Flaw {
    /// A claim takes a live lease from whoever holds it.
    ClaimIgnoresTheLease,
    /// A completion is accepted from a run that was overtaken.
    CompleteWithoutFence,
    /// A claim starts a settled key anew.
    SuccessDoesNotAbsorb,
}

// === impl Flaw ===

impl Flaw {
    /// Every flaw.
    pub const ALL: [Self; 3] = [
        Self::ClaimIgnoresTheLease,
        Self::CompleteWithoutFence,
        Self::SuccessDoesNotAbsorb,
    ];

    /// The words for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClaimIgnoresTheLease => "claim ignores the lease",
            Self::CompleteWithoutFence => "complete without fence",
            Self::SuccessDoesNotAbsorb => "success does not absorb",
        }
    }
}

#[async_trait]
impl Interceptor for Flaw {
    async fn apply(&self, store: &dyn Store, operation: &Operation) -> Result<Answer, Error> {
        let honest = store.apply(operation).await?;
        match (self, operation, &honest) {
            (
                Self::ClaimIgnoresTheLease,
                Operation::Claim(claim),
                Answer::Claimed(Claimed::Busy { .. }),
            ) => {
                let released = store.release_by_operator(&claim.key).await?;
                again_after(released, store, operation, honest).await
            }
            (
                Self::SuccessDoesNotAbsorb,
                Operation::Claim(claim),
                Answer::Claimed(Claimed::Replayed(_)),
            ) => {
                let forgotten = store.forget(&claim.key).await?;
                again_after(forgotten, store, operation, honest).await
            }
            (
                Self::CompleteWithoutFence,
                Operation::Complete {
                    lease,
                    result,
                    retention,
                },
                Answer::Held(Held::Stale),
            ) => {
                let Some(lease) = lease_of_record(store, lease).await? else {
                    return Ok(honest);
                };
                let completed = store.complete(&lease, result, *retention).await;
                completed.map(Answer::Held)
            }
            (
                Self::ClaimIgnoresTheLease
                | Self::CompleteWithoutFence
                | Self::SuccessDoesNotAbsorb,
                _,
                _,
            ) => Ok(honest),
        }
    }
}

/// Makes the operation again after an act that was applied; otherwise its answer stands.
async fn again_after(
    acted: Acted,
    store: &dyn Store,
    operation: &Operation,
    honest: Answer,
) -> Result<Answer, Error> {
    match acted {
        Acted::Applied => store.apply(operation).await,
        Acted::Refused | Acted::Gone(_) => Ok(honest),
    }
}

/// The lease as the record's own run would present it.
pub(crate) async fn lease_of_record(
    store: &dyn Store,
    lease: &Lease,
) -> Result<Option<Lease>, Error> {
    let record = store.look(&lease.key).await?;
    Ok(record.map(|record| Lease {
        owner: record.owner,
        fence: record.fence,
        ..lease.clone()
    }))
}
