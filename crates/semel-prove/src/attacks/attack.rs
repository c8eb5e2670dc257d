//! What each attack is called, everywhere: in scenarios, on the command line, in reports.

use crate::attacks::ALL;
use crate::judge::verdict::Attack;
use std::fmt;
use std::str::FromStr;

/// There is no attack of this name.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no attack; there are {all}", all = names())]
pub struct UnknownAttack(String);

// === impl Attack ===

impl Attack {
    /// Its name, as in `semel prove --only NAME`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Repeat => "repeat",
            Self::AtOnce => "at-once",
            Self::WhileRunning => "while-running",
            Self::AnswerLost => "answer-lost",
            Self::AnswerCut => "answer-cut",
            Self::DeadlinePassed => "deadline-passed",
            Self::KillRandom => "kill-random",
            Self::CrashSweep => "crash-sweep",
            Self::Pause => "pause",
            Self::Reorder => "reorder",
            Self::OtherPayload => "other-payload",
            Self::BadKey => "bad-key",
            Self::TwoProcesses => "two-processes",
        }
    }
}

impl fmt::Display for Attack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl From<Attack> for &'static str {
    fn from(attack: Attack) -> Self {
        attack.name()
    }
}

impl FromStr for Attack {
    type Err = UnknownAttack;

    fn from_str(name: &str) -> Result<Self, UnknownAttack> {
        let found = ALL.into_iter().find(|attack| attack.name() == name);
        found.ok_or_else(|| UnknownAttack(name.to_owned()))
    }
}

fn names() -> String {
    ALL.map(Attack::name).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for attack in ALL {
            assert_eq!(attack.to_string().parse::<Attack>().unwrap(), attack);
            let json = serde_json::to_value(attack).unwrap();
            assert_eq!(json, attack.name());
        }
        let said = "AtOnce".parse::<Attack>().unwrap_err().to_string();
        assert!(said.contains("there are repeat, at-once"), "{said}");
    }
}
