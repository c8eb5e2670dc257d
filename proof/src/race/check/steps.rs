//! Steps: done once per incarnation, and remembered as they were done.

use super::Rule;
use super::key_calls::KeyCalls;
use crate::harness::Verdict;
use crate::race::call::{Call, Request, Response, StepRequest};
use std::collections::BTreeMap;

/// What was asked about one step of one incarnation.
#[derive(Default)]
struct StepCalls<'a> {
    begun: Vec<&'a Call>,
    completed: Vec<(&'a Call, u64)>,
}

// === impl KeyCalls ===

impl KeyCalls<'_> {
    pub(super) fn check_steps(&self, verdict: &mut Verdict<Rule>) {
        let mut parts: BTreeMap<(u64, &str), StepCalls<'_>> = BTreeMap::new();
        for call in &self.calls {
            let Request::Step(run, name, request) = &call.request else {
                continue;
            };
            let part = parts.entry((run.born, name)).or_default();
            match request {
                StepRequest::Begin => part.begun.push(call),
                StepRequest::Complete(digest) => part.completed.push((call, *digest)),
                StepRequest::Restart => {}
            }
        }
        for part in parts.values() {
            for seen in part.faults() {
                verdict.convict(Rule::StepsOnce, self.key, seen);
            }
        }
    }
}

// === impl StepCalls ===

impl StepCalls<'_> {
    fn faults(&self) -> Vec<String> {
        let applied = |call: &Call| matches!(call.response, Response::Applied(_));
        let mut done = self.completed.iter().filter(|(call, _)| applied(call));
        let first = done.next();
        let mut faults: Vec<String> = done
            .map(|(call, _)| format!("{call:?} after {first:?}"))
            .collect();
        for call in &self.begun {
            if call.response == Response::StepRun {
                let earlier = first.filter(|(done, _)| done.ended < call.began);
                faults.extend(earlier.map(|done| format!("{call:?} after {done:?}")));
            }
            if let Response::Memo(_, digest) = &call.response {
                let mut known = self.completed.iter();
                if !known.any(|(call, made)| made == digest && call.may_have_been_done()) {
                    faults.push(format!("{call:?} remembers what nobody recorded"));
                }
            }
        }
        faults
    }
}
