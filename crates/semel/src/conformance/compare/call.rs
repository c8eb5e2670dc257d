//! One call, made to a store or decided by the oracle, and what was told.

use crate::clock::Time;
use crate::record::{
    self, Acted, Answer, Claimed, Fence, Held, Lease, Operation, Record, State, StepBegun,
    StepDecision, StepRecord,
};
use crate::{Error, Key, Store};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::time::Duration;

/// How close to the end of a lease or a retention nothing is tried. A case takes far less.
const EDGE: Duration = Duration::from_secs(120);

/// An act with its arguments filled in, for one side.
#[derive(Clone, Debug)]
pub(super) enum Call {
    Record(Operation),
    StepBegin(Lease, &'static str),
    StepComplete(Lease, &'static str, Bytes),
    StepRestart(Lease, &'static str),
    Sweep,
}

/// What one side told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Claimed(Claimed),
    Held(Held),
    Begun(StepBegun),
    Acted(Acted),
    Looked(Option<Record>),
    Swept,
}

/// What the oracle remembers of one key.
#[derive(Clone, Debug, Default)]
pub(super) struct Oracle {
    record: Option<Record>,
    written: Time,
    steps: BTreeMap<(Fence, &'static str), StepRecord>,
}

/// Makes the call to a store.
pub(super) async fn ask(store: &dyn Store, key: &Key, call: &Call) -> Result<Told, Error> {
    let operation = match call {
        Call::Record(operation) => operation,
        Call::StepBegin(lease, name) => {
            return store.step_begin(lease, name).await.map(Told::Begun);
        }
        Call::StepComplete(lease, name, result) => {
            return store
                .step_complete(lease, name, result)
                .await
                .map(Told::Held);
        }
        Call::StepRestart(lease, name) => {
            return store.step_restart(lease, name).await.map(Told::Held);
        }
        Call::Sweep => return sweep(store).await.map(|()| Told::Swept),
    };
    match operation {
        Operation::Claim(claim) => store.claim(claim).await.map(Told::Claimed),
        Operation::Renew(lease, lease_for, retention) => {
            let renewed = store.renew(lease, *lease_for, *retention);
            renewed.await.map(Told::Held)
        }
        Operation::Complete(lease, result, retention) => {
            let completed = store.complete(lease, result, *retention);
            completed.await.map(Told::Held)
        }
        Operation::Fail(lease, how) => store.fail(lease, how).await.map(Told::Held),
        Operation::Release(lease) => store.release(lease).await.map(Told::Held),
        Operation::Look => store.look(key).await.map(Told::Looked),
        Operation::Resolve(how) => store.resolve(key, how).await.map(Told::Acted),
        Operation::Redrive => store.redrive(key).await.map(Told::Acted),
        Operation::ReleaseByOperator => store.release_by_operator(key).await.map(Told::Acted),
        Operation::Forget => store.forget(key).await.map(Told::Acted),
    }
}

async fn sweep(store: &dyn Store) -> Result<(), Error> {
    let mut after = store.sweep(None).await?.next;
    while let Some(next) = &after {
        after = store.sweep(Some(next)).await?.next;
    }
    Ok(())
}

// === impl Oracle ===

impl Oracle {
    /// Whether a lease or a retention ends so close to now that the time the calls take could
    /// change an answer. What ended in the very moment it was written has ended on both sides.
    pub(super) fn is_on_an_edge(&self, now: Time) -> bool {
        let close =
            |edge: Time| edge != self.written && edge.since(now).max(now.since(edge)) < EDGE;
        self.record
            .as_ref()
            .is_some_and(|record| match record.state {
                State::Running | State::Waiting => {
                    close(record.lease_until) || close(record.expires_at)
                }
                State::Succeeded | State::Failed => close(record.expires_at),
                State::Parked => false,
            })
    }

    /// What may be told, and what is remembered after it. An expired record may or may not have
    /// been swept, so there may be two ways.
    pub(super) fn ways(&self, call: &Call, now: Time) -> Vec<(Told, Self)> {
        let mut ways = vec![self.clone().decide(call, now)];
        if self.record.as_ref().is_some_and(|old| old.expired(now)) {
            ways.push(Self::default().decide(call, now));
        }
        ways
    }

    fn decide(mut self, call: &Call, now: Time) -> (Told, Self) {
        let told = match call {
            Call::Record(operation) => self.operate(operation, now),
            Call::StepBegin(lease, name) => Told::Begun(self.step(lease, name, |record, step| {
                record::step_begin(record, step, lease, now)
            })),
            Call::StepComplete(lease, name, result) => {
                Told::Held(self.step(lease, name, |record, step| {
                    record::step_complete(record, step, lease, result, now)
                }))
            }
            Call::StepRestart(lease, name) => Told::Held(self.step(lease, name, |record, step| {
                record::step_restart(record, step, lease, now)
            })),
            Call::Sweep => Told::Swept,
        };
        (told, self)
    }

    fn operate(&mut self, operation: &Operation, now: Time) -> Told {
        let decision = record::decide(self.record.as_ref(), operation, now);
        if let Some(ended) = decision.ended {
            self.steps.retain(|(born, _), _| *born != ended);
        }
        if let Some(record) = decision.write {
            self.record = Some(record);
            self.written = now;
        }
        match decision.answer {
            Answer::Claimed(claimed) => Told::Claimed(claimed),
            Answer::Held(held) => Told::Held(held),
            Answer::Looked(record) => Told::Looked(record),
            Answer::Acted(acted) => Told::Acted(acted),
        }
    }

    fn step<A>(
        &mut self,
        lease: &Lease,
        name: &'static str,
        decide: impl FnOnce(Option<&Record>, Option<&StepRecord>) -> StepDecision<A>,
    ) -> A {
        let at = (lease.born, name);
        let decision = decide(self.record.as_ref(), self.steps.get(&at));
        if let Some(step) = decision.write {
            self.steps.insert(at, step);
        }
        decision.answer
    }
}
