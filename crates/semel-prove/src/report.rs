//! A report in the forms that people and machines read.

mod text;
mod json;
mod junit;
mod github;
mod html;
mod svg;
mod wording;
mod unseen;
mod unprobed;

pub use github::github;
pub use html::html;
pub use json::json;
pub use junit::{junit, junit_without};
pub use text::text;
pub(crate) use unprobed::unprobed;
pub(crate) use unseen::unseen;

use crate::attacks::attack::{Attack, Fault};
use crate::attacks::tally::Tally;
use crate::judge::timeline::millis;
use crate::judge::verdict::Verdict;
use crate::options::Profile;
use crate::scenario::{Accepted, Promise};
use serde::Serialize;
use std::time::Duration;

/// Everything one run of `semel prove` found out.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The scenario.
    pub scenario: String,
    /// What was promised.
    pub promise: Promise,
    /// What may stay open.
    pub accepted: Vec<Accepted>,
    /// How thorough it was.
    pub profile: Profile,
    /// Repeats the same deliveries and faults in the same order.
    pub seed: u64,
    /// One for each attack, in the order they were made.
    pub attacks: Vec<AttackReport>,
    /// Why the run ended before all attacks were made, if it did.
    pub ended_early: Option<String>,
    /// What was written on the wire while a delivery was handled, and is looked at by no effect: by name.
    pub unprobed: Vec<String>,
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
    /// How much of what there is was tried, where that can be counted.
    pub coverage: Option<Coverage>,
    /// What the verdict does not say: how far it reaches, and what would be asked of the scenario to say more.
    pub remarks: Vec<String>,
    /// How long it took.
    #[serde(rename = "took_ms", serialize_with = "millis")]
    pub took: Duration,
}

/// How much of what there is was tried: 4 of 13 boundaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Coverage {
    /// How many.
    pub tried: u32,
    /// Of how many.
    pub of: u32,
    /// What is counted.
    pub what: &'static str,
}

/// What a report comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Conclusion {
    /// Everything that was run held, and something was.
    Held,
    /// Something broke.
    Broken,
    /// Nothing was put to the test, a fault never hit, nothing could be killed, or the run ended early.
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
    /// leaves the question open, and so does a handler that was never killed.
    #[must_use]
    pub fn conclusion(&self) -> Conclusion {
        let count = self.count();
        let open = self.never_hit() || self.never_killed() || self.ended_early.is_some();
        if count.broken > 0 {
            Conclusion::Broken
        } else if open || count.held == 0 {
            Conclusion::CouldNotJudge
        } else {
            Conclusion::Held
        }
    }

    /// Whether some fault never hit. Kills at drawn times and kills at boundaries stand for each other.
    fn never_hit(&self) -> bool {
        let killed = self.kills().any(|one| one.hits > 0);
        let mut attacks = self.attacks.iter();
        attacks
            .any(|one| matches!(one.verdict, Verdict::Vacuous { .. }) && !(killed && one.kills()))
    }

    /// Whether a process was to be killed, none was, and nobody has said that this is meant.
    fn never_killed(&self) -> bool {
        let mut kills = self.kills().peekable();
        let chosen = kills.peek().is_some();
        chosen && kills.all(|one| one.hits == 0) && !self.accepted.contains(&Accepted::NoKill)
    }

    fn kills(&self) -> impl Iterator<Item = &AttackReport> {
        self.attacks.iter().filter(|one| one.kills())
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
            coverage: tally.coverage,
            remarks: tally.remarks.clone(),
            verdict: tally.verdict(),
            took,
        }
    }

    fn kills(&self) -> bool {
        self.attack.definition().fault == Fault::Crash
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
