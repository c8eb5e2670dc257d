//! An act filled in: the calls it stands for on either side, and how it is told.

use super::call::{Call, Told};
use super::lane::{Desk, Run};
use super::plan::{Asking, By, Failing, Forged, Kind, Policy, Spans, Verb};
use crate::Fingerprint;
use crate::conformance::answer::shown;
use crate::record::{
    Claim, Claimed, Fail, FailKind, Fence, Finding, InDoubt, Lease, Operation, Owner, Resolution,
};
use bytes::Bytes;

impl Verb {
    /// The call to the oracle and the call to the store.
    pub(super) fn calls(&self, desk: &Desk, number: usize) -> (Call, Call) {
        let result = Bytes::from(format!("result {number}"));
        let by = |by: &By, call: &dyn Fn(Lease) -> Call| {
            let run = by.run(desk);
            (call(run.oracle), call(run.store))
        };
        let held = |who: &By, operation: &dyn Fn(Lease) -> Operation| {
            by(who, &|lease| Call::Record(operation(lease)))
        };
        let both = |operation: Operation| {
            let call = Call::Record(operation);
            (call.clone(), call)
        };
        match self {
            Self::Look => both(Operation::Look),
            Self::Claim(asking) => both(Operation::Claim(asking.claim(desk))),
            Self::Renew(who, lease_for, retention) => held(who, &|lease| {
                Operation::Renew(lease, lease_for.exactly(), retention.exactly())
            }),
            Self::Complete(who, retention) => held(who, &|lease| {
                Operation::Complete(lease, result.clone(), retention.exactly())
            }),
            Self::Fail(who, failing) => held(who, &|lease| {
                Operation::Fail(lease, failing.fail(result.clone()))
            }),
            Self::Release(who) => held(who, &Operation::Release),
            Self::StepBegin(who, name) => by(who, &|lease| Call::StepBegin(lease, name)),
            Self::StepComplete(who, name) => by(who, &|lease| {
                Call::StepComplete(lease, name, result.clone())
            }),
            Self::StepRestart(who, name) => by(who, &|lease| Call::StepRestart(lease, name)),
            Self::ResolveSucceeded => both(Operation::Resolve(Resolution::new(
                Finding::Succeeded(result),
            ))),
            Self::ResolveFailed => {
                both(Operation::Resolve(Resolution::new(Finding::Failed(result))))
            }
            Self::ResolveRetry => both(Operation::Resolve(Resolution::new(Finding::Retry))),
            Self::ResolveRun(who) => held(who, &|lease| {
                let how = Resolution::new(Finding::Succeeded(result.clone()));
                Operation::Resolve(how.of_run(lease.fence))
            }),
            Self::Redrive => both(Operation::Redrive),
            Self::ReleaseByOperator => both(Operation::ReleaseByOperator),
            Self::Forget => both(Operation::Forget),
            Self::Sweep => (Call::Sweep, Call::Sweep),
        }
    }

    /// The act in words.
    pub(super) fn say(&self, desk: &Desk) -> String {
        match self {
            Self::Look => "look".into(),
            Self::Claim(asking) => asking.say(desk),
            Self::Renew(by, lease, retention) => {
                format!(
                    "renew by {} for {lease}, retention {retention}",
                    by.say(desk)
                )
            }
            Self::Complete(by, retention) => {
                format!("complete by {}, retention {retention}", by.say(desk))
            }
            Self::Fail(by, failing) => format!("fail by {}, {}", by.say(desk), failing.say()),
            Self::Release(by) => format!("release by {}", by.say(desk)),
            Self::StepBegin(by, name) => format!("begin step {name:?} by {}", by.say(desk)),
            Self::StepComplete(by, name) => format!("complete step {name:?} by {}", by.say(desk)),
            Self::StepRestart(by, name) => format!("restart step {name:?} by {}", by.say(desk)),
            Self::ResolveSucceeded => "resolve as succeeded".into(),
            Self::ResolveFailed => "resolve as failed".into(),
            Self::ResolveRetry => "resolve to run again".into(),
            Self::ResolveRun(by) => format!("resolve as succeeded, of {}", by.say(desk)),
            Self::Redrive => "redrive".into(),
            Self::ReleaseByOperator => "release by operator".into(),
            Self::Forget => "forget".into(),
            Self::Sweep => "sweep".into(),
        }
    }
}

// === impl Asking ===

impl Asking {
    fn claim(&self, desk: &Desk) -> Claim {
        let earlier = self.again.and_then(|back| desk.run(back));
        Claim {
            key: desk.key,
            fingerprint: if self.same_payload {
                Fingerprint::of(desk.key.as_bytes())
            } else {
                Fingerprint::of(b"another payload")
            },
            owner: earlier.map_or_else(Owner::random, |(_, run)| run.store.owner),
            lease: self.lease.exactly(),
            retention: self.retention().exactly(),
            in_doubt: self.policy.in_doubt,
            max_attempts: self.policy.max_attempts,
        }
    }

    const fn retention(&self) -> Spans {
        self.lease.plus(self.retention_beyond_lease)
    }

    fn say(&self, desk: &Desk) -> String {
        let who = match self.again.and_then(|back| desk.run(back)) {
            Some((number, _)) => format!("the owner of run {number}"),
            None => "a new owner".into(),
        };
        let payload = if self.same_payload {
            ""
        } else {
            " with another payload"
        };
        format!(
            "claim by {who}{payload}, lease {}, retention {}{}",
            self.lease,
            self.retention(),
            self.policy.say()
        )
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
            },
            in_doubt: self.policy.in_doubt,
            max_attempts: self.policy.max_attempts,
            retention: self.retention.exactly(),
            result,
        }
    }

    fn say(&self) -> String {
        let kind = match self.kind {
            Kind::Final => "for good".into(),
            Kind::Retryable => format!("to be tried again in {}", self.delay),
            Kind::InDoubt => format!("in doubt, delay {}", self.delay),
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
        };
        let max = self
            .max_attempts
            .map(|max| format!(", at most {max} attempts"));
        format!("{policy}{}", max.unwrap_or_default())
    }
}

// === impl By ===

impl By {
    fn run(&self, desk: &Desk) -> Run {
        let run = desk.run(self.back);
        let mut run = run.map_or_else(|| desk.nobody(), |(_, run)| run.clone());
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

    fn say(&self, desk: &Desk) -> String {
        let Some((number, _)) = desk.run(self.back) else {
            return "a run that never was".into();
        };
        match self.forged {
            Forged::No => format!("run {number}"),
            Forged::Owner => format!("another owner with the fence of run {number}"),
            Forged::Fence => format!("the owner of run {number} with another fence"),
        }
    }
}

// === impl Told ===

impl Told {
    /// What was told, in short.
    pub(super) fn say(&self) -> String {
        match self {
            Self::Claimed(Claimed::Granted(lease)) => format!(
                "granted, attempt {}, fence {}, born {}",
                lease.attempt, lease.fence, lease.born
            ),
            Self::Claimed(claimed) => shown(claimed),
            Self::Held(held) => shown(held),
            Self::Begun(begun) => shown(begun),
            Self::Acted(acted) => shown(acted),
            Self::Looked(None) => "absent".into(),
            Self::Looked(Some(record)) => format!("{}, attempts {}", record.state, record.attempts),
            Self::Swept => "swept".into(),
        }
    }
}
