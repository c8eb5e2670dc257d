//! What came of the trials of an attack, and the verdict that follows.

use super::trial::Finding;
use crate::judge::shrink::shrink;
use crate::judge::verdict::{Broken, Verdict};
use crate::report::Coverage;

/// What came of an attack.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) trials: u32,
    pub(crate) hits: u32,
    pub(crate) broken: Option<Finding>,
    /// Why the attack cannot be made, or never hit.
    pub(crate) why: Option<String>,
    /// How much of what there is was tried, where that can be counted.
    pub(crate) coverage: Option<Coverage>,
    /// What the verdict does not say.
    pub(crate) remarks: Vec<String>,
}

// === impl Tally ===

impl Tally {
    /// It cannot be made.
    pub(crate) fn not_run(why: impl Into<String>) -> Self {
        Self {
            why: Some(why.into()),
            ..Self::default()
        }
    }

    /// One more trial. Whether the attack is over: one conviction is enough.
    pub(super) fn add(&mut self, finding: Finding, hit: bool) -> bool {
        self.trials += 1;
        self.hits += u32::from(hit);
        let breaks = finding.breach.is_some();
        if breaks {
            self.broken = Some(finding);
        }
        breaks
    }

    /// What these trials come to.
    pub(crate) fn verdict(self) -> Verdict {
        if let Some(broken) = self.broken.and_then(Finding::broken) {
            return broken;
        }
        let why = self.why.unwrap_or_else(|| "the fault never hit".to_owned());
        match (self.trials, self.hits) {
            (0, _) => Verdict::NotRun { why },
            (_, 0) => Verdict::Vacuous { why },
            (_, _) => Verdict::Held,
        }
    }
}

// === impl Finding ===

impl Finding {
    /// The verdict on a trial that broke the promise.
    pub(crate) fn broken(self) -> Option<Verdict> {
        let breach = self.breach?;
        Some(Verdict::Broken(Box::new(Broken {
            how: breach.kind,
            seen: breach.seen,
            timeline: shrink(&self.events),
            pattern: None,
        })))
    }
}
