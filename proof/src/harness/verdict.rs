//! Verdicts: what a checker found broken, by the rules that it knows.

use std::collections::BTreeMap;
use std::fmt::Debug;

/// How many violations of a rule are spelt out.
const SHOWN_PER_RULE: usize = 5;

/// What a checker found.
#[derive(Clone, Debug)]
pub(crate) struct Verdict<R> {
    /// What was broken.
    pub(crate) violations: Vec<Violation<R>>,
}

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation<R> {
    pub(crate) rule: R,
    /// On which piece of work or key, by number.
    pub(crate) subject: u32,
    /// What was seen.
    pub(crate) seen: String,
}

// === impl Verdict ===

impl<R> Default for Verdict<R> {
    fn default() -> Self {
        let violations = Vec::new();
        Self { violations }
    }
}

impl<R: Copy + Debug + Ord> Verdict<R> {
    pub(crate) fn convict(&mut self, rule: R, subject: u32, seen: impl Into<String>) {
        let seen = seen.into();
        self.violations.push(Violation {
            rule,
            subject,
            seen,
        });
    }

    /// How often a rule was broken.
    pub(crate) fn count(&self, rule: R) -> usize {
        self.violations.iter().filter(|it| it.rule == rule).count()
    }

    /// The broken rules, spelt out; `subject` says what they are about.
    pub(crate) fn complaints(&self, subject: &str) -> Vec<String> {
        let mut by_rule: BTreeMap<R, Vec<&Violation<R>>> = BTreeMap::new();
        for violation in &self.violations {
            by_rule.entry(violation.rule).or_default().push(violation);
        }
        let mut complaints = Vec::new();
        for (rule, violations) in by_rule {
            complaints.push(format!("{rule:?} broken {} times", violations.len()));
            let shown = violations.iter().take(SHOWN_PER_RULE);
            complaints.extend(shown.map(|it| format!("  {subject} {}: {}", it.subject, it.seen)));
        }
        complaints
    }
}
