//! Defects: how a process is broken by a fault. Those of a store do behind their caller's back what a wrong statement
//! would do.

use crate::harness::{Intercepted, Interceptor, connect};
use async_trait::async_trait;
use semel::protocol::{Acted, Answer, Claim, Claimed, Held, Lease, Operation, State};
use semel::store::{Letters, StoreExt};
use semel::{Error, Store};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// How long a store that answers too early leaves the record unmade.
const LATE: Duration = Duration::from_millis(400);

/// What is wrong with a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Defect {
    /// Its store: a claim takes a live lease from whoever holds it.
    ClaimIgnoresTheLease,
    /// Its store: a completion is accepted from a run that was overtaken.
    CompleteWithoutFence,
    /// Its store: a claim starts a settled key anew.
    SuccessDoesNotAbsorb,
    /// Its store: fences neither rise nor are looked at.
    FenceStandsStill,
    /// Its store: it answers before the outcome is recorded.
    AnswersBeforeRecording,
    /// Its handler: the effect is done before the claim.
    EffectBeforeClaim,
    /// Its handler: the effect commits in a transaction of its own.
    CompletesApart,
    /// Its gate: when it asks what became of a run, whatever says nothing is taken for a no.
    UnclearProbeIsNo,
    /// Its store: it does not know how long a run may act.
    ForgetsHowLongRunsAct,
    /// Its store: whoever follows a run in doubt is not told.
    DoubtIsNotTold,
    /// What PostgreSQL writes: runs in doubt are not counted.
    DoubtsAreNotCounted,
    /// What PostgreSQL writes: redrive, release and resolve leave the fence as it was.
    OperatorKeepsTheFence,
    /// What PostgreSQL writes: a completion cuts retention short.
    RetentionShrinks,
    /// What PostgreSQL writes: what should be parked may be run again.
    DoubtIsNotParked,
}

/// A store with its defect.
#[derive(Debug)]
struct DefectiveStore {
    defect: Defect,
    /// For what is done behind the caller's back.
    store: Arc<dyn Letters>,
}

/// The store as a process with this defect uses it.
pub(crate) fn plant(defect: Option<Defect>, store: Arc<dyn Letters>) -> Arc<dyn Letters> {
    let Some(defect) = defect else {
        return store;
    };
    let interceptor = DefectiveStore {
        defect,
        store: Arc::clone(&store),
    };
    Arc::new(Intercepted { store, interceptor })
}

// === impl Defect ===

impl Defect {
    /// Plants what PostgreSQL does wrong, by a trigger in the test's own database that spoils what is written.
    pub(crate) async fn plant_in_database(self, url: &str) -> anyhow::Result<()> {
        let what = match self {
            Self::OperatorKeepsTheFence => {
                "IF NEW.owner = OLD.owner AND NEW.state <> 1 THEN NEW.fence := OLD.fence; END IF;"
            }
            Self::RetentionShrinks => {
                "IF NEW.state = 2 THEN NEW.expires_at := NEW.lease_until + interval '10 ms'; END IF;"
            }
            Self::DoubtIsNotParked => {
                "IF NEW.state = 5 THEN NEW.state := 4; NEW.lease_until := clock_timestamp(); END IF;"
            }
            Self::DoubtsAreNotCounted => "NEW.doubts := OLD.doubts;",
            Self::ForgetsHowLongRunsAct
            | Self::DoubtIsNotTold
            | Self::ClaimIgnoresTheLease
            | Self::CompleteWithoutFence
            | Self::SuccessDoesNotAbsorb
            | Self::FenceStandsStill
            | Self::AnswersBeforeRecording
            | Self::UnclearProbeIsNo
            | Self::EffectBeforeClaim
            | Self::CompletesApart => return Ok(()),
        };
        let sql = format!(
            "CREATE FUNCTION race.spoil() RETURNS trigger LANGUAGE plpgsql AS \
             $f$ BEGIN {what} RETURN NEW; END $f$; \
             CREATE TRIGGER spoil BEFORE UPDATE ON semel.rec \
             FOR EACH ROW EXECUTE FUNCTION race.spoil();"
        );
        Ok(connect(url).await?.batch_execute(&sql).await?)
    }
}

