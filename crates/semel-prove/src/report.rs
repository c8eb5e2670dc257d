//! A report in the forms that people and machines read.

mod text;
mod json;
mod junit;
mod html;
mod svg;
mod wording;
mod unseen;

pub use html::html;
pub use json::json;
pub use junit::{junit, junit_without};
pub use text::text;
pub(crate) use unseen::unseen;

use crate::attacks::attack::Attack;
use crate::attacks::tally::Tally;
use crate::judge::timeline::millis;
use crate::judge::verdict::Verdict;
use crate::scenario::Promise;
use serde::Serialize;
use std::time::Duration;

/// Everything one run of `semel prove` found out.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The scenario.
    pub scenario: String,
    /// What was promised.
    pub promise: Promise,
    /// Repeats the same deliveries and faults in the same order.
    pub seed: u64,
    /// One for each attack, in the order they were made.
    pub attacks: Vec<AttackReport>,
    /// Why the run ended before all attacks were made, if it did.
    pub ended_early: Option<String>,
    /// What cannot be seen, in sentences.
    pub unseen: Vec<String>,
    /// How long it all took.
    #[serde(rename = "took_ms", serialize_with = "millis")]
    pub took: Duration,
}

/// What became of one attack.
#[derive(Clone, Debug, Serialize)]
pub struct AttackReport {
    /// Which.
    pub attack: Attack,
    /// Its outcome.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// How many trials were made.
    pub trials: u32,
    /// In how many of them the fault hit while the handler was at work.
    pub hits: u32,
    /// How long it took.
    #[serde(rename = "took_ms", serialize_with = "millis")]
    pub took: Duration,
}

/// What a report comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Conclusion {
    /// Everything that was run held, and something was.
    Held,
    /// Something broke.
    Broken,
    /// Nothing was put to the test, a fault never hit, or the run ended early.
    CouldNotJudge,
}

/// How many attacks ended in which way.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    held: usize,
    broken: usize,
    vacuous: usize,
    not_run: usize,
}

// === impl Report ===

impl Report {
    /// What it comes to. An attack that could not be made does not count against the handler; one whose fault never hit
    /// leaves the question open.
    #[must_use]
    pub fn conclusion(&self) -> Conclusion {
        let count = self.count();
        if count.broken > 0 {
            Conclusion::Broken
        } else if count.vacuous > 0 || count.held == 0 || self.ended_early.is_some() {
            Conclusion::CouldNotJudge
        } else {
            Conclusion::Held
        }
    }

    fn count(&self) -> Count {
        let mut count = Count::default();
        for one in &self.attacks {
            *match one.verdict {
                Verdict::Held => &mut count.held,
                Verdict::Broken(_) => &mut count.broken,
                Verdict::Vacuous { .. } => &mut count.vacuous,
                Verdict::NotRun { .. } => &mut count.not_run,
            } += 1;
        }
        count
    }
}

// === impl AttackReport ===

impl AttackReport {
    pub(crate) fn new(attack: Attack, tally: Tally, took: Duration) -> Self {
        Self {
            attack,
            trials: tally.trials,
            hits: tally.hits,
            verdict: tally.verdict(),
            took,
        }
    }
}

// === impl Conclusion ===

impl Conclusion {
    /// The exit code of the command.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Held => 0,
            Self::Broken => 1,
            Self::CouldNotJudge => 2,
        }
    }
}

#[cfg(test)]
mod tests;
