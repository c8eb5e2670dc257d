//! What the checker remembers: its own account of what was granted, started and accepted, so that a
//! wrong record cannot hide what became of the last one.

use super::operation_checks::Observed;
use bytes::Bytes;
use semel::clock::Time;
use semel::protocol::{Ending, Fence, Finding, Lease, Operation, Owner, Record, Resolution, State};
use std::collections::BTreeMap;

/// What the checker remembers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ghost {
    /// The highest fence ever given.
    pub highest: Option<Fence>,
    /// The run whose word counts: granted last, not ended, not taken away by an operator.
    pub holder: Option<(Fence, Owner)>,
    /// The end of the last lease, unless its run has ended or an operator took it away.
    pub lease_end: Option<Time>,
    /// The number of the present incarnation of the key.
    pub incarnation: u8,
    /// The present incarnation, and those in which a worker still believes.
    pub incarnations: BTreeMap<u8, Incarnation>,
}

/// What happened in one incarnation of the key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Incarnation {
    /// Runs whose effect was started and which did not say that it failed.
    pub starts: u8,
    /// Effects somewhere in the world.
    pub effects: u8,
    /// Effects committed together with a completion.
    pub commits: u8,
    /// Runs that ended in doubt.
    pub doubts: u8,
    /// When the first of them was found to have ended so.
    pub doubted_at: Option<Time>,
    /// Operator's acts.
    pub acts: u8,
    /// Those that said what became of a run.
    pub findings: u8,
    /// Whether the last of them was `forget`.
    pub forgotten: bool,
    /// The end that was accepted.
    pub end: Option<End>,
    /// The result of the step.
    pub step: Option<Bytes>,
}

/// An accepted end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct End {
    /// Whose word it was.
    pub by: By,
    /// Success or final failure.
    pub ending: Ending,
    /// The fence under which it was accepted.
    pub fence: Fence,
    /// What was accepted.
    pub result: Bytes,
}

/// Whose word an end was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum By {
    /// The run's own.
    Run,
    /// An operator's.
    Operator,
}

// === impl Ghost ===

impl Ghost {
    /// The present incarnation.
    #[must_use]
    pub fn present(&self) -> &Incarnation {
        self.incarnations
            .get(&self.incarnation)
            .expect("the present incarnation is kept")
    }

    /// An incarnation that somebody still believes in.
    pub fn incarnation_mut(&mut self, incarnation: u8) -> &mut Incarnation {
        self.incarnations.entry(incarnation).or_default()
    }

    fn present_mut(&mut self) -> &mut Incarnation {
        self.incarnation_mut(self.incarnation)
    }

    /// Whether this run's word counts.
    #[must_use]
    pub fn holds(&self, lease: &Lease) -> bool {
        self.holder == Some((lease.fence, lease.owner))
    }

    /// Remembers an operation that was checked.
    pub fn remember(&mut self, observed: &Observed<'_>) {
        let Some(after) = observed.written() else {
            return;
        };
        self.highest = self.highest.max(Some(after.fence));
        self.remember_doubt(observed);
        match observed.operation {
            Operation::Claim(_) if observed.granted().is_some() => {
                self.remember_grant(observed, after)
            }
            // Parked: its lease has lapsed, and does not come back when the clock does.
            Operation::Claim(_) => self.lease_end = None,
            Operation::Look(_)
            | Operation::StepBegin { .. }
            | Operation::StepRestart { .. }
            | Operation::StepComplete { .. }
            | Operation::Steps(_)
            | Operation::Index { .. }
            | Operation::Find(_)
            | Operation::Retain { .. }
            | Operation::Ready => {}
            Operation::Renew { .. } => self.lease_end = Some(after.lease_until),
            Operation::Complete { .. } | Operation::Fail { .. } | Operation::Release { .. } => {
                self.remember_word(after);
            }
            Operation::Resolve { how, .. } => {
                self.remember_act();
                self.present_mut().findings += 1;
                self.present_mut().end = resolved(how, after.fence);
            }
            Operation::Redrive { .. } | Operation::ReleaseByOperator { .. } => self.remember_act(),
            Operation::Forget(_) => {
                let lease_end = self.lease_end;
                self.remember_act();
                // Forgetting takes no lease away: that is why a live one forbids it.
                self.lease_end = lease_end;
                self.present_mut().forgotten = true;
            }
        }
    }

    fn remember_grant(&mut self, observed: &Observed<'_>, after: &Record) {
        self.holder = Some((after.fence, after.owner));
        self.lease_end = Some(after.lease_until);
        if observed.is_new_incarnation() {
            self.incarnation += 1;
            self.incarnations
                .insert(self.incarnation, Incarnation::default());
        }
    }

    fn remember_doubt(&mut self, observed: &Observed<'_>) {
        let in_doubt = observed.ends_in_doubt();
        let incarnation = self.present_mut();
        incarnation.doubts += u8::from(in_doubt);
        let first = in_doubt.then_some(observed.now);
        incarnation.doubted_at = incarnation.doubted_at.or(first);
    }

    fn remember_word(&mut self, after: &Record) {
        self.lease_end = None;
        if after.state == State::Parked {
            return;
        }
        self.holder = None;
        self.present_mut().end = after.state.ending().map(|ending| End {
            by: By::Run,
            ending,
            fence: after.fence,
            result: after.result.clone().unwrap_or_default(),
        });
    }

    fn remember_act(&mut self) {
        self.holder = None;
        self.lease_end = None;
        let incarnation = self.present_mut();
        incarnation.acts += 1;
        incarnation.end = None;
    }
}

impl Default for Ghost {
    fn default() -> Self {
        Self {
            highest: None,
            holder: None,
            lease_end: None,
            incarnation: 0,
            incarnations: BTreeMap::from([(0, Incarnation::default())]),
        }
    }
}

fn resolved(how: &Resolution, fence: Fence) -> Option<End> {
    let (ending, result) = match &how.finding {
        Finding::Succeeded(result) => (Ending::Succeeded, result),
        Finding::Failed(result) => (Ending::Failed, result),
        Finding::Retry => return None,
    };
    Some(End {
        by: By::Operator,
        ending,
        fence,
        result: result.clone(),
    })
}

// === impl Incarnation ===

impl Incarnation {
    /// What still matters of an incarnation that is over.
    #[must_use]
    pub fn in_the_past(self) -> Self {
        Self {
            effects: 0,
            doubts: 0,
            doubted_at: None,
            findings: 0,
            forgotten: false,
            end: None,
            step: None,
            ..self
        }
    }
}