// === impl DefectiveStore ===

#[async_trait]
impl Interceptor for DefectiveStore {
    async fn apply(&self, store: &dyn Store, operation: &Operation) -> Result<Answer, Error> {
        match (self.defect, operation) {
            (Defect::ClaimIgnoresTheLease, Operation::Claim(claim)) => {
                let answer = store.apply(operation).await?;
                let busy = matches!(answer, Answer::Claimed(Claimed::Busy { .. }));
                if busy && store.release_by_operator(&claim.key, "").await? == Acted::Applied {
                    return store.apply(operation).await;
                }
                Ok(answer)
            }
            (Defect::SuccessDoesNotAbsorb, Operation::Claim(claim)) => {
                let answer = store.apply(operation).await?;
                let settled = matches!(answer, Answer::Claimed(Claimed::Replayed(_)));
                if settled && store.forget(&claim.key).await? == Acted::Applied {
                    return store.apply(operation).await;
                }
                Ok(answer)
            }
            (Defect::CompleteWithoutFence, Operation::Complete { .. }) => {
                let answer = store.apply(operation).await?;
                if answer == Answer::Held(Held::Stale) {
                    return store.apply(&for_record(store, operation).await?).await;
                }
                Ok(answer)
            }
            (Defect::ForgetsHowLongRunsAct, Operation::Claim(claim)) => {
                let claim = Claim {
                    acts_for: None,
                    ..claim.clone()
                };
                store.apply(&Operation::Claim(claim)).await
            }
            (Defect::DoubtIsNotTold, Operation::Claim(_)) => {
                let mut answer = store.apply(operation).await?;
                if let Answer::Claimed(Claimed::Granted(lease)) = &mut answer {
                    lease.in_doubt = false;
                }
                Ok(answer)
            }
            (Defect::FenceStandsStill, _) => without_fences(store, operation).await,
            (Defect::AnswersBeforeRecording, Operation::Complete { .. }) => {
                let (late, completion) = (Arc::clone(&self.store), operation.clone());
                tokio::spawn(async move {
                    sleep(LATE).await;
                    late.apply(&completion).await
                });
                Ok(Answer::Held(Held::Applied(State::Succeeded)))
            }
            (
                Defect::ForgetsHowLongRunsAct
                | Defect::DoubtIsNotTold
                | Defect::DoubtsAreNotCounted
                | Defect::ClaimIgnoresTheLease
                | Defect::SuccessDoesNotAbsorb
                | Defect::CompleteWithoutFence
                | Defect::AnswersBeforeRecording
                | Defect::UnclearProbeIsNo
                | Defect::EffectBeforeClaim
                | Defect::CompletesApart
                | Defect::OperatorKeepsTheFence
                | Defect::RetentionShrinks
                | Defect::DoubtIsNotParked,
                _,
            ) => store.apply(operation).await,
        }
    }
}

/// Grants the fence of the first grant, and takes any.
async fn without_fences(store: &dyn Store, operation: &Operation) -> Result<Answer, Error> {
    let operation = for_record(store, operation).await?;
    let mut answer = store.apply(&operation).await?;
    if let Answer::Claimed(Claimed::Granted(lease)) = &mut answer {
        lease.fence = lease.born;
    }
    Ok(answer)
}

/// A renewal or completion as the record's own run would make it.
async fn for_record(store: &dyn Store, operation: &Operation) -> Result<Operation, Error> {
    let mut operation = operation.clone();
    if let Operation::Renew { lease, .. } | Operation::Complete { lease, .. } = &mut operation
        && let Some(record) = store.look(&lease.key).await?
    {
        *lease = Lease {
            owner: record.owner,
            fence: record.fence,
            ..lease.clone()
        };
    }
    Ok(operation)
}
