//! Replays: byte for byte what a run that had the right to has recorded.

use super::Rule;
use super::key_calls::{KeyCalls, recorded};
use crate::harness::Verdict;
use crate::race::call::{Call, OperatorCall, RecordedEnd, Request, Response, RunEnded};

// === impl KeyCalls ===

impl KeyCalls<'_> {
    pub(super) fn check_replays(&self, verdict: &mut Verdict<Rule>) {
        for call in &self.calls {
            let (Response::Replayed(ending) | Response::Settled(ending)) = &call.response else {
                continue;
            };
            let Some(source) = self.source(*ending) else {
                let seen = format!("nobody recorded what {call:?} was told");
                verdict.convict(Rule::SameReplay, self.key, seen);
                continue;
            };
            self.check_payload(call, source, verdict);
        }
        self.check_replays_never_go_back(verdict);
    }

    /// Who recorded this very end. Bytes that the caller did not make itself are compared with the history.
    fn source(&self, ending: RecordedEnd) -> Option<&Call> {
        let recorders = self.recorders.get(&ending.result.nonce)?;
        let mut possible = recorders.iter().filter(|call| {
            let bytes = recorded(&call.request).and_then(|(_, result)| result);
            let same = bytes.is_none_or(|result| result == ending.result);
            same && call.may_have_been_done() && ending.succeeded == succeeds(&call.request)
        });
        possible.next().copied()
    }

    fn check_payload(&self, call: &Call, source: &Call, verdict: &mut Verdict<Rule>) {
        let (Request::Claim(terms), Some(run)) = (&call.request, source.run()) else {
            return;
        };
        let mut grants = self.grants.iter().filter(|grant| grant.run == run);
        if grants.any(|grant| grant.terms.payload != terms.payload) {
            let seen = format!("{call:?} is told of another payload's end, {source:?}");
            verdict.convict(Rule::OnePayload, self.key, seen);
        }
    }

    /// Whoever asks later is never told of an earlier run's end.
    fn check_replays_never_go_back(&self, verdict: &mut Verdict<Rule>) {
        let mut told: Vec<(&Call, u64)> = Vec::new();
        for call in &self.calls {
            if let Response::Replayed(ending) = &call.response
                && let Some(run) = self.source(*ending).and_then(Call::run)
            {
                told.push((call, run.fence));
            }
        }
        told.sort_by_key(|(call, _)| call.ended);
        let mut highest: Vec<(u64, u64)> = Vec::new();
        for (call, fence) in &told {
            let top = highest.last().map_or(0, |(_, top)| *top);
            highest.push((call.ended, top.max(*fence)));
        }
        for (call, fence) in told {
            let before = highest.partition_point(|(ended, _)| *ended < call.began);
            let newest = before.checked_sub(1).and_then(|last| highest.get(last));
            if let Some((_, top)) = newest.filter(|(_, top)| *top > fence) {
                let seen = format!("{call:?} is of fence {fence}, {top} was replayed before");
                verdict.convict(Rule::SameReplay, self.key, seen);
            }
        }
    }
}

/// Whether what is asked leads to success rather than to a failure for good.
const fn succeeds(request: &Request) -> bool {
    matches!(
        request,
        Request::End(_, RunEnded::Complete(..) | RunEnded::CompleteIn(_))
            | Request::Operate(OperatorCall::ResolveSucceeded(_))
    )
}
