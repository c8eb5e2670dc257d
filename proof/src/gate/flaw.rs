//! Gates broken on purpose. A checker that lets one of them pass has no teeth.

use crate::harness::{Flaw, Interceptor, lease_of_record};
use async_trait::async_trait;
use semel::protocol::{Answer, Claimed, Held, Operation, State};
use semel::store::Letters;
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
    pub(super) store: Arc<dyn Letters>,
}

// === impl GateFlaw ===

impl GateFlaw {
    /// The words for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Store(flaw) => flaw.name(),
            Self::FenceStandsStill => "fence off",
            Self::AnswersBeforeRecording => "acknowledged before recorded",
        }
    }
}

// === impl Flawed ===

#[async_trait]
impl Interceptor for Flawed {
    async fn apply(&self, store: &dyn Store, operation: &Operation) -> Result<Answer, Error> {
        match self.flaw {
            GateFlaw::Store(flaw) => flaw.apply(store, operation).await,
            GateFlaw::FenceStandsStill => without_fences(store, operation).await,
            GateFlaw::AnswersBeforeRecording => {
                if !matches!(operation, Operation::Complete { .. }) {
                    return store.apply(operation).await;
                }
                let (late, completion) = (Arc::clone(&self.store), operation.clone());
                tokio::spawn(async move {
                    sleep(LATE).await;
                    late.apply(&completion).await
                });
                Ok(Answer::Held(Held::Applied(State::Succeeded)))
            }
        }
    }
}

/// Grants the fence of the first grant, and takes any.
async fn without_fences(store: &dyn Store, operation: &Operation) -> Result<Answer, Error> {
    let mut operation = operation.clone();
    if let Operation::Renew { lease, .. } | Operation::Complete { lease, .. } = &mut operation
        && let Some(own) = lease_of_record(store, lease).await?
    {
        *lease = own;
    }
    let mut answer = store.apply(&operation).await?;
    if let Answer::Claimed(Claimed::Granted(lease)) = &mut answer {
        lease.fence = lease.born;
    }
    Ok(answer)
}
