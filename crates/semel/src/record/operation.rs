//! The protocol's two nouns: what can be asked of a store, and what it answers.

use super::{
    Acted, BY_BYTES_MAX, Claim, Claimed, Fail, Finding, Held, Lease, Record, Resolution, StepBegun,
    StepRecord,
};
use crate::Key;
use crate::store::{
    Error, validate_bytes, validate_index, validate_lease, validate_result, validate_step_name,
};
use bytes::Bytes;
use std::time::Duration;

/// One operation on the record of one key: one atomic step of a store.
///
/// [`decide`](fn@super::decide) says what each of them does. [`StoreExt`](crate::store::StoreExt) has a typed method for each.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Ask to run.
    Claim(Claim),
    /// Keep the right to run.
    Renew {
        /// Whose right.
        lease: Lease,
        /// How long it lasts from now on.
        lease_for: Duration,
        /// How long the outcome is remembered.
        retention: Duration,
    },
    /// Record success.
    Complete {
        /// Whose success.
        lease: Lease,
        /// An encoded [`Outcome`](crate::Outcome).
        result: Bytes,
        /// How long it is remembered.
        retention: Duration,
    },
    /// Record a failure.
    Fail {
        /// Whose failure.
        lease: Lease,
        /// What kind of failure, and what follows from it.
        how: Fail,
    },
    /// Give up a lease under which nothing of the effect was begun.
    Release {
        /// Lease to give up.
        lease: Lease,
        /// Age of the work from which it is parked instead of waiting; `None` is no limit.
        park_after: Option<Duration>,
    },
    /// Read.
    Look(Key),
    /// Begin a step.
    StepBegin {
        /// The run.
        lease: Lease,
        /// The step.
        name: String,
    },
    /// Begin a step again that was in doubt.
    StepRestart {
        /// The run.
        lease: Lease,
        /// The step.
        name: String,
    },
    /// Record the result of a step that this run began.
    StepComplete {
        /// The run.
        lease: Lease,
        /// The step.
        name: String,
        /// What it came to.
        result: Bytes,
    },
    /// An operator says what became of a parked run, or of the lapsed run that the resolution names.
    Resolve {
        /// Of which key.
        key: Key,
        /// What became of it.
        how: Resolution,
        /// Who says so, and why: for the history.
        by: Bytes,
    },
    /// An operator makes a parked or failed record claimable again.
    Redrive {
        /// Of which key.
        key: Key,
        /// Who does it, and why: for the history.
        by: Bytes,
    },
    /// Prolong the retention of a record that has not succeeded, because an open letter refers to it.
    Retain {
        /// Key of the record.
        key: Key,
        /// Minimum retention from now on.
        retention: Duration,
    },
    /// An operator takes the right to run from whoever has it.
    ReleaseByOperator {
        /// Of which key.
        key: Key,
        /// Who does it, and why: for the history.
        by: Bytes,
    },
    /// An operator ends the incarnation: result, label, history, steps and what the index has of the key go at once.
    Forget(Key),
    /// Show the steps of the current incarnation.
    Steps(Key),
    /// Keep transport ids under which the key can be found. Best effort: no claim reads them.
    Index {
        /// What is found.
        key: Key,
        /// Under which ids: the names of tasks, messages and events.
        ids: Vec<Bytes>,
        /// For how long.
        keep: Duration,
    },
    /// Find keys by a transport id.
    Find(Bytes),
    /// Whether a claim could be granted and its end recorded now: the store is asked, and writes something. Whoever
    /// decides whether to send deliveries here asks this every few seconds.
    Ready,
}

/// The answer to an [`Operation`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum Answer {
    /// To a claim.
    Claimed(Claimed),
    /// To renew, complete, fail and release, and to restarting and completing a step.
    Held(Held),
    /// To look.
    Looked(Option<Record>),
    /// To beginning a step.
    StepBegun(StepBegun),
    /// To an operator's or a keeper's act.
    Acted(Acted),
    /// To steps: by name, at most [`STEPS_SHOWN_MAX`](crate::store::STEPS_SHOWN_MAX), each result cut to
    /// [`STEP_SHOWN_BYTES_MAX`](crate::store::STEP_SHOWN_BYTES_MAX).
    Steps(Vec<(String, StepRecord)>),
    /// To index.
    Indexed,
    /// To find: at most [`FOUND_KEYS_MAX`](crate::store::FOUND_KEYS_MAX), in the order of keys.
    Found(Vec<Key>),
    /// To ready.
    Ready,
}

