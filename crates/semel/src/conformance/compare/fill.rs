//! An act filled in: the calls it stands for on either side, and how it is told.

use super::case::{KeyState, RunPair};
use super::plan::{Asking, By, Failing, Forged, Kind, MaxInDoubt, Policy, Spans, Verb};
use crate::Fingerprint;
use crate::conformance::answer::shown;
use crate::record::{
    Answer, Claim, Claimed, DoubtLimit, Fail, FailKind, Fence, Finding, InDoubt, Lease, Operation,
    Owner, Resolution,
};
use bytes::Bytes;
use std::time::Duration;

impl Verb {
    /// The operation for the oracle and the one for the store; none when the act is a sweep.
    pub(super) fn operations(
        &self,
        state: &KeyState,
        number: usize,
    ) -> Option<(Operation, Operation)> {
        let key = state.key;
        let result = Bytes::from(format!("result {number}"));
        let by = |who: &By, operation: &dyn Fn(Lease) -> Operation| {
            let run = who.run(state);
            (operation(run.oracle), operation(run.store))
        };
        let words = Bytes::from(format!("act {number}"));
        let both = |operation: Operation| (operation.clone(), operation);
        let resolve = |finding| {
            let how = Resolution::new(finding);
            let by = words.clone();
            both(Operation::Resolve { key, how, by })
        };
        Some(match self {
            Self::Look => both(Operation::Look(key)),
            Self::Claim(asking) => both(Operation::Claim(asking.claim(state, number))),
            Self::Renew(who, lease_for, retention) => by(who, &|lease| Operation::Renew {
                lease,
                lease_for: lease_for.exactly(),
                retention: retention.exactly(),
            }),
            Self::Complete(who, retention) => by(who, &|lease| Operation::Complete {
                lease,
                result: result.clone(),
                retention: retention.exactly(),
            }),
            Self::Fail(who, failing) => by(who, &|lease| Operation::Fail {
                lease,
                how: failing.fail(result.clone()),
            }),
            Self::Release(who, park_after) => by(who, &|lease| Operation::Release {
                lease,
                park_after: *park_after,
            }),
            Self::StepBegin(who, name) => by(who, &|lease| Operation::StepBegin {
                lease,
                name: (*name).into(),
            }),
            Self::StepComplete(who, name) => by(who, &|lease| Operation::StepComplete {
                lease,
                name: (*name).into(),
                result: result.clone(),
            }),
            Self::StepRestart(who, name) => by(who, &|lease| Operation::StepRestart {
                lease,
                name: (*name).into(),
            }),
            Self::ResolveSucceeded => resolve(Finding::Succeeded(result)),
            Self::ResolveFailed => resolve(Finding::Failed(result)),
            Self::ResolveRetry => resolve(Finding::Retry),
            Self::ResolveRun(who) => by(who, &|lease| {
                let how = Resolution::new(Finding::Succeeded(result.clone())).of_run(lease.fence);
                let by = words.clone();
                Operation::Resolve { key, how, by }
            }),
            Self::Redrive => both(Operation::Redrive {
                key,
                by: words.clone(),
            }),
            Self::Retain(retention) => both(Operation::Retain {
                key,
                retention: retention.exactly(),
            }),
            Self::ReleaseByOperator => both(Operation::ReleaseByOperator {
                key,
                by: words.clone(),
            }),
            Self::Forget => both(Operation::Forget(key)),
            Self::Sweep => return None,
        })
    }

    /// Whether it is an operator's act, or a keeper's.
    pub(super) const fn is_operators(&self) -> bool {
        matches!(
            self,
            Self::ResolveSucceeded
                | Self::ResolveFailed
                | Self::ResolveRetry
                | Self::ResolveRun(_)
                | Self::Redrive
                | Self::Retain(_)
                | Self::ReleaseByOperator
                | Self::Forget
        )
    }

