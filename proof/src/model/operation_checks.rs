//! The checker: sees every operation with its answer and what was written, and knows only the rules.

use super::canonical::RETENTION;
use super::ghost::{Ghost, Incarnation};
use super::invariant::Invariant;
use super::request;
use semel::clock::Time;
use semel::protocol::{
    Answer, Claim, Decision, DoubtLimit, Fail, FailKind, Held, Lease, Operation, Record, State,
    StepBegun,
};

/// One operation as the checker sees it.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
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
type OperationCheck = fn(&Ghost, &Observed<'_>) -> bool;

/// The rules that can be checked by one operation; the others are in [`state_checks`](super::state_checks).
const RULES: [(Invariant, OperationCheck); 11] = [
    (Invariant::OneLiveLease, one_live_lease),
    (Invariant::FencesRise, fences_rise),
    (Invariant::StaleChangesNothing, stale_changes_nothing),
    (Invariant::OneCompletion, one_completion),
    (Invariant::ParkedStays, parked_stays),
    (Invariant::RetentionOutlivesLease, retention_outlives_lease),
    (Invariant::AttemptsBounded, attempts_bounded),
    (Invariant::DoubtsBounded, doubts_bounded),
    (Invariant::ReleaseParksOld, release_parks_old),
    (Invariant::KeeperRetains, keeper_retains),
    (Invariant::StepsRemembered, steps_remembered),
];

fn one_live_lease(ghost: &Ghost, observed: &Observed<'_>) -> bool {
    let Some(lease) = observed.granted() else {
        return true;
    };
    let live = ghost.lease_end.is_some_and(|end| end > observed.now);
    match observed.written() {
        Some(record) => !live && record.is_of(lease),
        // Granted again: the answer to the same claim was lost.
        None => live && ghost.holds(lease),
    }
}

fn fences_rise(ghost: &Ghost, observed: &Observed<'_>) -> bool {
    let fence = observed.written().map(|record| record.fence);
    match observed.granted() {
        Some(_) => fence.is_none() || fence > ghost.highest,
        None => fence.is_none() || fence >= ghost.highest,
    }
}

fn stale_changes_nothing(ghost: &Ghost, observed: &Observed<'_>) -> bool {
    let (Some(lease), Answer::Held(held)) = (observed.speaker(), &observed.decision.answer) else {
        return true;
    };
    let landed = ghost.present().end.as_ref().map(|end| end.fence) == Some(lease.fence);
    let told_the_truth = match held {
        Held::Stale => !ghost.holds(lease),
        Held::Parked => ghost.holds(lease),
        Held::Already(State::Succeeded | State::Failed) | Held::Settled(_) => landed,
        Held::Applied(_) | Held::Already(_) => true,
    };
    told_the_truth && (observed.written().is_none() || ghost.holds(lease))
}

fn one_completion(ghost: &Ghost, observed: &Observed<'_>) -> bool {
    let (Some(before), Some(after)) = (observed.before, observed.written()) else {
        return true;
    };
    if let Operation::Retain { .. } = observed.operation {
        return (after.state, &after.result) == (before.state, &before.result);
    }
    let leaves_its_end = matches!(observed.operation, Operation::Forget(_))
        || matches!(observed.operation, Operation::Redrive { .. }) && before.state == State::Failed
        || matches!(observed.operation, Operation::Claim(_)) && before.expired(observed.now);
    let second = after.state.ending().is_some() && ghost.present().end.is_some();
    !second && (before.state.ending().is_none() || leaves_its_end)
}

fn parked_stays(_: &Ghost, observed: &Observed<'_>) -> bool {
    let parked = observed
        .before
        .is_some_and(|old| old.state == State::Parked);
    // The run's own late word, and an operator's acts, may change it.
    let may_not = matches!(
        observed.operation,
        Operation::Claim(_)
            | Operation::Renew { .. }
            | Operation::Look(_)
            | Operation::Retain { .. }
    );
    !(parked && may_not) || observed.written().is_none()
}

fn retention_outlives_lease(_: &Ghost, observed: &Observed<'_>) -> bool {
    let Some(after) = observed.written() else {
        return true;
    };
    if matches!(observed.operation, Operation::Forget(_)) {
        return true;
    }
    let went_back = observed
        .before
        .is_some_and(|old| after.expires_at < old.expires_at);
    after.expires_at >= after.lease_until.plus(RETENTION)
        && (observed.is_new_incarnation() || !went_back)
}

fn attempts_bounded(ghost: &Ghost, observed: &Observed<'_>) -> bool {
    let (Some(lease), Operation::Claim(claim)) = (observed.granted(), observed.operation) else {
        return true;
    };
    let acts = if observed.is_new_incarnation() {
        0
    } else {
        ghost.present().acts
    };
    claim
        .max_attempts
        .is_none_or(|max| lease.attempt <= max.get() + u32::from(acts))
}

fn doubts_bounded(ghost: &Ghost, observed: &Observed<'_>) -> bool {
    let Some(after) = observed.written() else {
        return true;
    };
    let new = Incarnation::default();
    let incarnation = if observed.is_new_incarnation() {
        &new
    } else {
        ghost.present()
    };
    let ends_in_doubt = observed.ends_in_doubt();
    let doubts = u32::from(incarnation.doubts) + u32::from(ends_in_doubt);
    let first = incarnation
        .doubted_at
        .or(ends_in_doubt.then_some(observed.now));
    let counted = (after.doubts, after.doubted_at) == (doubts, first);
    let reached = |max: DoubtLimit| {
        let is_old = first.is_some_and(|first| first.plus(max.age) <= observed.now);
        is_old && doubts >= max.runs.get()
    };
    let parks_at_limit = |max| observed.parks() == (ends_in_doubt && reached(max));
    counted && observed.doubt_limit().is_none_or(parks_at_limit)
}

fn release_parks_old(_: &Ghost, observed: &Observed<'_>) -> bool {
    let (Operation::Release { park_after, .. }, Some(before), Some(after)) =
        (observed.operation, observed.before, observed.written())
    else {
        return true;
    };
    let age = observed.now.since(Time(before.born.0));
    let is_old = park_after.is_some_and(|after| age >= after);
    (after.state == State::Parked) == is_old
}

fn keeper_retains(_: &Ghost, observed: &Observed<'_>) -> bool {
    let Operation::Retain { retention, .. } = observed.operation else {
        return true;
    };
    let unfinished = observed.before.filter(|old| {
        let is_unfinished = matches!(old.state, State::Running | State::Waiting | State::Failed);
        is_unfinished && !old.expired(observed.now)
    });
    let retained = unfinished.map(|old| Record {
        expires_at: old.expires_at.max(observed.now.plus(*retention)),
        ..old.clone()
    });
    observed.written() == retained.as_ref()
}

/// Only an incarnation that is over may be said to have ended: its steps are removed.
fn steps_remembered(_: &Ghost, observed: &Observed<'_>) -> bool {
    let goes_on = match (observed.operation, observed.written()) {
        (Operation::Forget(_), _) | (_, None) => None,
        (_, Some(after)) => Some(after.born),
    };
    observed
        .decision
        .ended
        .is_none_or(|born| Some(born) != goes_on)
}

// === impl Ghost ===

impl Ghost {
    /// Checks one operation, then remembers it.
    pub fn check(&mut self, observed: &Observed<'_>) -> Vec<Invariant> {
        let broken = RULES.iter().filter(|(_, keeps)| !keeps(self, observed));
        let broken = broken.map(|(rule, _)| *rule).collect();
        self.remember(observed);
        broken
    }

    /// Checks the answer to beginning or restarting a step in this incarnation.
    #[must_use]
    pub fn check_step_begin(
        &self,
        lease: &Lease,
        incarnation: u8,
        begun: &StepBegun,
    ) -> Option<Invariant> {
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
            return Some(Invariant::StaleChangesNothing);
        }
        (!remembered).then_some(Invariant::StepsRemembered)
    }

    /// Checks that a step was written by `lease`.
    #[must_use]
    pub fn check_step_write(&self, lease: &Lease) -> Option<Invariant> {
        (!self.holds(lease)).then_some(Invariant::StaleChangesNothing)
    }

    /// Checks the removal of a record.
    pub fn check_sweep(&mut self, record: &Record, now: Time) -> Option<Invariant> {
        self.holder = None;
        if record.state == State::Parked {
            Some(Invariant::ParkedStays)
        } else if !record.expired(now) {
            Some(Invariant::RetentionOutlivesLease)
        } else {
            None
        }
    }
}

