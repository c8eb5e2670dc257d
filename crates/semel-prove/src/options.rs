//! How a scenario is run, and what is told meanwhile.

use crate::attacks::attack::Attack;
use crate::report::AttackReport;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// How a scenario is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The same seed makes the same deliveries and faults in the same order.
    pub seed: u64,
    /// What the ids of this run begin with: new for every run, so that no run takes another's traces for its own.
    pub id_prefix: String,
    /// How thorough to be.
    pub profile: Profile,
    /// At how many boundaries of the wire a process is killed in the quick profile; the full one takes all.
    pub crash_points_max: usize,
    /// The scenario's directory: commands run there, and `{here}` is it.
    pub directory: PathBuf,
    /// The program `semel`, which runs a scenario's `[gate]`.
    pub semel: PathBuf,
    /// The caller's environment: processes inherit it, and dependencies without a `url` are looked up in it.
    pub environment: BTreeMap<String, String>,
    /// Only these attacks; all when empty.
    pub only: Vec<Attack>,
}

/// How thorough to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Seconds: for every push.
    Quick,
    /// Every boundary, more races: for every night.
    Full,
}

/// What is going on, for a progress bar.
#[derive(Clone, Debug)]
pub enum Progress {
    /// The processes are being started.
    Starting,
    /// An attack begins.
    Began {
        /// Which.
        attack: Attack,
        /// Begins with 1.
        number: usize,
        /// How many there will be.
        of: usize,
    },
    /// One more trial of an attack was made.
    Tried {
        /// Which.
        attack: Attack,
        /// Begins with 1.
        trial: u32,
    },
    /// An attack has ended.
    Ended(AttackReport),
}

// === impl Options ===

#[cfg(test)]
impl Options {
    /// A quick run, with nothing in its environment but this.
    pub(crate) fn sample(variable: &str, value: &str) -> Self {
        Self {
            seed: 1,
            id_prefix: "m".to_owned(),
            profile: Profile::Quick,
            crash_points_max: 5,
            directory: ".".into(),
            semel: "semel".into(),
            environment: BTreeMap::from([(variable.to_owned(), value.to_owned())]),
            only: Vec::new(),
        }
    }
}

// === impl Profile ===

impl Profile {
    /// The one or the other.
    pub(crate) fn pick<T>(self, quick: T, full: T) -> T {
        match self {
            Self::Quick => quick,
            Self::Full => full,
        }
    }
}
