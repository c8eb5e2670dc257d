//! What the suite says in the end.

use std::fmt;

/// Every behaviour held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The names of the behaviours, as `group::behaviour`, in the order they ran.
    pub held: Vec<String>,
}

/// Some behaviours did not hold.
#[derive(Clone, PartialEq, Eq)]
pub struct Violations {
    /// Each behaviour that did not hold.
    pub broken: Vec<Violation>,
    /// The names of those that did.
    pub held: Vec<String>,
}

/// A behaviour that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Its name, as `group::behaviour`.
    pub behaviour: String,
    /// What should have been answered, and to what.
    pub expected: String,
    /// What was answered.
    pub answered: String,
}

// === impl Report ===

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "all {} behaviours held", self.held.len())
    }
}

// === impl Violations ===

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.broken.len() + self.held.len();
        write!(f, "{} of {all} behaviours did not hold:", self.broken.len())?;
        self.broken
            .iter()
            .try_for_each(|violation| write!(f, "\n{violation}"))
    }
}

/// As readable as `Display`, because this is what a failed `unwrap` prints.
impl fmt::Debug for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Violations {}

// === impl Violation ===

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "- {}\n    expected: {}\n    answered: {}",
            self.behaviour, self.expected, self.answered
        )
    }
}
