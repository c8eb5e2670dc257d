//! What happened in a trial, event by event.

use serde::Serialize;
use std::time::Duration;

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
        /// The process that receives it, where it is known.
        to: Option<String>,
        /// What differs from the first time, if anything does.
        #[serde(skip_serializing_if = "Option::is_none")]
        variant: Option<String>,
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
        /// The process that asks, or is answered.
        process: String,
        /// What they say, as far as it can be read: a statement, a command, a request line.
        says: String,
        /// The values that are bound to a statement; a request's header that names its idempotency key.
        values: Vec<String>,
    },
    /// A dependency was made to fail.
    Fails {
        /// In which way.
        how: String,
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
    /// What stood at the end, for one entity.
    State {
        /// The effect's name.
        effect: String,
        /// Whose state.
        entity: String,
        /// Which version.
        version: u64,
    },
}

// === impl Event ===

impl Event {
    /// What a probe saw.
    pub(crate) fn effects(at: Duration, effect: String, id: String, count: u64) -> Self {
        Self {
            at,
            lane: "effects".to_owned(),
            what: What::Effects { effect, id, count },
        }
    }

    /// The delivery that it is about.
    pub(crate) fn delivery(&self) -> Option<&str> {
        match &self.what {
            What::Sent { id, .. }
            | What::Answered { id, .. }
            | What::Unanswered { id, .. }
            | What::Effects { id, .. }
            | What::State { entity: id, .. } => Some(id),
            What::Wire { .. }
            | What::Fails { .. }
            | What::Killed
            | What::Ended
            | What::Started
            | What::Paused
            | What::Resumed => None,
        }
    }

    /// The attempt that ended: its delivery, its number, and whether it was accepted.
    pub(crate) fn attempt_end(&self) -> Option<(&str, u32, bool)> {
        if let What::Unanswered { id, attempt, .. } = &self.what {
            return Some((id, *attempt, false));
        }
        let What::Answered {
            id,
            attempt,
            accepted,
            ..
        } = &self.what
        else {
            return None;
        };
        Some((id, *attempt, *accepted))
    }

    /// Whether the sender was told of a success.
    pub(crate) fn is_known_success(&self) -> bool {
        matches!(
            self.what,
            What::Answered {
                accepted: true,
                known: true,
                ..
            }
        )
    }

    /// Whether it is something that a sender did or heard.
    pub(crate) fn is_senders(&self) -> bool {
        matches!(
            self.what,
            What::Sent { .. } | What::Answered { .. } | What::Unanswered { .. }
        )
    }
}

/// Times are written in milliseconds.
pub(crate) fn millis<S: serde::Serializer>(span: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(span.as_secs_f64() * 1e3)
}
