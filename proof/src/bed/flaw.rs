//! Stores broken on purpose. A checker that lets one of them pass has no teeth.

use super::Tap;
use async_trait::async_trait;
use bytes::Bytes;
use semel::record::{Acted, Claim, Claimed, Held, Lease};
use semel::{Error, Store};
use serde::{Deserialize, Serialize};
use std::time::Duration;

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
    pub const fn words(self) -> &'static str {
        match self {
            Self::ClaimIgnoresTheLease => "claim ignores the lease",
            Self::CompleteWithoutFence => "complete without fence",
            Self::SuccessDoesNotAbsorb => "success does not absorb",
        }
    }
}

#[async_trait]
impl Tap for Flaw {
    async fn claim(&self, store: &dyn Store, claim: &Claim) -> Result<Claimed, Error> {
        let honest = store.claim(claim).await?;
        let act: Acted = match (self, &honest) {
            (Self::ClaimIgnoresTheLease, Claimed::Busy { .. }) => {
                store.release_by_operator(&claim.key).await?
            }
            (Self::SuccessDoesNotAbsorb, Claimed::Replayed(_)) => store.forget(&claim.key).await?,
            (
                Self::ClaimIgnoresTheLease
                | Self::CompleteWithoutFence
                | Self::SuccessDoesNotAbsorb,
                _,
            ) => return Ok(honest),
        };
        match act {
            Acted::Applied => store.claim(claim).await,
            Acted::Refused | Acted::Gone(_) => Ok(honest),
        }
    }

    async fn complete(
        &self,
        store: &dyn Store,
        lease: &Lease,
        result: &Bytes,
        retention: Duration,
    ) -> Result<Held, Error> {
        let honest = store.complete(lease, result, retention).await?;
        if *self != Self::CompleteWithoutFence || honest != Held::Stale {
            return Ok(honest);
        }
        let Some(record) = store.look(&lease.key).await? else {
            return Ok(honest);
        };
        let stolen = Lease {
            owner: record.owner,
            fence: record.fence,
            ..lease.clone()
        };
        store.complete(&stolen, result, retention).await
    }
}
