//! Named points on the way of a task, where a proof may end or stop the process. Without the feature `failpoints`
//! nobody can listen, and passing one costs nothing.

/// A point on the way of a task, in the order they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Point {
    /// A new task is in storage, and its creator has not heard.
    TaskKept,
    /// A dispatch is about to be sent.
    Dispatched,
    /// The handler's answer is here, and storage does not know.
    AnswerHeard,
    /// The end of a task is in storage.
    EndKept,
    /// The next attempt of a task is in storage.
    RetryKept,
}

// === impl Point ===

impl Point {
    /// Every point.
    pub const ALL: [Self; 5] = [
        Self::TaskKept,
        Self::Dispatched,
        Self::AnswerHeard,
        Self::EndKept,
        Self::RetryKept,
    ];

    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::TaskKept => "task_persisted",
            Self::Dispatched => "dispatched",
            Self::AnswerHeard => "ack_received",
            Self::EndKept => "ack_persisted",
            Self::RetryKept => "retry_scheduled",
        }
    }
}

/// Tells whoever tests this process.
#[cfg(feature = "failpoints")]
pub(crate) fn pass(point: Point) {
    semel_rig::failpoint::pass(point.word());
}

/// Nobody can listen.
#[cfg(not(feature = "failpoints"))]
pub(crate) const fn pass(_point: Point) {}
