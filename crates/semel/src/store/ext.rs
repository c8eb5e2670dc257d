//! A typed method for each operation, for callers.

use super::{Error, Store};
use crate::Key;
use crate::record::{
    Acted, Claim, Claimed, Fail, Held, Lease, Operation, Record, Resolution, StepBegun, StepRecord,
};
use bytes::Bytes;
use std::time::Duration;

/// Every operation of a [`Store`] as a method, with the answer that belongs to it.
///
/// Every store has these methods, `dyn Store` too. A store implements none of them.
///
/// # Errors
/// Those of [`Store::apply`]; `Bug` when the store gave an answer of another kind.
pub trait StoreExt: Store {
    /// Asks to run.
    fn claim(&self, claim: &Claim) -> impl Future<Output = Result<Claimed, Error>> + Send {
        let operation = Operation::Claim(claim.clone());
        async move { self.apply(&operation).await?.claimed() }
    }

    /// Prolongs a lease by `lease_for` from now.
    fn renew(
        &self,
        lease: &Lease,
        lease_for: Duration,
        retention: Duration,
    ) -> impl Future<Output = Result<Held, Error>> + Send {
        let operation = Operation::Renew {
            lease: lease.clone(),
            lease_for,
            retention,
        };
        async move { self.apply(&operation).await?.held() }
    }

    /// Records success. `result` is an encoded [`Outcome`](crate::Outcome).
    fn complete(
        &self,
        lease: &Lease,
        result: &Bytes,
        retention: Duration,
    ) -> impl Future<Output = Result<Held, Error>> + Send {
        let operation = Operation::Complete {
            lease: lease.clone(),
            result: result.clone(),
            retention,
        };
        async move { self.apply(&operation).await?.held() }
    }

    /// Records a failure.
    fn fail(&self, lease: &Lease, how: &Fail) -> impl Future<Output = Result<Held, Error>> + Send {
        let operation = Operation::Fail {
            lease: lease.clone(),
            how: how.clone(),
        };
        async move { self.apply(&operation).await?.held() }
    }

    /// Gives the right to run back; only when nothing of the effect was begun.
    fn release(&self, lease: &Lease) -> impl Future<Output = Result<Held, Error>> + Send {
        let operation = Operation::Release {
            lease: lease.clone(),
            park_after: None,
        };
        async move { self.apply(&operation).await?.held() }
    }

    /// Reads a record; `None` when it is absent or expired.
    fn look(&self, key: &Key) -> impl Future<Output = Result<Option<Record>, Error>> + Send {
        let operation = Operation::Look(*key);
        async move { self.apply(&operation).await?.looked() }
    }

    /// Begins a step.
    fn step_begin(
        &self,
        lease: &Lease,
        name: &str,
    ) -> impl Future<Output = Result<StepBegun, Error>> + Send {
        let operation = Operation::StepBegin {
            lease: lease.clone(),
            name: name.to_owned(),
        };
        async move { self.apply(&operation).await?.step_begun() }
    }

    /// Begins a step again that was in doubt.
    fn step_restart(
        &self,
        lease: &Lease,
        name: &str,
    ) -> impl Future<Output = Result<Held, Error>> + Send {
        let operation = Operation::StepRestart {
            lease: lease.clone(),
            name: name.to_owned(),
        };
        async move { self.apply(&operation).await?.held() }
    }

    /// Records the result of a step that this run began.
    fn step_complete(
        &self,
        lease: &Lease,
        name: &str,
        result: &Bytes,
    ) -> impl Future<Output = Result<Held, Error>> + Send {
        let operation = Operation::StepComplete {
            lease: lease.clone(),
            name: name.to_owned(),
            result: result.clone(),
        };
        async move { self.apply(&operation).await?.held() }
    }

    /// An operator says what became of a parked run, or of the lapsed run that the resolution names.
    fn resolve(
        &self,
        key: &Key,
        how: &Resolution,
        by: impl Into<Bytes>,
    ) -> impl Future<Output = Result<Acted, Error>> + Send {
        let operation = Operation::Resolve {
            key: *key,
            how: how.clone(),
            by: by.into(),
        };
        async move { self.apply(&operation).await?.acted() }
    }

    /// An operator makes a parked or failed record claimable again.
    fn redrive(
        &self,
        key: &Key,
        by: impl Into<Bytes>,
    ) -> impl Future<Output = Result<Acted, Error>> + Send {
        let operation = Operation::Redrive {
            key: *key,
            by: by.into(),
        };
        async move { self.apply(&operation).await?.acted() }
    }

    /// Prolongs the retention of a record that has not succeeded, because an open letter refers to it.
    fn retain(
        &self,
        key: &Key,
        retention: Duration,
    ) -> impl Future<Output = Result<Acted, Error>> + Send {
        let operation = Operation::Retain {
            key: *key,
            retention,
        };
        async move { self.apply(&operation).await?.acted() }
    }

    /// An operator takes the right to run from whoever has it.
    fn release_by_operator(
        &self,
        key: &Key,
        by: impl Into<Bytes>,
    ) -> impl Future<Output = Result<Acted, Error>> + Send {
        let operation = Operation::ReleaseByOperator {
            key: *key,
            by: by.into(),
        };
        async move { self.apply(&operation).await?.acted() }
    }

    /// An operator ends the incarnation: result, label, history, steps and what the index has of the key go at once.
    fn forget(&self, key: &Key) -> impl Future<Output = Result<Acted, Error>> + Send {
        let operation = Operation::Forget(*key);
        async move { self.apply(&operation).await?.acted() }
    }

    /// Shows the steps of the current incarnation, by name: the first so many, with how their results begin.
    fn steps(
        &self,
        key: &Key,
    ) -> impl Future<Output = Result<Vec<(String, StepRecord)>, Error>> + Send {
        let operation = Operation::Steps(*key);
        async move { self.apply(&operation).await?.steps() }
    }

    /// Keeps transport ids under which the key can be found, for so long.
    fn index(
        &self,
        key: &Key,
        ids: Vec<Bytes>,
        keep: Duration,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        let key = *key;
        let operation = Operation::Index { key, ids, keep };
        async move { self.apply(&operation).await?.indexed() }
    }

    /// Finds keys by a transport id that was indexed.
    fn find(&self, id: impl Into<Bytes>) -> impl Future<Output = Result<Vec<Key>, Error>> + Send {
        let operation = Operation::Find(id.into());
        async move { self.apply(&operation).await?.found() }
    }

    /// Whether a claim could be granted and its end recorded now.
    fn ready(&self) -> impl Future<Output = Result<(), Error>> + Send {
        let operation = Operation::Ready;
        async move { self.apply(&operation).await?.ready() }
    }
}

impl<S: Store + ?Sized> StoreExt for S {}
