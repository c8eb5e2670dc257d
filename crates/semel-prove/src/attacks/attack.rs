//! The table of attacks: what each is called everywhere (in scenarios, on the command line, in reports), what it does,
//! what it needs, and how it is made.
//!
//! A new attack is a file beside this one with a [`Definition`], and a line in the table.

use super::need::Need;
use super::session::Session;
use crate::BoxFuture;
use crate::error::Error;
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// What an attack says of itself.
#[derive(Debug)]
pub(crate) struct Definition {
    /// As in `semel prove --only NAME`.
    pub(super) name: &'static str,
    /// What it does, in one line.
    pub(super) does: &'static str,
    pub(crate) fault: Fault,
    /// Without these it is not run.
    pub(super) needs: &'static [Need],
    /// Makes its trials, until one breaks the promise. What came of them is in the session's tally.
    pub(super) run: for<'s> fn(&'s mut Session<'_>) -> BoxFuture<'s, Result<(), Error>>,
}

/// Which fault an attack brings: it tells what kind of mistake lets the attack succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A delivery that comes once more, or is not what it should be, with nothing else at work.
    Duplicate,
    /// Deliveries at work at the same time.
    Race,
    /// The same in two processes.
    SecondProcess,
    LostAnswer,
    Crash,
    Pause,
}

/// There is no attack of this name.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not an attack; there are {all}", all = Attack::ALL.map(Attack::name).join(", "))]
pub struct UnknownAttack(String);

/// Declares all attacks, each with its definition.
macro_rules! attacks {
    ($($(#[$doc:meta])* $attack:ident = $definition:path,)*) => {
        /// What is done to a handler.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
        #[serde(into = "&'static str")]
        pub enum Attack {
            $($(#[$doc])* $attack,)*
        }

        impl Attack {
            /// All attacks, in the order in which they are made.
            pub const ALL: [Self; [$(Self::$attack),*].len()] = [$(Self::$attack),*];

            pub(crate) const fn definition(self) -> &'static Definition {
                match self {
                    $(Self::$attack => &$definition,)*
                }
            }
        }
    };
}

// In the order in which they are made: the cheapest first.
attacks! {
    /// The same delivery once more after it succeeded.
    Repeat = super::repeat::REPEAT,
    /// The same delivery many times at once.
    AtOnce = super::at_once::AT_ONCE,
    /// The same delivery again while the first still runs.
    WhileRunning = super::overlap::WHILE_RUNNING,
    /// The answer is lost after the handler finished.
    AnswerLost = super::lost_answer::ANSWER_LOST,
    /// The connection breaks in the middle of the answer.
    AnswerCut = super::lost_answer::ANSWER_CUT,
    /// The sender's deadline passes while the handler still runs.
    DeadlinePassed = super::overlap::DEADLINE_PASSED,
    /// A process is killed at a random moment.
    KillRandom = super::kill_random::KILL_RANDOM,
    /// A process is killed at every boundary seen on the wire.
    CrashSweep = super::crash_sweep::CRASH_SWEEP,
    /// A process is paused past its lease, another one takes the delivery, and the first goes on.
    Pause = super::pause::PAUSE,
    /// Two deliveries arrive in the wrong order.
    Reorder = super::reorder::REORDER,
    /// The same key with another payload.
    OtherPayload = super::other_payload::OTHER_PAYLOAD,
    /// Parts of the key missing or malformed.
    BadKey = super::bad_key::BAD_KEY,
    /// Two processes of the handler at once.
    TwoProcesses = super::two_processes::TWO_PROCESSES,
}

// === impl Attack ===

impl Attack {
    /// Its place among all attacks, from 1: the same whichever were chosen.
    pub(super) fn number(self) -> u64 {
        self as u64 + 1
    }

    /// Its name, as in `semel prove --only NAME`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.definition().name
    }

    /// What it does, in one line.
    #[must_use]
    pub fn does(self) -> &'static str {
        self.definition().does
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
        let found = Self::ALL.into_iter().find(|attack| attack.name() == name);
        found.ok_or_else(|| UnknownAttack(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for attack in Attack::ALL {
            assert_eq!(attack.to_string().parse::<Attack>().unwrap(), attack);
            let json = serde_json::to_value(attack).unwrap();
            assert_eq!(json, attack.name());
        }
        let said = "AtOnce".parse::<Attack>().unwrap_err().to_string();
        assert!(said.contains("there are repeat, at-once"), "{said}");
    }

    #[test]
    fn documentation_names_every_attack() {
        let documentation = include_str!("../../../../docs/prove.md");
        let (_, section) = documentation.split_once("## The attacks").unwrap();
        for attack in Attack::ALL {
            let named = section
                .lines()
                .any(|line| line.starts_with(&format!("| `{attack}` |")));
            assert!(named, "{attack}");
        }
    }
}