// === impl Observed ===

impl<'a> Observed<'a> {
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

    /// Whether a run ended in doubt by what was written: it said so, or is found lapsed.
    pub(super) fn ends_in_doubt(&self) -> bool {
        let was_running =
            self.written().is_some() && self.before.is_some_and(|old| old.state == State::Running);
        let said = matches!(self.operation, Operation::Fail { how, .. } if matches!(how.kind, FailKind::InDoubt { .. }));
        let found = matches!(self.operation, Operation::Claim(_));
        was_running && (said || found && !self.is_new_incarnation())
    }

    /// The limit on runs in doubt that a claim or a failure names, where nothing else parks.
    const fn doubt_limit(&self) -> Option<DoubtLimit> {
        if let Operation::Claim(Claim { max_in_doubt, .. })
        | Operation::Fail {
            how: Fail { max_in_doubt, .. },
            ..
        } = self.operation
        {
            return *max_in_doubt;
        }
        None
    }

    /// Whether a record is parked that was not.
    fn parks(&self) -> bool {
        let parked = |record: &Record| record.state == State::Parked;
        self.written().is_some_and(parked) && !self.before.is_some_and(parked)
    }

    /// The run that speaks of itself, if it is one; about a step it is checked by itself.
    fn speaker(&self) -> Option<&'a Lease> {
        match self.operation.step() {
            None => self.operation.lease(),
            Some(_) => None,
        }
    }
}
