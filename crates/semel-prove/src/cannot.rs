//! Why no verdict could be reached. None of these says anything about the handler.

/// No verdict: something that `semel prove` needs did not work.
#[derive(Debug, thiserror::Error)]
pub enum CannotJudge {
    /// The scenario says something that cannot be meant.
    #[error("the scenario cannot be used: {0}")]
    Scenario(String),
    /// A process never became ready, or would not come back.
    #[error("process `{name}` did not start: {why}{log}")]
    Process {
        /// Which.
        name: String,
        /// What was waited for in vain.
        why: String,
        /// The end of what it printed, on lines of its own.
        log: String,
    },
    /// A step of `[[before]]` failed.
    #[error("`before` failed: {0}")]
    Before(String),
    /// A probe failed, so nobody knows how many effects there are.
    #[error("effect `{effect}` cannot be seen: {why}")]
    Probe {
        /// The effect's name.
        effect: String,
        /// What went wrong.
        why: String,
    },
    /// The handler does not do its work even when it is left alone.
    #[error("a single delivery, left undisturbed, went wrong, so there is nothing to attack: {0}")]
    Undisturbed(String),
    /// The machine refused something.
    #[error("{what}: {why}; a retry is safe")]
    Machine {
        /// What was wanted.
        what: String,
        /// What the machine said.
        why: String,
    },
}

// === impl CannotJudge ===

impl CannotJudge {
    pub(crate) fn machine(what: impl Into<String>, why: impl std::fmt::Display) -> Self {
        Self::Machine {
            what: what.into(),
            why: why.to_string(),
        }
    }
}
