//! What came out of an attack, and what is known of what broke.

use super::timeline::Event;
use serde::Serialize;

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
    /// An older state stands although a newer one was acknowledged.
    OldWins,
    /// A repeat was answered differently.
    AnswersDiffer,
    /// It is refused again and again although nothing runs any more.
    Stuck,
    /// A delivery that can never succeed is asked for again for ever.
    Poison,
    /// A delivery ends the process that handles it.
    Died,
}

/// A mistake that has a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pattern {
    /// Its name, as `check-then-act`.
    pub name: &'static str,
    /// What was seen that speaks for it.
    pub evidence: String,
    /// One sentence that says what it means.
    pub is: &'static str,
    /// One sentence that says what to do instead.
    pub instead: &'static str,
}
