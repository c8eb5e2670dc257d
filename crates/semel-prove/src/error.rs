//! Why no verdict could be reached. None of these says anything about the handler.

/// No verdict: something that `semel prove` needs did not work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The scenario says something that cannot be meant.
    #[error("the scenario cannot be used: {0}")]
    Scenario(String),
    /// A process never became ready.
    #[error("process `{name}` did not start: {0}", name = .0.name)]
    ProcessStart(NotReady),
    /// A process that ran before would not come back: that is the handler's own fault.
    #[error("process `{name}` did not come back after it had ended: {0}", name = .0.name)]
    ProcessRestart(NotReady),
    /// A second process of the handler would not start beside the first: attacks that need one are not run.
    #[error("a second process of the handler cannot be had: {0}")]
    SecondProcess(String),
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
    Baseline(String),
    /// The system refused something.
    #[error("{what}: {why}; a retry is safe")]
    System {
        /// What was wanted.
        what: String,
        /// What the system said.
        why: String,
    },
}

/// A process that was started and did not become ready.
#[derive(Debug, thiserror::Error)]
#[error("{why}{log}")]
pub struct NotReady {
    pub(crate) name: String,
    /// What was waited for in vain.
    pub(crate) why: String,
    /// The end of what it printed, on lines of its own.
    pub(crate) log: String,
}

// === impl Error ===

impl Error {
    /// In one line: of what a process printed only the end.
    pub(crate) fn brief(&self) -> String {
        let whole = self.to_string();
        let mut lines = whole.lines().filter(|line| !line.trim().is_empty());
        let first = lines.next().unwrap_or_default();
        match lines.next_back() {
            Some(last) => format!("{} {}", first.trim_end(), last.trim()),
            None => first.to_owned(),
        }
    }

    pub(crate) fn system(what: impl Into<String>, why: impl std::fmt::Display) -> Self {
        Self::System {
            what: what.into(),
            why: why.to_string(),
        }
    }
}
