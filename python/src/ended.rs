//! What became of a call, as Python reads it.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use semel::outcome::Body;
use semel::protocol::{Ending, State};
use semel::work::FailureKind;
use semel::{Key, Outcome, Recorded};
use std::time::Duration;

/// What became of a call.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct Ended {
    /// `ran`, `replayed`, `failed`, `unrecorded`, `unread`, `busy`, `not_yet`, `full`, `parked`, `mismatched`, `stale`.
    #[pyo3(get)]
    word: &'static str,
    /// The work's key.
    #[pyo3(get)]
    key: String,
    /// Whether what is recorded is a final failure.
    #[pyo3(get)]
    is_final: bool,
    /// When to try again, in seconds.
    #[pyo3(get)]
    retry_after: Option<f64>,
    /// Whether a failed run left its record parked.
    #[pyo3(get)]
    is_parked: bool,
    /// Whether a failed run may have taken effect.
    #[pyo3(get)]
    in_doubt: bool,
    /// The fence of the run, if this call ran; 0 otherwise.
    #[pyo3(get)]
    fence: u64,
    /// Which run of the work it was, if this call ran; 0 otherwise.
    #[pyo3(get)]
    attempt: u32,
    outcome: Option<Outcome>,
}

// === impl Ended ===

#[pymethods]
impl Ended {
    /// What the outcome says; `None` when it was not kept.
    #[getter]
    fn body<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        match &self.outcome.as_ref()?.body {
            Body::Kept(bytes) => Some(PyBytes::new(py, bytes)),
            Body::NotKept => None,
        }
    }

    /// The outcome's status, if there is one.
    #[getter]
    fn status(&self) -> Option<u16> {
        self.outcome.as_ref().map(|outcome| outcome.status)
    }

    fn __repr__(&self) -> String {
        format!("<semel ended: {}>", self.word)
    }
}

impl Ended {
    pub(crate) fn of(key: &Key, ended: &semel::Ended) -> Self {
        use semel::Ended as E;
        let ended = match ended {
            E::Ran(recorded) => Self::recorded("ran", recorded),
            E::Replayed(recorded) => Self::recorded("replayed", recorded),
            E::Unrecorded(recorded) => Self::recorded("unrecorded", recorded),
            E::Failed(failed) => Self {
                is_parked: failed.state == State::Parked,
                in_doubt: failed.failure.kind == FailureKind::InDoubt,
                retry_after: failed.failure.after.map(|after| after.as_secs_f64()),
                outcome: Some(failed.failure.outcome.clone()),
                ..Self::plain("failed")
            },
            E::Unread => Self::plain("unread"),
            E::Busy { retry_after } => Self::again("busy", *retry_after),
            E::NotYet { retry_after } => Self::again("not_yet", *retry_after),
            E::Full { retry_after } => Self::again("full", *retry_after),
            E::Parked => Self::plain("parked"),
            E::Mismatched => Self::plain("mismatched"),
            E::Stale => Self::plain("stale"),
        };
        Self {
            key: key.to_string(),
            ..ended
        }
    }

    /// Of a call that ran.
    pub(crate) fn with_run(self, fence: u64, attempt: u32) -> Self {
        Self {
            fence,
            attempt,
            ..self
        }
    }

    fn recorded(word: &'static str, recorded: &Recorded) -> Self {
        Self {
            is_final: recorded.ending == Ending::Failed,
            outcome: Some(recorded.outcome.clone()),
            ..Self::plain(word)
        }
    }

    fn again(word: &'static str, retry_after: Duration) -> Self {
        Self {
            retry_after: Some(retry_after.as_secs_f64()),
            ..Self::plain(word)
        }
    }

    const fn plain(word: &'static str) -> Self {
        Self {
            word,
            key: String::new(),
            is_final: false,
            retry_after: None,
            is_parked: false,
            in_doubt: false,
            fence: 0,
            attempt: 0,
            outcome: None,
        }
    }
}
