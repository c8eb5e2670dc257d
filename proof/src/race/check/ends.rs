//! Ends: only the owner ends a run, once; what has succeeded does not run again.

use super::scene::Scene;
use super::{Rule, Verdict};
use crate::race::call::{Act, Asked, Call, RunId, Told};
use semel::protocol::State;
use std::collections::HashMap;

// === impl Scene ===

impl Scene<'_> {
    pub(super) fn check_ends(&self, verdict: &mut Verdict) {
        self.check_overtaken(verdict);
        self.check_operated(verdict);
        self.check_ended_once(verdict);
        self.check_absorbs(verdict);
        for call in &self.calls {
            if let Told::Wrong(_) = call.told {
                verdict.convict(Rule::TrueAnswer, self.key, format!("{call:?}"));
            }
        }
    }

    /// A run that calls after a newer grant was answered is told that it is stale.
    fn check_overtaken(&self, verdict: &mut Verdict) {
        let highest = self.highest_by_answer();
        for call in &self.calls {
            let newest = highest.range(..call.began).next_back();
            if let (Some(run), Some((_, fence))) = (call.run(), newest)
                && *fence > run.fence
                && !says_stale(call)
            {
                let seen = format!("{call:?} although fence {fence} was granted before");
                verdict.convict(Rule::StaleChangesNothing, self.key, seen);
            }
        }
    }

    /// A run that calls after an operator's act on it is told that it is stale.
    fn check_operated(&self, verdict: &mut Verdict) {
        let granted: HashMap<RunId, u64> = self
            .grants
            .iter()
            .map(|grant| (grant.run, grant.call.ended))
            .collect();
        let acts: Vec<_> = self.calls.iter().filter(|call| revokes(call)).collect();
        for call in &self.calls {
            let Some((run, since)) = call.run().and_then(|run| granted.get_key_value(&run)) else {
                continue;
            };
            let mut acts = acts.iter();
            let before = acts.find(|act| act.began > *since && act.ended < call.began);
            if let Some(act) = before
                && !says_stale(call)
            {
                let seen = format!("{call:?} by {run:?} although {act:?}");
                verdict.convict(Rule::StaleChangesNothing, self.key, seen);
            }
        }
    }

    /// After its accepted end a run changes nothing more.
    fn check_ended_once(&self, verdict: &mut Verdict) {
        let mut ends: HashMap<RunId, &Call> = HashMap::new();
        for call in &self.calls {
            let (Some(run), Told::Applied(state)) = (call.run(), &call.told) else {
                continue;
            };
            if let Some(end) = ends.get(&run).filter(|end| end.ended < call.began) {
                let seen = format!("{call:?} after {end:?}");
                verdict.convict(Rule::OneEnd, self.key, seen);
            }
            if [State::Succeeded, State::Failed]
                .iter()
                .any(|end| end.number() == *state)
            {
                ends.entry(run).or_insert(call);
            }
        }
    }

    /// A success is not run again before its retention is over, unless it was forgotten.
    fn check_absorbs(&self, verdict: &mut Verdict) {
        let mut asked: Vec<_> = self.grants.iter().collect();
        asked.sort_by_key(|grant| grant.first_asked);
        for call in &self.calls {
            let (Asked::Complete(_, _, retention), Told::Applied(_)) = (&call.asked, &call.told)
            else {
                continue;
            };
            let next = asked.partition_point(|grant| grant.first_asked <= call.ended);
            let Some(grant) = asked.get(next) else {
                continue;
            };
            let forgotten = || {
                let window = call.began..=grant.call.ended;
                self.may_be_operated(&window, |act| matches!(act, Act::Forget))
            };
            if grant.run.fence < call.began + retention && !forgotten() {
                let seen = format!("{:?} was granted after {call:?}", grant.run);
                verdict.convict(Rule::OneEnd, self.key, seen);
            }
        }
    }
}

/// Whether the caller was told that it is not the owner, or was not told anything.
const fn says_stale(call: &Call) -> bool {
    matches!(
        call.told,
        Told::Stale | Told::Unknown(_) | Told::RolledBack(_) | Told::Wrong(_)
    )
}

/// Whether an operator took the right to run away. Forgetting ends a run too, but leaves it its fence.
const fn revokes(call: &Call) -> bool {
    matches!(
        call.asked,
        Asked::Operate(
            Act::ResolveSucceeded(_)
                | Act::ResolveFailed(_)
                | Act::ResolveRetry
                | Act::Redrive
                | Act::Release
        )
    ) && matches!(call.told, Told::Acted)
}