    /// Whether it changes what steps there are.
    pub(super) const fn is_of_steps(&self) -> bool {
        matches!(
            self,
            Self::StepBegin(..) | Self::StepComplete(..) | Self::StepRestart(..) | Self::Forget
        )
    }

    /// The act in words.
    pub(super) fn say(&self, state: &KeyState) -> String {
        match self {
            Self::Look => "look".into(),
            Self::Claim(asking) => asking.say(state),
            Self::Renew(by, lease, retention) => {
                format!(
                    "renew by {} for {lease}, retention {retention}",
                    by.say(state)
                )
            }
            Self::Complete(by, retention) => {
                format!("complete by {}, retention {retention}", by.say(state))
            }
            Self::Fail(by, failing) => format!("fail by {}, {}", by.say(state), failing.say()),
            Self::Release(by, age) => format!("release by {}{}", by.say(state), say_age(*age)),
            Self::StepBegin(by, name) => format!("begin step {name:?} by {}", by.say(state)),
            Self::StepComplete(by, name) => format!("complete step {name:?} by {}", by.say(state)),
            Self::StepRestart(by, name) => format!("restart step {name:?} by {}", by.say(state)),
            Self::ResolveSucceeded => "resolve as succeeded".into(),
            Self::ResolveFailed => "resolve as failed".into(),
            Self::ResolveRetry => "resolve to run again".into(),
            Self::ResolveRun(by) => format!("resolve as succeeded, of {}", by.say(state)),
            Self::Redrive => "redrive".into(),
            Self::Retain(retention) => format!("retain for {retention}"),
            Self::ReleaseByOperator => "release by operator".into(),
            Self::Forget => "forget".into(),
            Self::Sweep => "sweep".into(),
        }
    }
}

// === impl Asking ===

impl Asking {
    fn claim(&self, state: &KeyState, number: usize) -> Claim {
        let earlier = self.again.and_then(|back| state.run(back));
        Claim {
            key: state.key,
            fingerprint: if self.same_payload {
                Fingerprint::of(state.key.as_bytes())
            } else {
                Fingerprint::of(b"another payload")
            },
            owner: earlier.map_or_else(Owner::random, |(_, run)| run.store.owner),
            lease: self.lease.exactly(),
            retention: self.retention().exactly(),
            in_doubt: self.policy.in_doubt,
            max_attempts: self.policy.max_attempts,
            max_in_doubt: self.policy.max_in_doubt.map(MaxInDoubt::limit),
            park_after: self.policy.park_after,
            acts_for: self.acts_for.map(Spans::exactly),
            label: label(number),
            by: Bytes::from(format!("claim {number}")),
        }
    }

    const fn retention(&self) -> Spans {
        self.lease.plus(self.retention_beyond_lease)
    }

    fn say(&self, state: &KeyState) -> String {
        let who = match self.again.and_then(|back| state.run(back)) {
            Some((number, _)) => format!("the owner of run {number}"),
            None => "a new owner".into(),
        };
        let payload = if self.same_payload {
            ""
        } else {
            " with another payload"
        };
        format!(
            "claim by {who}{payload}, lease {}, retention {}{}{}",
            self.lease,
            self.retention(),
            self.acts_for
                .map(|acts| format!(", acts for {acts}"))
                .unwrap_or_default(),
            self.policy.say()
        )
    }
}

/// Every other act has a label of its own.
fn label(number: usize) -> Bytes {
    if number.is_multiple_of(2) {
        Bytes::from(format!("label {number}"))
    } else {
        Bytes::new()
    }
}

// === impl Failing ===

impl Failing {
    fn fail(&self, result: Bytes) -> Fail {
        let delay = self.delay.exactly();
        Fail {
            kind: match self.kind {
                Kind::Final => FailKind::Final,
                Kind::Retryable => FailKind::Retryable { delay },
                Kind::InDoubt => FailKind::InDoubt { delay },
                Kind::StillInDoubt => FailKind::StillInDoubt { delay },
            },
            in_doubt: self.policy.in_doubt,
            max_attempts: self.policy.max_attempts,
            max_in_doubt: self.policy.max_in_doubt.map(MaxInDoubt::limit),
            park_after: self.policy.park_after,
            retention: self.retention.exactly(),
            result,
        }
    }

