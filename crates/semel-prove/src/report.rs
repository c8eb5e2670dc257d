//! A report in the forms that people and machines read.

mod text;
mod json;
mod junit;
mod html;
mod svg;
mod wording;

pub use html::html;
pub use json::json;
pub use junit::{junit, junit_without};
pub use text::text;

use crate::judge::verdict::{Report, Verdict};
use serde::Serialize;

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

// === impl Report ===

impl Report {
    /// What it comes to. An attack that could not be made is no mark against the handler; one whose fault never hit
    /// leaves the question open.
    #[must_use]
    pub fn conclusion(&self) -> Conclusion {
        let any = |is: fn(&Verdict) -> bool| self.attacks.iter().any(|it| is(&it.verdict));
        if any(|verdict| matches!(verdict, Verdict::Broken(_))) {
            Conclusion::Broken
        } else if any(|verdict| matches!(verdict, Verdict::Vacuous { .. }))
            || !any(|verdict| matches!(verdict, Verdict::Held))
            || self.ended_early.is_some()
        {
            Conclusion::CouldNotJudge
        } else {
            Conclusion::Held
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
