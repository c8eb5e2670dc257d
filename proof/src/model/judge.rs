//! The judge: sees every operation with its answer and what was written, and knows only the rules.

use super::past::Past;
use super::request;
use super::rule::Rule;
use super::time::RETENTION;
use semel::clock::Time;
use semel::protocol::{Answer, Decision, Held, Lease, Operation, Record, State, StepBegun};

/// One operation as the judge sees it.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The record before.
    pub before: Option<&'a Record>,
    /// What was asked.
    pub operation: &'a Operation,
    /// The store's reading of its clock.
    pub now: Time,
    /// What was written and answered.
    pub decision: &'a Decision<Answer>,
}

/// Whether one operation keeps a rule, given what came before.
type Keeps = fn(&Past, &Seen<'_>) -> bool;

/// The rules that can be judged by one operation; the others are in [`standing`](super::standing).
const RULES: [(Rule, Keeps); 8] = [
    (Rule::OneLiveLease, one_live_lease),
    (Rule::FencesRise, fences_rise),
    (Rule::StaleChangesNothing, stale_changes_nothing),
    (Rule::OneCompletion, one_completion),
    (Rule::ParkedStays, parked_stays),
    (Rule::RetentionOutlivesLease, retention_outlives_lease),
    (Rule::AttemptsBounded, attempts_bounded),
    (Rule::StepsRemembered, steps_remembered),
];

fn one_live_lease(past: &Past, seen: &Seen<'_>) -> bool {
    let Some(lease) = seen.granted() else {
        return true;
    };
    let live = past.lease_end.is_some_and(|end| end > seen.now);
    match seen.written() {
        Some(record) => !live && record.is_of(lease),
        // Granted again: the answer to the same claim was lost.
        None => live && past.holds(lease),
    }
}

fn fences_rise(past: &Past, seen: &Seen<'_>) -> bool {
    let fence = seen.written().map(|record| record.fence);
    match seen.granted() {
        Some(_) => fence.is_none() || fence > past.highest,
        None => fence.is_none() || fence >= past.highest,
    }
}

fn stale_changes_nothing(past: &Past, seen: &Seen<'_>) -> bool {
    let (Some(lease), Answer::Held(held)) = (seen.speaker(), &seen.decision.answer) else {
        return true;
    };
    let landed = past.present().end.as_ref().map(|end| end.fence) == Some(lease.fence);
    let told_the_truth = match held {
        Held::Stale => !past.holds(lease),
        Held::Parked => past.holds(lease),
        Held::Already(State::Succeeded | State::Failed) | Held::Settled(_) => landed,
        Held::Applied(_) | Held::Already(_) => true,
    };
    told_the_truth && (seen.written().is_none() || past.holds(lease))
}

fn one_completion(past: &Past, seen: &Seen<'_>) -> bool {
    let (Some(before), Some(after)) = (seen.before, seen.written()) else {
        return true;
    };
    let leaves_its_end = match seen.operation {
        Operation::Forget(_) => true,
        Operation::Redrive(_) => before.state == State::Failed,
        Operation::Claim(_) => before.expired(seen.now),
        Operation::Renew { .. }
        | Operation::Complete { .. }
        | Operation::Fail { .. }
        | Operation::Release(_)
        | Operation::Look(_)
        | Operation::Resolve { .. }
        | Operation::ReleaseByOperator(_)
        | Operation::StepBegin { .. }
        | Operation::StepRestart { .. }
        | Operation::StepComplete { .. }
        | Operation::Ready => false,
    };
    let second = after.state.ending().is_some() && past.present().end.is_some();
    !second && (before.state.ending().is_none() || leaves_its_end)
}

fn parked_stays(_: &Past, seen: &Seen<'_>) -> bool {
    let parked = seen.before.is_some_and(|old| old.state == State::Parked);
    match seen.operation {
        Operation::Claim(_) | Operation::Renew { .. } | Operation::Look(_) => {
            !parked || seen.written().is_none()
        }
        // The run's own late word, and an operator's acts.
        Operation::Complete { .. }
        | Operation::Fail { .. }
        | Operation::Release(_)
        | Operation::Resolve { .. }
        | Operation::Redrive(_)
        | Operation::ReleaseByOperator(_)
        | Operation::Forget(_)
        | Operation::StepBegin { .. }
        | Operation::StepRestart { .. }
        | Operation::StepComplete { .. }
        | Operation::Ready => true,
    }
}

fn retention_outlives_lease(_: &Past, seen: &Seen<'_>) -> bool {
    let Some(after) = seen.written() else {
        return true;
    };
    if matches!(seen.operation, Operation::Forget(_)) {
        return true;
    }
    let went_back = seen
        .before
        .is_some_and(|old| after.expires_at < old.expires_at);
    after.expires_at >= after.lease_until.plus(RETENTION)
        && (seen.is_new_incarnation() || !went_back)
}

fn attempts_bounded(past: &Past, seen: &Seen<'_>) -> bool {
    let (Some(lease), Operation::Claim(claim)) = (seen.granted(), seen.operation) else {
        return true;
    };
    let acts = if seen.is_new_incarnation() {
        0
    } else {
        past.present().acts
    };
    claim
        .max_attempts
        .is_none_or(|max| lease.attempt <= max.get() + u32::from(acts))
}

/// Only an incarnation that is over may be said to have ended: its steps are removed.
fn steps_remembered(_: &Past, seen: &Seen<'_>) -> bool {
    let goes_on = match (seen.operation, seen.written()) {
        (Operation::Forget(_), _) | (_, None) => None,
        (_, Some(after)) => Some(after.born),
    };
    seen.decision.ended.is_none_or(|born| Some(born) != goes_on)
}

// === impl Past ===

impl Past {
    /// Judges one operation, then remembers it.
    pub fn judge(&mut self, seen: &Seen<'_>) -> Vec<Rule> {
        let broken = RULES.iter().filter(|(_, keeps)| !keeps(self, seen));
        let broken = broken.map(|(rule, _)| *rule).collect();
        self.remember(seen);
        broken
    }

    /// Judges the answer to beginning or restarting a step in this incarnation.
    #[must_use]
    pub fn judge_step_begin(
        &self,
        lease: &Lease,
        incarnation: u8,
        begun: &StepBegun,
    ) -> Option<Rule> {
        let done = self
            .incarnations
            .get(&incarnation)
            .and_then(|incarnation| incarnation.step.as_ref());
        let remembered = match begun {
            StepBegun::Memo { result, .. } => done == Some(result),
            StepBegun::Run | StepBegun::InDoubt(_) => done.is_none(),
            StepBegun::Settled(_) | StepBegun::Parked | StepBegun::Stale => true,
        };
        if *begun == StepBegun::Stale && self.holds(lease) {
            return Some(Rule::StaleChangesNothing);
        }
        (!remembered).then_some(Rule::StepsRemembered)
    }

    /// Judges that a step was written by `lease`.
    #[must_use]
    pub fn judge_step_write(&self, lease: &Lease) -> Option<Rule> {
        (!self.holds(lease)).then_some(Rule::StaleChangesNothing)
    }

    /// Judges the removal of a record.
    pub fn judge_sweep(&mut self, record: &Record, now: Time) -> Option<Rule> {
        self.holder = None;
        if record.state == State::Parked {
            Some(Rule::ParkedStays)
        } else if !record.expired(now) {
            Some(Rule::RetentionOutlivesLease)
        } else {
            None
        }
    }
}

// === impl Seen ===

impl<'a> Seen<'a> {
    /// The record that was written.
    pub(super) const fn written(&self) -> Option<&'a Record> {
        self.decision.write.as_ref()
    }

    /// The lease that was granted.
    pub(super) const fn granted(&self) -> Option<&'a Lease> {
        request::granted(self.decision)
    }

    /// Whether it is a grant that found the key absent or expired.
    pub(super) fn is_new_incarnation(&self) -> bool {
        self.granted().is_some() && self.before.is_none_or(|old| old.expired(self.now))
    }

    /// The run that speaks of itself, if it is one; about a step it is judged by itself.
    fn speaker(&self) -> Option<&'a Lease> {
        match self.operation.step() {
            None => self.operation.lease(),
            Some(_) => None,
        }
    }
}
