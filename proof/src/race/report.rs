//! The report of a race: what was tried, what was said, what was broken.

use super::call::{Asked, Call, Told};
use super::check::Verdict;
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
pub struct Report {
    /// On which store.
    pub store: &'static str,
    /// How many processes.
    pub processes: usize,
    /// For how long.
    pub seconds: u64,
    /// What was counted.
    pub tally: Tally,
    /// What was found.
    pub verdict: Verdict,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
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

// === impl Tally ===

impl Tally {
    /// Counts calls and changes.
    #[must_use]
    pub fn of(calls: &[Call], history: Option<&History>) -> Self {
        let changes = || {
            history
                .iter()
                .flat_map(|history| history.changes.values().flatten())
        };
        let mut tally = Self {
            calls: calls.len(),
            changes: changes().filter(|change| !change.aged).count(),
            swept: changes().filter(|change| change.new.is_none()).count(),
            ..Self::default()
        };
        for call in calls {
            tally.add(call);
        }
        tally
    }

    fn add(&mut self, call: &Call) {
        let one = |yes: bool| usize::from(yes);
        let claim = matches!(call.asked, Asked::Claim(_));
        let transaction = matches!(call.asked, Asked::CompleteIn(..));
        self.claims += one(claim);
        match &call.told {
            Told::Granted(run) => {
                self.granted += 1;
                self.again += one(run.attempt > 1);
            }
            Told::Replayed(_) => self.replayed += 1,
            Told::Stale => self.stale += 1,
            Told::Parked => self.parked += one(claim),
            Told::Mismatched => self.mismatched += 1,
            Told::Acted => self.operated += 1,
            Told::Unknown(_) => self.unknown += 1,
            Told::Applied(_) => self.committed += one(transaction),
            Told::RolledBack(_) => self.rolled_back += 1,
            Told::Busy
            | Told::NotYet
            | Told::Already(_)
            | Told::Settled(_)
            | Told::StepRun
            | Told::Memo(..)
            | Told::StepInDoubt(_)
            | Told::Refused
            | Told::Gone(_)
            | Told::Wrong(_) => {}
        }
    }
}

// === impl Report ===

impl Report {
    /// What speaks against the race: broken rules, and everything that makes it invalid.
    #[must_use]
    pub fn complaints(&self) -> Vec<String> {
        let tally = &self.tally;
        let enough = [
            ("grants", tally.granted, GRANTED_MIN),
            ("runs taken over", tally.again, TAKEN_OVER_MIN),
            ("stale calls", tally.stale, STALE_MIN),
            ("unknown answers", tally.unknown, UNKNOWN_MIN),
            ("operators' acts", tally.operated, OPERATED_MIN),
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

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tally = &self.tally;
        write!(
            f,
            "| {} | {} | {} |",
            self.store, self.processes, self.seconds
        )?;
        for number in [
            tally.calls,
            tally.claims,
            tally.granted,
            tally.again,
            tally.replayed,
            tally.stale,
            tally.parked,
            tally.mismatched,
            tally.operated,
            tally.unknown,
            tally.committed,
            tally.rolled_back,
            tally.changes,
            tally.swept,
            self.verdict.broken.len(),
        ] {
            write!(f, " {number} |")?;
        }
        Ok(())
    }
}
