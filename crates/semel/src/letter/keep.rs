//! Whether a delivery is to be kept as a letter, by the record of its key.

use super::Reason;
use crate::Fingerprint;
use crate::record::{Fence, Record, State};

/// What the record of a delivery's key says, just before the delivery is acknowledged without success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepDecision {
    /// It is to be kept, under this fence.
    Keep(Fence),
    /// Its work has succeeded meanwhile: there is nothing to keep.
    Succeeded,
    /// What it was told of is not decided yet, or no longer so: its sender must keep it.
    Unsettled,
}

// === impl KeepDecision ===

impl KeepDecision {
    /// By the record of its key. `ran` is the fence of the delivery's own run, if it ran.
    #[must_use]
    pub fn of(
        reason: Reason,
        record: Option<&Record>,
        fingerprint: &Fingerprint,
        ran: Option<Fence>,
    ) -> Self {
        let Some(record) = record else {
            // Without a fence nobody could tell it from a duplicate of what was closed. Where nobody delivers it again,
            // that is left to the store: it keeps what it has no tombstone of.
            let unnamed = match reason {
                Reason::Exhausted => Self::Keep(Fence(0)),
                Reason::Parked
                | Reason::Failed
                | Reason::Mismatched
                | Reason::Invalid
                | Reason::Running => Self::Unsettled,
            };
            return ran.map_or(unnamed, Self::Keep);
        };
        let same = record.fingerprint == *fingerprint;
        match (reason, record.state) {
            (reason, State::Succeeded) if same && reason.is_of_own_key() => Self::Succeeded,
            (
                Reason::Parked
                | Reason::Failed
                | Reason::Invalid
                | Reason::Running
                | Reason::Exhausted,
                _,
            ) => Self::Keep(record.fence),
            // The living carrier of unfinished work is never swallowed.
            (Reason::Mismatched, State::Running | State::Waiting) => Self::Unsettled,
            (Reason::Mismatched, State::Succeeded | State::Failed | State::Parked) if same => {
                Self::Unsettled
            }
            (Reason::Mismatched, State::Succeeded | State::Failed | State::Parked) => {
                Self::Keep(record.fence)
            }
        }
    }
}
