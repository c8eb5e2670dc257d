//! What came out: a verdict for each attack, with the smallest timeline for what broke.

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

/// How an attack ended.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// The promise held in every trial.
    Held,
    /// It did not.
    Broken(Box<Broken>),
    /// The fault never hit: this proves nothing.
    Vacuous {
        /// Why not.
        why: String,
    },
    /// The attack could not be made.
    NotRun {
        /// Why not.
        why: String,
    },
}

/// A promise that was broken.
#[derive(Clone, Debug, Serialize)]
pub struct Broken {
    /// In which way.
    pub how: BreachKind,
    /// One sentence: what was seen.
    pub seen: String,
    /// The smallest timeline that was found.
    pub timeline: Vec<Event>,
    /// What the mistake is called, if it is known, and what to do instead.
    pub pattern: Option<Pattern>,
}

/// In which way a promise was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BreachKind {
    /// More effects than promised.
    EffectTwice,
    /// Fewer effects than promised, although the sender did its part.
    EffectLost,
    /// A repeat was answered differently.
    AnswersDiffer,
    /// It is refused again and again although nothing runs any more.
    Stuck,
    /// A delivery that can never succeed is asked for again for ever.
    Poison,
    /// A delivery ends the process that handles it.
    Died,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Event {
    /// Since the trial began.
    #[serde(rename = "at_ms", serialize_with = "millis")]
    pub at: Duration,
    /// Where: `sender`, a process's name, a dependency's variable.
    pub lane: String,
    /// What.
    #[serde(flatten)]
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum What {
    /// A delivery was sent.
    Sent {
        /// The delivery's id.
        id: String,
        /// Begins with 1.
        attempt: u32,
    },
    /// It was answered.
    Answered {
        /// The delivery's id.
        id: String,
        /// Begins with 1.
        attempt: u32,
        /// The status; a command's exit code.
        status: u16,
        /// Whether the sender takes it for a success.
        accepted: bool,
        /// Whether the sender got to know it.
        known: bool,
    },
    /// No answer came.
    Unanswered {
        /// The delivery's id.
        id: String,
        /// Begins with 1.
        attempt: u32,
        /// Refused, broken off, or too late.
        why: String,
    },
    /// Bytes went to or came from a dependency.
    Wire {
        /// Counts the boundaries of a trial.
        boundary: u32,
        /// Whether they went to the dependency.
        outward: bool,
        /// What they say, as far as it can be read: a statement, a command, a request line.
        says: String,
    },
    /// A process was killed.
    Killed,
    /// A process ended by itself.
    Ended,
    /// A process was started.
    Started,
    /// A process was paused.
    Paused,
    /// It went on.
    Resumed,
    /// What a probe saw at the end, for one delivery.
    Effects {
        /// The effect's name.
        effect: String,
        /// The delivery's id.
        id: String,
        /// How often.
        count: u64,
    },
}

/// A mistake that has a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pattern {
    /// Its name, as `check-then-act`.
    pub name: &'static str,
    /// One sentence that says what it is.
    pub is: &'static str,
    /// One sentence that says what to do instead.
    pub instead: &'static str,
}

fn millis<S: serde::Serializer>(span: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(span.as_secs_f64() * 1e3)
}