// === impl Operation ===

impl Operation {
    /// The word for it, as metrics and logs say it.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Claim(_) => "claim",
            Self::Renew { .. } => "renew",
            Self::Complete { .. } => "complete",
            Self::Fail { .. } => "fail",
            Self::Release { .. } => "release",
            Self::Look(_) => "look",
            Self::StepBegin { .. } => "step_begin",
            Self::StepRestart { .. } => "step_restart",
            Self::StepComplete { .. } => "step_complete",
            Self::Resolve { .. } => "resolve",
            Self::Redrive { .. } => "redrive",
            Self::Retain { .. } => "retain",
            Self::ReleaseByOperator { .. } => "release_by_operator",
            Self::Forget(_) => "forget",
            Self::Steps(_) => "steps",
            Self::Index { .. } => "index",
            Self::Find(_) => "find",
            Self::Ready => "ready",
        }
    }

    /// The key it is about; `None` when it is about the store.
    #[must_use]
    pub const fn key(&self) -> Option<&Key> {
        match self {
            Self::Claim(claim) => Some(&claim.key),
            Self::Look(key)
            | Self::Resolve { key, .. }
            | Self::Redrive { key, .. }
            | Self::Retain { key, .. }
            | Self::ReleaseByOperator { key, .. }
            | Self::Forget(key)
            | Self::Steps(key)
            | Self::Index { key, .. } => Some(key),
            Self::Renew { lease, .. }
            | Self::Complete { lease, .. }
            | Self::Fail { lease, .. }
            | Self::Release { lease, .. }
            | Self::StepBegin { lease, .. }
            | Self::StepRestart { lease, .. }
            | Self::StepComplete { lease, .. } => Some(&lease.key),
            Self::Find(_) | Self::Ready => None,
        }
    }

    /// The lease that it is made under, if it is.
    #[must_use]
    pub const fn lease(&self) -> Option<&Lease> {
        match self {
            Self::Renew { lease, .. }
            | Self::Complete { lease, .. }
            | Self::Fail { lease, .. }
            | Self::Release { lease, .. }
            | Self::StepBegin { lease, .. }
            | Self::StepRestart { lease, .. }
            | Self::StepComplete { lease, .. } => Some(lease),
            Self::Claim(_)
            | Self::Look(_)
            | Self::Resolve { .. }
            | Self::Redrive { .. }
            | Self::Retain { .. }
            | Self::ReleaseByOperator { .. }
            | Self::Forget(_)
            | Self::Steps(_)
            | Self::Index { .. }
            | Self::Find(_)
            | Self::Ready => None,
        }
    }

    /// The run and the name of the step that it is about, if it is about one.
    #[must_use]
    pub fn step(&self) -> Option<(&Lease, &str)> {
        match self {
            Self::StepBegin { lease, name }
            | Self::StepRestart { lease, name }
            | Self::StepComplete { lease, name, .. } => Some((lease, name)),
            Self::Claim(_)
            | Self::Renew { .. }
            | Self::Complete { .. }
            | Self::Fail { .. }
            | Self::Release { .. }
            | Self::Look(_)
            | Self::Resolve { .. }
            | Self::Redrive { .. }
            | Self::Retain { .. }
            | Self::ReleaseByOperator { .. }
            | Self::Forget(_)
            | Self::Steps(_)
            | Self::Index { .. }
            | Self::Find(_)
            | Self::Ready => None,
        }
    }

    /// The result that it records, if it records one.
    #[must_use]
    pub const fn result(&self) -> Option<&Bytes> {
        match self {
            Self::Complete { result, .. } | Self::StepComplete { result, .. } => Some(result),
            Self::Fail { how, .. } => Some(&how.result),
            Self::Resolve { how, .. } => match &how.finding {
                Finding::Succeeded(result) | Finding::Failed(result) => Some(result),
                Finding::Retry => None,
            },
            Self::Claim(_)
            | Self::Renew { .. }
            | Self::Release { .. }
            | Self::Look(_)
            | Self::StepBegin { .. }
            | Self::StepRestart { .. }
            | Self::Redrive { .. }
            | Self::Retain { .. }
            | Self::ReleaseByOperator { .. }
            | Self::Forget(_)
            | Self::Steps(_)
            | Self::Index { .. }
            | Self::Find(_)
            | Self::Ready => None,
        }
    }

    /// Who claims or acts, if it says so.
    #[must_use]
    pub const fn by(&self) -> Option<&Bytes> {
        match self {
            Self::Claim(claim) => Some(&claim.by),
            Self::Resolve { by, .. }
            | Self::Redrive { by, .. }
            | Self::ReleaseByOperator { by, .. } => Some(by),
            Self::Renew { .. }
            | Self::Complete { .. }
            | Self::Fail { .. }
            | Self::Release { .. }
            | Self::Look(_)
            | Self::StepBegin { .. }
            | Self::StepRestart { .. }
            | Self::StepComplete { .. }
            | Self::Retain { .. }
            | Self::Forget(_)
            | Self::Steps(_)
            | Self::Index { .. }
            | Self::Find(_)
            | Self::Ready => None,
        }
    }

    /// Whether it can be taken as it is; every store asks before it writes.
    ///
    /// # Errors
    /// `Invalid`, naming what is wrong.
    pub fn validate(&self) -> Result<(), Error> {
        if let Self::Claim(claim) = self {
            claim.validate()?;
        }
        if let Self::Renew {
            lease_for,
            retention,
            ..
        } = self
        {
            validate_lease(*lease_for, *retention)?;
        }
        if let Some((_, name)) = self.step() {
            validate_step_name(name)?;
        }
        if let Some(by) = self.by() {
            validate_bytes("name of who asks (by)", by, BY_BYTES_MAX)?;
        }
        if let Self::Retain { retention, .. } = self {
            validate_lease(Duration::from_millis(1), *retention)?;
        }
        if let Self::Index { ids, keep, .. } = self {
            validate_index(ids, *keep)?;
        }
        self.result().map_or(Ok(()), validate_result)
    }
}

