//! Grants: one live lease at a time, fences that rise, one payload per incarnation.

use super::Rule;
use super::key_calls::{Grant, KeyCalls};
use crate::harness::Verdict;
use crate::race::call::{OperatorCall, Policy, Request, Response, RunId};
use std::collections::{BTreeMap, HashMap};

// === impl KeyCalls ===

impl KeyCalls<'_> {
    pub(super) fn check_grants(&self, verdict: &mut Verdict<Rule>) {
        self.check_fences(verdict);
        self.check_leases(verdict);
        self.check_payloads(verdict);
        self.check_parked(verdict);
        self.check_doubts(verdict);
    }

    /// No fence twice, and none below one that was answered before it was asked for.
    fn check_fences(&self, verdict: &mut Verdict<Rule>) {
        for pair in self.grants.windows(2) {
            if let [a, b] = pair
                && a.run.fence == b.run.fence
            {
                let seen = format!("one fence for two: {:?}, {:?}", a.call, b.call);
                verdict.convict(Rule::FencesRise, self.key, seen);
            }
        }
        let highest = self.highest_by_answer();
        for grant in &self.grants {
            let before = highest.range(..grant.first_asked).next_back();
            if let Some((_, fence)) = before
                && *fence >= grant.run.fence
            {
                let seen = format!("fence {fence} was answered before {:?}", grant.call);
                verdict.convict(Rule::FencesRise, self.key, seen);
            }
        }
    }

    /// When each new highest fence was answered.
    pub(super) fn highest_by_answer(&self) -> BTreeMap<u64, u64> {
        let mut answered: Vec<_> = self.grants.iter().collect();
        answered.sort_by_key(|grant| grant.call.ended);
        let (mut highest, mut top) = (BTreeMap::new(), 0);
        for grant in answered {
            top = top.max(grant.run.fence);
            highest.insert(grant.call.ended, top);
        }
        highest
    }

    /// A lease is not given to another before it has lapsed, unless the run or an operator ended it. A fence is the
    /// moment of its grant or later, so the next grant came at its fence at the latest.
    fn check_leases(&self, verdict: &mut Verdict<Rule>) {
        let renewed = self.renewed();
        for pair in self.grants.windows(2) {
            let [a, b] = pair else { continue };
            let granted_until = a.first_asked + a.terms.lease;
            let until = renewed
                .get(&a.run)
                .map_or(granted_until, |renewed| granted_until.max(*renewed));
            let ended = self.may_be_ended(a.run, &(a.first_asked..=b.call.ended));
            if b.run.fence < until && !ended {
                let early = until - b.run.fence;
                let seen = format!(
                    "{:?} was granted {early} µs before the lease of {:?} lapsed",
                    b.run, a.run
                );
                verdict.convict(Rule::OneLease, self.key, seen);
            }
        }
    }

    /// Until when each run's lease was renewed, at least.
    fn renewed(&self) -> HashMap<RunId, u64> {
        let mut renewed = HashMap::new();
        for call in &self.calls {
            if let (Request::Renew(run, lease), Response::Applied(_)) =
                (&call.request, &call.response)
            {
                let until = renewed.entry(*run).or_insert(0);
                *until = (call.began + lease).max(*until);
            }
        }
        renewed
    }

    fn check_payloads(&self, verdict: &mut Verdict<Rule>) {
        let mut payloads: HashMap<u64, &Grant<'_>> = HashMap::new();
        for grant in &self.grants {
            let first = payloads.entry(grant.run.born).or_insert(grant);
            if first.terms.payload != grant.terms.payload {
                let seen = format!(
                    "two payloads in one incarnation: {:?}, {:?}",
                    first.call, grant.call
                );
                verdict.convict(Rule::OnePayload, self.key, seen);
            }
        }
    }

    /// A run that nobody ended is in doubt: the next one of the incarnation is told so, and under `probe` it is granted
    /// only once the first acts no more.
    fn check_doubts(&self, verdict: &mut Verdict<Rule>) {
        for pair in self.grants.windows(2) {
            let [a, b] = pair else { continue };
            let ended = self.may_be_ended(a.run, &(a.first_asked..=b.call.ended));
            // Another may have run between the two, unheard.
            let next = a.run.born == b.run.born && b.run.attempt == a.run.attempt + 1;
            if ended || !next {
                continue;
            }
            if !b.run.in_doubt {
                let seen = format!("{:?} was not told that {:?} is in doubt", b.run, a.run);
                verdict.convict(Rule::DoubtKnown, self.key, seen);
            }
            let acts_until = a.first_asked + a.terms.acts_for;
            if b.terms.policy == Policy::Probe && b.run.fence < acts_until {
                let early = acts_until - b.run.fence;
                let seen = format!(
                    "{:?} was granted {early} µs before {:?} acts no more",
                    b.run, a.run
                );
                verdict.convict(Rule::DoubtKnown, self.key, seen);
            }
        }
    }

    /// After `parked` nothing is granted until an operator or a run has spoken.
    fn check_parked(&self, verdict: &mut Verdict<Rule>) {
        let parked = self.calls.iter().filter(|call| {
            matches!(call.request, Request::Claim(_)) && call.response == Response::Parked
        });
        let mut asked: Vec<_> = self.grants.iter().collect();
        asked.sort_by_key(|grant| grant.first_asked);
        for parked in parked {
            let next = asked.partition_point(|grant| grant.first_asked <= parked.ended);
            let Some(grant) = asked.get(next) else {
                continue;
            };
            let window = parked.began..=grant.call.ended;
            let frees = |act: &OperatorCall| {
                !matches!(act, OperatorCall::Release | OperatorCall::Retain(_))
            };
            if !self.may_be_operated(&window, frees) && !self.may_have_spoken(&window) {
                let seen = format!("{:?} was granted after {parked:?}", grant.run);
                verdict.convict(Rule::ParkedStays, self.key, seen);
            }
        }
    }
}
