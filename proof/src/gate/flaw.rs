//! Gates broken on purpose. A checker that lets one of them pass has no teeth.

use crate::bed::{Flaw, Tap};
use async_trait::async_trait;
use bytes::Bytes;
use semel::record::{Claim, Claimed, Held, Lease, State};
use semel::{Error, Store};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// How long a gate that answers too early leaves the record unmade.
const LATE: Duration = Duration::from_millis(400);

/// What is wrong with a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum GateFlaw {
    /// Its store.
    Store(Flaw),
    /// Fences neither rise nor are looked at.
    FenceStandsStill,
    /// It answers before the outcome is recorded.
    AnswersBeforeRecording,
}

/// A gate's store with its flaw.
#[derive(Debug)]
pub(super) struct Flawed {
    pub(super) flaw: GateFlaw,
    /// For what is done behind the caller's back.
    pub(super) store: Arc<dyn Store>,
}

// === impl GateFlaw ===

impl GateFlaw {
    /// The words for it.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Store(flaw) => flaw.words(),
            Self::FenceStandsStill => "fence off",
            Self::AnswersBeforeRecording => "acknowledged before recorded",
        }
    }
}

// === impl Flawed ===

#[async_trait]
impl Tap for Flawed {
    async fn claim(&self, store: &dyn Store, claim: &Claim) -> Result<Claimed, Error> {
        match self.flaw {
            GateFlaw::Store(flaw) => flaw.claim(store, claim).await,
            GateFlaw::AnswersBeforeRecording => store.claim(claim).await,
            GateFlaw::FenceStandsStill => Ok(match store.claim(claim).await? {
                Claimed::Granted(lease) => Claimed::Granted(Lease {
                    fence: lease.born,
                    ..lease
                }),
                other @ (Claimed::Replayed(_)
                | Claimed::Busy { .. }
                | Claimed::NotYet { .. }
                | Claimed::Parked
                | Claimed::Mismatched) => other,
            }),
        }
    }

    async fn renew(
        &self,
        store: &dyn Store,
        lease: &Lease,
        lease_for: Duration,
        retention: Duration,
    ) -> Result<Held, Error> {
        let lease = self.as_asked(store, lease).await?;
        store.renew(&lease, lease_for, retention).await
    }

    async fn complete(
        &self,
        store: &dyn Store,
        lease: &Lease,
        result: &Bytes,
        retention: Duration,
    ) -> Result<Held, Error> {
        match self.flaw {
            GateFlaw::Store(flaw) => flaw.complete(store, lease, result, retention).await,
            GateFlaw::FenceStandsStill => {
                let lease = self.as_asked(store, lease).await?;
                store.complete(&lease, result, retention).await
            }
            GateFlaw::AnswersBeforeRecording => {
                let (late, lease, result) =
                    (Arc::clone(&self.store), lease.clone(), result.clone());
                tokio::spawn(async move {
                    sleep(LATE).await;
                    late.complete(&lease, &result, retention).await
                });
                Ok(Held::Applied(State::Succeeded))
            }
        }
    }
}

impl Flawed {
    /// The lease that is presented: where fences are not looked at, the record's own.
    async fn as_asked(&self, store: &dyn Store, lease: &Lease) -> Result<Lease, Error> {
        if self.flaw != GateFlaw::FenceStandsStill {
            return Ok(lease.clone());
        }
        Ok(match store.look(&lease.key).await? {
            Some(record) => Lease {
                owner: record.owner,
                fence: record.fence,
                ..lease.clone()
            },
            None => lease.clone(),
        })
    }
}
