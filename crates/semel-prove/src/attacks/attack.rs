//! What can be done to a handler, and what each attack is called, everywhere: in scenarios, on the command line, in
//! reports.

use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// What is done to a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "&'static str")]
pub enum Attack {
    /// The same delivery once more after it succeeded.
    Repeat,
    /// The same delivery many times at once.
    AtOnce,
    /// The same delivery again while the first still runs.
    WhileRunning,
    /// The answer is lost after the handler finished.
    AnswerLost,
    /// The connection breaks in the middle of the answer.
    AnswerCut,
    /// The sender's deadline passes while the handler still runs.
    DeadlinePassed,
    /// A process is killed at a random moment.
    KillRandom,
    /// A process is killed at every boundary seen on the wire.
    CrashSweep,
    /// A process is paused past its lease, another one takes the delivery, and the first goes on.
    Pause,
    /// Two deliveries arrive in the wrong order.
    Reorder,
    /// The same key with another payload.
    OtherPayload,
    /// Parts of the key missing or malformed.
    BadKey,
    /// Two processes of the handler at once.
    TwoProcesses,
}

/// There is no attack of this name.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no attack; there are {all}", all = names())]
pub struct UnknownAttack(String);

/// All attacks, in the order they are made: the cheapest first.
pub(crate) const ALL: [Attack; 13] = [
    Attack::Repeat,
    Attack::AtOnce,
    Attack::WhileRunning,
    Attack::AnswerLost,
    Attack::AnswerCut,
    Attack::DeadlinePassed,
    Attack::KillRandom,
    Attack::CrashSweep,
    Attack::Pause,
    Attack::Reorder,
    Attack::OtherPayload,
    Attack::BadKey,
    Attack::TwoProcesses,
];

// === impl Attack ===

impl Attack {
    /// Its place among all attacks, from 1: the same whichever were chosen.
    pub(super) fn number(self) -> u64 {
        let at = (1..).zip(ALL).find(|(_, one)| *one == self);
        at.map_or(0, |(number, _)| number)
    }

    /// Whether it kills, pauses or adds processes.
    pub(super) fn needs_process(self) -> bool {
        matches!(
            self,
            Self::KillRandom | Self::CrashSweep | Self::Pause | Self::TwoProcesses
        )
    }

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