    fn say(&self) -> String {
        let kind = match self.kind {
            Kind::Final => "for good".into(),
            Kind::Retryable => format!("to be tried again in {}", self.delay),
            Kind::InDoubt => format!("in doubt, delay {}", self.delay),
            Kind::StillInDoubt => format!("still in doubt, delay {}", self.delay),
        };
        format!("{kind}, retention {}{}", self.retention, self.policy.say())
    }
}

// === impl Policy ===

impl Policy {
    fn say(&self) -> String {
        let policy = match self.in_doubt {
            InDoubt::Retry => "",
            InDoubt::Park => ", park",
            InDoubt::Probe => ", probe",
        };
        let attempts = self.max_attempts;
        let attempts = attempts.map(|max| format!(", at most {max} attempts"));
        let doubts = self.max_in_doubt;
        let doubts =
            doubts.map(|MaxInDoubt { runs, age }| format!(", at most {runs} in doubt for {age}"));
        let limits = [attempts, doubts].map(Option::unwrap_or_default);
        format!("{policy}{}{}", limits.concat(), say_age(self.park_after))
    }
}

fn say_age(park_after: Option<Duration>) -> String {
    let hours = |age: Duration| format!(", parked after {} h", age.as_secs() / 3_600);
    park_after.map(hours).unwrap_or_default()
}

// === impl MaxInDoubt ===

impl MaxInDoubt {
    fn limit(self) -> DoubtLimit {
        DoubtLimit {
            runs: self.runs,
            age: self.age.exactly(),
        }
    }
}

// === impl By ===

impl By {
    fn run(&self, state: &KeyState) -> RunPair {
        let run = state.run(self.back);
        let mut run = run.map_or_else(|| state.nobody(), |(_, run)| run.clone());
        match self.forged {
            Forged::No => {}
            Forged::Owner => {
                let owner = Owner::random();
                (run.oracle.owner, run.store.owner) = (owner, owner);
            }
            // A lower one: the one above may be given out later.
            Forged::Fence => {
                run.oracle.fence = Fence(run.oracle.fence.0 - 1);
                run.store.fence = Fence(run.store.fence.0 - 1);
            }
        }
        run
    }

    fn say(&self, state: &KeyState) -> String {
        let Some((number, _)) = state.run(self.back) else {
            return "a run that never was".into();
        };
        match self.forged {
            Forged::No => format!("run {number}"),
            Forged::Owner => format!("another owner with the fence of run {number}"),
            Forged::Fence => format!("the owner of run {number} with another fence"),
        }
    }
}

/// An answer, in short.
pub(super) fn say(answer: &Answer) -> String {
    match answer {
        Answer::Claimed(Claimed::Granted(lease)) => format!(
            "granted, attempt {}{}, fence {}, born {}",
            lease.attempt,
            if lease.in_doubt { " after doubt" } else { "" },
            lease.fence,
            lease.born
        ),
        Answer::Claimed(claimed) => shown(claimed),
        Answer::Held(held) => shown(held),
        Answer::StepBegun(begun) => shown(begun),
        Answer::Acted(acted) => shown(acted),
        Answer::Looked(None) => "absent".into(),
        Answer::Looked(Some(record)) => {
            let (state, attempts, doubts) = (record.state, record.attempts, record.doubts);
            let superseded = record.history.len();
            format!("{state}, attempts {attempts}, doubts {doubts}, superseded {superseded}")
        }
        Answer::Steps(steps) => shown(steps),
        Answer::Indexed => "indexed".into(),
        Answer::Found(keys) => shown(keys),
        Answer::Ready => "ready".into(),
    }
}
