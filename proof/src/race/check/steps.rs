//! Steps: done once per incarnation, and remembered as they were done.

use super::scene::Scene;
use super::{Rule, Verdict};
use crate::race::call::{Asked, Call, Told};
use std::collections::BTreeMap;

/// What was asked about one step of one incarnation.
#[derive(Default)]
struct Part<'a> {
    begun: Vec<&'a Call>,
    completed: Vec<(&'a Call, u64)>,
}

// === impl Scene ===

impl Scene<'_> {
    pub(super) fn check_steps(&self, verdict: &mut Verdict) {
        let mut parts: BTreeMap<(u64, &str), Part<'_>> = BTreeMap::new();
        for call in &self.calls {
            match &call.asked {
                Asked::StepBegin(run, name) => {
                    parts.entry((run.born, name)).or_default().begun.push(call);
                }
                Asked::StepComplete(run, name, digest) => {
                    let part = parts.entry((run.born, name)).or_default();
                    part.completed.push((call, *digest));
                }
                Asked::StepRestart(..)
                | Asked::Claim(_)
                | Asked::Renew(..)
                | Asked::Complete(..)
                | Asked::CompleteIn(..)
                | Asked::Fail(..)
                | Asked::Release(_)
                | Asked::Operate(_) => {}
            }
        }
        for part in parts.values() {
            for seen in part.faults() {
                verdict.convict(Rule::StepsOnce, self.key, seen);
            }
        }
    }
}

// === impl Part ===

impl Part<'_> {
    fn faults(&self) -> Vec<String> {
        let applied = |call: &Call| matches!(call.told, Told::Applied(_));
        let mut done = self.completed.iter().filter(|(call, _)| applied(call));
        let first = done.next();
        let mut faults: Vec<String> = done
            .map(|(call, _)| format!("{call:?} after {first:?}"))
            .collect();
        for call in &self.begun {
            if call.told == Told::StepRun {
                let earlier = first.filter(|(done, _)| done.ended < call.began);
                faults.extend(earlier.map(|done| format!("{call:?} after {done:?}")));
            }
            if let Told::Memo(_, digest) = &call.told {
                let mut known = self.completed.iter();
                if !known.any(|(call, made)| made == digest && call.may_have_been_done()) {
                    faults.push(format!("{call:?} remembers what nobody recorded"));
                }
            }
        }
        faults
    }
}