// === impl Answer ===

impl Answer {
    /// The answer to a claim.
    ///
    /// # Errors
    /// `Bug` when it answers another operation.
    pub fn claimed(self) -> Result<Claimed, Error> {
        let Self::Claimed(claimed) = self else {
            return Err(misplaced());
        };
        Ok(claimed)
    }

    /// The answer to a write under a lease.
    ///
    /// # Errors
    /// `Bug` when it answers another operation.
    pub fn held(self) -> Result<Held, Error> {
        let Self::Held(held) = self else {
            return Err(misplaced());
        };
        Ok(held)
    }

    /// The answer to a look.
    ///
    /// # Errors
    /// `Bug` when it answers another operation.
    pub fn looked(self) -> Result<Option<Record>, Error> {
        let Self::Looked(record) = self else {
            return Err(misplaced());
        };
        Ok(record)
    }

    /// The answer to beginning a step.
    ///
    /// # Errors
    /// `Bug` when it answers another operation.
    pub fn step_begun(self) -> Result<StepBegun, Error> {
        let Self::StepBegun(begun) = self else {
            return Err(misplaced());
        };
        Ok(begun)
    }

    /// The answer to an operator's act.
    ///
    /// # Errors
    /// `Bug` when it answers another operation.
    pub fn acted(self) -> Result<Acted, Error> {
        let Self::Acted(acted) = self else {
            return Err(misplaced());
        };
        Ok(acted)
    }

    /// The answer to steps.
    ///
    /// # Errors
    /// `Bug` when it answers another operation.
    pub fn steps(self) -> Result<Vec<(String, StepRecord)>, Error> {
        let Self::Steps(steps) = self else {
            return Err(misplaced());
        };
        Ok(steps)
    }

    /// The answer to index.
    ///
    /// # Errors
    /// `Bug` when it answers another operation.
    pub fn indexed(self) -> Result<(), Error> {
        let Self::Indexed = self else {
            return Err(misplaced());
        };
        Ok(())
    }

    /// The answer to find.
    ///
    /// # Errors
    /// `Bug` when it answers another operation.
    pub fn found(self) -> Result<Vec<Key>, Error> {
        let Self::Found(keys) = self else {
            return Err(misplaced());
        };
        Ok(keys)
    }

    /// The answer to ready.
    ///
    /// # Errors
    /// `Bug` when it answers another operation.
    pub fn ready(self) -> Result<(), Error> {
        let Self::Ready = self else {
            return Err(misplaced());
        };
        Ok(())
    }
}

/// The one place where an answer of the wrong kind is found out.
fn misplaced() -> Error {
    Error::bug("the store gave the answer to another operation")
}
