//! The report of a race: what was tried, what was said, what was broken.

use super::call::{Call, Request, Response};
use super::check::RaceVerdict;
use super::history::History;
use std::collections::BTreeMap;
use std::fmt;

/// How many violations of a rule a report spells out.
const SHOWN_PER_RULE: usize = 3;

/// A race with fewer of these shows nothing.
const GRANTED_MIN: usize = 500;
const TAKEN_OVER_MIN: usize = 50;
const STALE_MIN: usize = 50;
const UNKNOWN_MIN: usize = 20;
const OPERATED_MIN: usize = 25;

/// What one race came to.
#[derive(Clone, Debug)]
pub struct RaceReport {
    /// On which store.
    pub store: &'static str,
    /// How many processes.
    pub processes: usize,
    /// For how long.
    pub seconds: u64,
    /// What was counted.
    pub counts: RaceCounts,
    /// What was found.
    pub verdict: RaceVerdict,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RaceCounts {
    /// Calls made.
    pub calls: usize,
    /// Claims among them.
    pub claims: usize,
    /// Claims granted.
    pub granted: usize,
    /// Grants of an attempt after the first.
    pub again: usize,
    /// Claims that were replayed.
    pub replayed: usize,
    /// Calls told that their run is stale.
    pub stale: usize,
    /// Claims told that a person must look.
    pub parked: usize,
    /// Claims with another payload, refused.
    pub mismatched: usize,
    /// Operators' acts done.
    pub operated: usize,
    /// Calls without an answer.
    pub unknown: usize,
    /// Transactions of a handler's committed.
    pub committed: usize,
    /// Transactions of a handler's rolled back.
    pub rolled_back: usize,
    /// Changes of records, where they can be seen.
    pub changes: usize,
    /// Records swept, where that can be seen.
    pub swept: usize,
}

// === impl RaceCounts ===

impl RaceCounts {
    /// Counts calls and changes.
    #[must_use]
    pub fn of(calls: &[Call], history: Option<&History>) -> Self {
        let changes = || {
            history
                .iter()
                .flat_map(|history| history.changes.values().flatten())
        };
        let mut counts = Self {
            calls: calls.len(),
            changes: changes().filter(|change| !change.aged).count(),
            swept: changes().filter(|change| change.new.is_none()).count(),
            ..Self::default()
        };
        for call in calls {
            counts.add(call);
        }
        counts
    }

    fn add(&mut self, call: &Call) {
        let one = |yes: bool| usize::from(yes);
        let claim = matches!(call.request, Request::Claim(_));
        let transaction = matches!(call.request, Request::CompleteIn(..));
        self.claims += one(claim);
        match &call.response {
            Response::Granted(run) => {
                self.granted += 1;
                self.again += one(run.attempt > 1);
            }
            Response::Replayed(_) => self.replayed += 1,
            Response::Stale => self.stale += 1,
            Response::Parked => self.parked += one(claim),
            Response::Mismatched => self.mismatched += 1,
            Response::Acted => self.operated += 1,
            Response::Unknown(_) => self.unknown += 1,
            Response::Applied(_) => self.committed += one(transaction),
            Response::RolledBack(_) => self.rolled_back += 1,
            Response::Busy
            | Response::NotYet
            | Response::Already(_)
            | Response::Settled(_)
            | Response::StepRun
            | Response::Memo(..)
            | Response::StepInDoubt(_)
            | Response::Refused
            | Response::Gone(_)
            | Response::Wrong(_) => {}
        }
    }
}

// === impl RaceReport ===

impl RaceReport {
    /// What speaks against the race: broken rules, and everything that makes it invalid.
    #[must_use]
    pub fn complaints(&self) -> Vec<String> {
        let counts = &self.counts;
        let enough = [
            ("grants", counts.granted, GRANTED_MIN),
            ("runs taken over", counts.again, TAKEN_OVER_MIN),
            ("stale calls", counts.stale, STALE_MIN),
            ("unknown answers", counts.unknown, UNKNOWN_MIN),
            ("operators' acts", counts.operated, OPERATED_MIN),
        ];
        let few = enough.into_iter().filter(|(_, seen, min)| seen < min);
        let few = few.map(|(what, seen, min)| {
            format!("{}: invalid: {seen} {what}, {min} are needed", self.store)
        });
        few.chain(self.broken()).collect()
    }

    fn broken(&self) -> Vec<String> {
        let mut by_rule: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for violation in &self.verdict.broken {
            by_rule.entry(violation.rule).or_default().push(violation);
        }
        let mut broken = Vec::new();
        for (rule, violations) in by_rule {
            let times = violations.len();
            broken.push(format!("{}: {rule:?} broken {times} times", self.store));
            let shown = violations.iter().take(SHOWN_PER_RULE);
            broken.extend(shown.map(|v| format!("  key {}: {}", v.key, v.seen)));
        }
        broken
    }

    /// The head of the table that reports are rows of.
    pub const HEAD: &str = "| store | processes | seconds | calls | claims | granted | taken over | replayed | stale | parked \
         | mismatched | operator | unknown | tx committed | tx rolled back | changes | swept | violations |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|";
}

impl fmt::Display for RaceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = &self.counts;
        write!(
            f,
            "| {} | {} | {} |",
            self.store, self.processes, self.seconds
        )?;
        for number in [
            counts.calls,
            counts.claims,
            counts.granted,
            counts.again,
            counts.replayed,
            counts.stale,
            counts.parked,
            counts.mismatched,
            counts.operated,
            counts.unknown,
            counts.committed,
            counts.rolled_back,
            counts.changes,
            counts.swept,
            self.verdict.broken.len(),
        ] {
            write!(f, " {number} |")?;
        }
        Ok(())
    }
}
