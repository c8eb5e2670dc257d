//! Named points on the way of a delivery, where a proof may end or stop the process. Without the feature
//! `failpoints` nobody can listen, and passing one costs nothing.

/// A point on the way of a delivery, in the order they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Point {
    /// The request was read whole; nothing was done about it.
    AfterAccept,
    /// The delivery has its key, and the store was not asked.
    BeforeClaim,
    /// The claim was granted.
    ClaimAnswered,
    /// The request for the handler is made, and nothing of it was sent.
    BeforeConnect,
    /// The handler's status and headers are here.
    AnswerBegun,
    /// The handler's answer is here, and the store does not know.
    AnswerRead,
    /// The store has answered about the end of the run.
    Recorded,
    /// The reply is made, and the sender has not heard it.
    BeforeReply,
    /// The gate was told to stop, and begins to finish what is in hand.
    DrainBegun,
}

// === impl Point ===

impl Point {
    /// Every point.
    pub const ALL: [Self; 9] = [
        Self::AfterAccept,
        Self::BeforeClaim,
        Self::ClaimAnswered,
        Self::BeforeConnect,
        Self::AnswerBegun,
        Self::AnswerRead,
        Self::Recorded,
        Self::BeforeReply,
        Self::DrainBegun,
    ];

    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::AfterAccept => "after_accept",
            Self::BeforeClaim => "before_claim",
            Self::ClaimAnswered => "claim_acked",
            Self::BeforeConnect => "before_connect",
            Self::AnswerBegun => "resp_headers",
            Self::AnswerRead => "resp_done",
            Self::Recorded => "complete_acked",
            Self::BeforeReply => "before_reply",
            Self::DrainBegun => "drain_start",
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
