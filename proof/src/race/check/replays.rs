//! Replays: byte for byte what a run that had the right to has recorded.

use super::scene::{Scene, recorded};
use super::{Rule, Verdict};
use crate::race::call::{Asked, Call, Ending, Kind, Told};

// === impl Scene ===

impl Scene<'_> {
    pub(super) fn check_replays(&self, verdict: &mut Verdict) {
        for call in &self.calls {
            let (Told::Replayed(ending) | Told::Settled(ending)) = &call.told else {
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
    fn source(&self, ending: Ending) -> Option<&Call> {
        let recorders = self.recorders.get(&ending.mark.nonce)?;
        let mut possible = recorders.iter().filter(|call| {
            let bytes = recorded(&call.asked).and_then(|(_, mark)| mark);
            let same = bytes.is_none_or(|mark| mark == ending.mark);
            same && call.may_have_been_done() && ending.succeeded == succeeds(&call.asked)
        });
        possible.next().copied()
    }

    fn check_payload(&self, call: &Call, source: &Call, verdict: &mut Verdict) {
        let (Asked::Claim(terms), Some(run)) = (&call.asked, source.run()) else {
            return;
        };
        let mut grants = self.grants.iter().filter(|grant| grant.run == run);
        if grants.any(|grant| grant.terms.payload != terms.payload) {
            let seen = format!("{call:?} is told of another payload's end, {source:?}");
            verdict.convict(Rule::OnePayload, self.key, seen);
        }
    }

    /// Whoever asks later is never told of an earlier run's end.
    fn check_replays_never_go_back(&self, verdict: &mut Verdict) {
        let mut told: Vec<(&Call, u64)> = Vec::new();
        for call in &self.calls {
            if let Told::Replayed(ending) = &call.told
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
const fn succeeds(asked: &Asked) -> bool {
    use crate::race::call::{Act, Failing};
    match asked {
        Asked::Complete(..) | Asked::CompleteIn(..) | Asked::Operate(Act::ResolveSucceeded(_)) => {
            true
        }
        Asked::Fail(
            _,
            Failing {
                kind: Kind::Final | Kind::Retryable | Kind::InDoubt,
                ..
            },
            _,
        )
        | Asked::Claim(_)
        | Asked::Renew(..)
        | Asked::Release(_)
        | Asked::StepBegin(..)
        | Asked::StepRestart(..)
        | Asked::StepComplete(..)
        | Asked::Operate(_) => false,
    }
}
