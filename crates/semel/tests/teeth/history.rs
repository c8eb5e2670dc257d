//! What can be wrong with a store that remembers attempts, shows steps and has an index.

use super::fault::Fault;
use bytes::Bytes;
use semel::clock::Time;
use semel::protocol::{Decision, Operation, Record, Superseded};

impl Fault {
    /// What a store with this fault adds to a history.
    pub(crate) fn supersedes(
        self,
        decision: &mut Decision,
        operation: &Operation,
        old: Option<&Record>,
        now: Time,
    ) {
        let Some(new) = &mut decision.write else {
            return;
        };
        let claims = matches!(operation, Operation::Claim(_));
        let ends = old.is_some_and(|old| old.born != new.born)
            || matches!(operation, Operation::Forget(_));
        match (self, old) {
            (Self::HistoryIsNotKept, _) => decision.superseded = None,
            (Self::ActsAreNotRemembered, _) if !claims => decision.superseded = None,
            (Self::HistoryOutlivesTheIncarnation, Some(old)) if ends => {
                new.history.clone_from(&old.history);
            }
            (Self::RenewalsAreRemembered, Some(old))
                if matches!(operation, Operation::Renew { .. }) =>
            {
                decision.superseded = Some(Superseded {
                    fence: old.fence,
                    state: old.state,
                    in_doubt: old.in_doubt,
                    until: old.lease_until,
                    at: now,
                    by: Bytes::new(),
                    result: Bytes::new(),
                });
            }
            _ => {}
        }
        if let Some(superseded) = &mut decision.superseded {
            match self {
                Self::HistoryForgetsWho => superseded.by = Bytes::new(),
                Self::HistoryKeepsTheNewFence => superseded.fence = new.fence,
                Self::HistoryKeepsNoReason => superseded.result = Bytes::new(),
                _ => {}
            }
        }
    }
}
