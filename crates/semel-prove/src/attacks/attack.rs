//! The table of attacks: what each is called everywhere (in scenarios, on the command line, in reports), what it does,
//! what it needs, and how it is made.
//!
//! A new attack is a file beside this one with a function `run`, and an entry in the table.

use super::need::Need;
use super::overlap::First;
use super::session::Session;
use crate::BoxFuture;
use crate::error::Error;
use crate::world::sender::AnswerFate;
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
    /// A delivery that comes once more, with nothing else at work.
    Duplicate,
    /// Once more, after a while.
    Late,
    /// Once more, with other deliveries before it or beside it.
    Others,
    /// Once more, under another name of its transport or written in another way.
    Republished,
    /// Two deliveries about the same thing, the later one first.
    Reorder,
    /// Another payload under the same key.
    OtherPayload,
    /// A key that is missing or malformed.
    BadKey,
    /// Deliveries at work at the same time.
    Race,
    /// The same in two processes.
    SecondProcess,
    LostAnswer,
    /// A dependency answers with an error, late, or not at all.
    DependencyFails,
    Crash,
    Pause,
}

/// There is no attack of this name.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not an attack; there are {all}", all = Attack::ALL.map(Attack::name).join(", "))]
pub struct UnknownAttack(String);

/// Declares all attacks: the name and the words of each, the fault it brings, what it needs, and the file that makes it.
macro_rules! attacks {
    ($(
        $(#[$doc:meta])*
        $attack:ident = $name:literal, $does:literal,
            brings $fault:ident, needs [$($need:ident),*], made by $file:ident($($argument:expr)?);
    )*) => {
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
                    $(Self::$attack => &Definition {
                        name: $name,
                        does: $does,
                        fault: Fault::$fault,
                        needs: &[$(Need::$need),*],
                        run: |session| Box::pin(super::$file::run(session $(, $argument)?)),
                    },)*
                }
            }
        }
    };
}

// In the order in which they are made: the cheapest first.
attacks! {
    /// The same delivery once more after it succeeded.
    Repeat = "repeat", "delivered once more after it succeeded",
        brings Duplicate, needs [], made by repeat();
    /// The same delivery many times at once.
    AtOnce = "at-once", "delivered many times at once",
        brings Race, needs [], made by at_once();
    /// The same delivery again while the first still runs.
    WhileRunning = "while-running", "delivered again while the first still runs",
        brings Race, needs [], made by overlap(First::Stays);
    /// Other deliveries come between a delivery and its repeat.
    OthersBetween = "others-between", "others come between a delivery and its repeat",
        brings Others, needs [], made by others_between();
    /// The same thing in a new message, or written by another serialiser.
    Republish = "republish", "the same in a new message, or in other bytes",
        brings Republished, needs [Written], made by republish();
    /// The answer is lost after the handler finished.
    AnswerLost = "answer-lost", "the answer is lost after the handler finished",
        brings LostAnswer, needs [], made by lost_answer(AnswerFate::Lost);
    /// The connection breaks in the middle of the answer.
    AnswerCut = "answer-cut", "the connection breaks in the middle of the answer",
        brings LostAnswer, needs [Connection], made by lost_answer(AnswerFate::Cut);
    /// The sender's deadline passes while the handler still runs.
    DeadlinePassed = "deadline-passed", "the sender's deadline passes while the handler still runs",
        brings Race, needs [], made by overlap(First::GivenUp);
    /// A dependency fails, and the process lives.
    DependencyFails = "dependency-fails", "a dependency fails while the process lives",
        brings DependencyFails, needs [Process, Dependency], made by dependency_fails();
    /// A process is killed at a random moment.
    KillRandom = "kill-random", "killed at a random moment",
        brings Crash, needs [Process], made by kill_random();
    /// A process is killed after it answered, and the delivery comes again.
    KillAfterAnswer = "kill-after-answer", "killed after it answered, then delivered again",
        brings Crash, needs [Process], made by kill_after_answer();
    /// A process is killed at every boundary seen on the wire.
    CrashSweep = "crash-sweep", "killed at every boundary seen on the wire",
        brings Crash, needs [Process, Dependency], made by crash_sweep();
    /// A process is paused past its lease, another one takes the delivery, and the first goes on.
    Pause = "pause", "paused past its lease while another one takes over",
        brings Pause, needs [Process], made by pause();
    /// A newer delivery arrives before an older one.
    Reorder = "reorder", "a newer delivery before an older one",
        brings Reorder, needs [Entity], made by reorder();
    /// The same key with another payload.
    OtherPayload = "other-payload", "the same key with another payload",
        brings OtherPayload, needs [OtherBody], made by other_payload();
    /// Parts of the key missing or malformed.
    BadKey = "bad-key", "parts of the key missing or malformed",
        brings BadKey, needs [BadBody], made by bad_key();
    /// Two processes of the handler at once.
    TwoProcesses = "two-processes", "two processes of the handler at once",
        brings SecondProcess, needs [Process, Addressing, OwnHandler], made by two_processes();
    /// The same delivery once more, much later.
    RepeatLate = "repeat-late", "delivered once more at the end of the run",
        brings Late, needs [], made by repeat_late();
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
