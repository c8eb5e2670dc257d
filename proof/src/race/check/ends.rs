//! Ends: only the owner ends a run, once; what has succeeded does not run again.

use super::Rule;
use super::key_calls::KeyCalls;
use crate::harness::Verdict;
use crate::race::call::{Call, OperatorCall, Request, Response, RunEnded, RunId};
use semel::protocol::State;
use std::collections::HashMap;

// === impl KeyCalls ===

impl KeyCalls<'_> {
    pub(super) fn check_ends(&self, verdict: &mut Verdict<Rule>) {
        self.check_overtaken(verdict);
        self.check_operated(verdict);
        self.check_ended_once(verdict);
        self.check_absorbs(verdict);
        for call in &self.calls {
            if let Response::Wrong(_) = call.response {
                verdict.convict(Rule::TrueAnswer, self.key, format!("{call:?}"));
            }
        }
    }

    /// A run that calls after a newer grant was answered is told that it is stale.
    fn check_overtaken(&self, verdict: &mut Verdict<Rule>) {
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
    fn check_operated(&self, verdict: &mut Verdict<Rule>) {
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
    fn check_ended_once(&self, verdict: &mut Verdict<Rule>) {
        let mut ends: HashMap<RunId, &Call> = HashMap::new();
        for call in &self.calls {
            let (Some(run), Response::Applied(state)) = (call.run(), &call.response) else {
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
    fn check_absorbs(&self, verdict: &mut Verdict<Rule>) {
        let mut asked: Vec<_> = self.grants.iter().collect();
        asked.sort_by_key(|grant| grant.first_asked);
        for call in &self.calls {
            let (Request::End(_, RunEnded::Complete(_, retention)), Response::Applied(_)) =
                (&call.request, &call.response)
            else {
                continue;
            };
            let next = asked.partition_point(|grant| grant.first_asked <= call.ended);
            let Some(grant) = asked.get(next) else {
                continue;
            };
            let forgotten = || {
                let window = call.began..=grant.call.ended;
                self.may_be_operated(&window, |act| matches!(act, OperatorCall::Forget))
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
        call.response,
        Response::Stale | Response::Unknown(_) | Response::RolledBack(_) | Response::Wrong(_)
    )
}

/// Whether an operator took the right to run away. Forgetting ends a run too, but leaves it its fence.
const fn revokes(call: &Call) -> bool {
    matches!(
        call.request,
        Request::Operate(
            OperatorCall::ResolveSucceeded(_)
                | OperatorCall::ResolveFailed(_)
                | OperatorCall::ResolveRetry
                | OperatorCall::Redrive
                | OperatorCall::Release
        )
    ) && matches!(call.response, Response::Acted)
}
