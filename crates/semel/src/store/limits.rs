//! What every store takes, and how it is checked.

use super::Error;
use crate::record::{Claim, StepRecord};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use std::time::Duration;

/// The longest lease: a run that says nothing for longer is as good as dead.
pub const LEASE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The longest retention.
pub const RETENTION_MAX: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// The longest name of a step, in bytes.
pub const STEP_NAME_BYTES_MAX: usize = 255;

/// The longest label of a claim, in bytes: a few words about the work, not the work.
pub const LABEL_BYTES_MAX: usize = 1024;

/// How many steps a store shows of an incarnation: the first by name.
pub const STEPS_SHOWN_MAX: usize = 256;

/// How many bytes of a step's result it shows.
pub const STEP_SHOWN_BYTES_MAX: usize = 4 * 1024;

/// How many transport ids are indexed at a time.
pub const INDEX_IDS_MAX: usize = 8;

/// The longest transport id, in bytes.
pub const INDEX_ID_BYTES_MAX: usize = 2048;

/// How many keys are found under a transport id.
pub const FOUND_KEYS_MAX: usize = 16;

/// The largest result of a run or a step, encoded, in bytes.
pub const RESULT_BYTES_MAX: usize = 16 * 1024 * 1024;

impl Claim {
    /// Whether this claim makes sense and its label can be kept; every store asks before it writes.
    ///
    /// # Errors
    /// `Invalid`, naming the setting.
    pub fn validate(&self) -> Result<(), Error> {
        validate_lease(self.lease, self.retention)?;
        validate_acts_for(self.acts_for, self.retention)?;
        validate_bytes("label", &self.label, LABEL_BYTES_MAX)
    }
}

/// Whether a lease and a retention make sense together; every store asks before it writes.
///
/// # Errors
/// `Invalid`, naming the setting.
pub fn validate_lease(lease: Duration, retention: Duration) -> Result<(), Error> {
    let wrong = |what: String| {
        Err(Error::invalid(format!(
            "{what}; nothing was written, fix the setting before you retry"
        )))
    };
    if lease < Duration::from_millis(1) || lease > LEASE_MAX {
        return wrong(format!("lease {lease:?} is not between 1 ms and 24 h"));
    }
    if retention < lease {
        return wrong(format!(
            "lease {lease:?} is longer than retention {retention:?}, so a run could outlive its record"
        ));
    }
    if retention > RETENTION_MAX {
        return wrong(format!(
            "retention {retention:?} is over the limit of 366 days"
        ));
    }
    Ok(())
}

/// Whether a record is remembered for as long as its run may act; every store asks before it writes.
///
/// # Errors
/// `Invalid`, naming the setting.
pub fn validate_acts_for(acts_for: Option<Duration>, retention: Duration) -> Result<(), Error> {
    match acts_for {
        Some(acts_for) if acts_for > retention => Err(Error::invalid(format!(
            "a run may act for {acts_for:?}, which is longer than retention {retention:?}, so it could outlive its record; \
             nothing was written, fix the setting before you retry"
        ))),
        Some(_) | None => Ok(()),
    }
}

/// Whether a step's name can be one; every store asks before it writes.
///
/// # Errors
/// `Invalid`, naming the name.
pub fn validate_step_name(name: &str) -> Result<(), Error> {
    if name.is_empty() || name.len() > STEP_NAME_BYTES_MAX || name.contains('\0') {
        return Err(Error::invalid(format!(
            "step name {name:?} must have 1 to {STEP_NAME_BYTES_MAX} bytes and no NUL; the step was not begun, \
             rename it before you retry"
        )));
    }
    Ok(())
}

/// Whether so many transport ids can be kept for so long; every store asks before it writes.
///
/// # Errors
/// `Invalid`, naming what is over its limit.
pub fn validate_index(ids: &[Bytes], keep: Duration) -> Result<(), Error> {
    if ids.len() > INDEX_IDS_MAX || keep > RETENTION_MAX {
        return Err(Error::invalid(format!(
            "{} transport ids for {keep:?} are over the limit of {INDEX_IDS_MAX} for 366 days; nothing was indexed, index \
             fewer of them, or for less long",
            ids.len()
        )));
    }
    let mut ids = ids.iter();
    ids.try_for_each(|id| validate_bytes("transport id", id, INDEX_ID_BYTES_MAX))
}

/// Under what an index keeps a transport id: its SHA-256, so that an index holds no names, and no more than it must.
#[must_use]
pub fn index_digest(id: &[u8]) -> [u8; 32] {
    Sha256::digest(id).into()
}

/// As much of a step as is shown.
#[must_use]
pub fn shown_step(step: StepRecord) -> StepRecord {
    let shown = |result: Bytes| match result.get(..STEP_SHOWN_BYTES_MAX) {
        Some(shown) => Bytes::copy_from_slice(shown),
        None => result,
    };
    StepRecord {
        result: step.result.map(shown),
        ..step
    }
}

/// Whether a result can be kept; every store asks before it writes.
///
/// # Errors
/// `Invalid`, naming its size.
pub fn validate_result(result: &Bytes) -> Result<(), Error> {
    validate_bytes("result", result, RESULT_BYTES_MAX)
}

/// Whether so many bytes can be kept.
///
/// # Errors
/// `Invalid`, naming what they are and how many.
pub fn validate_bytes(what: &str, bytes: &Bytes, max: usize) -> Result<(), Error> {
    if bytes.len() > max {
        return Err(Error::invalid(format!(
            "the {what} has {} bytes, the limit is {max}; nothing was written, keep less of it before you retry",
            bytes.len()
        )));
    }
    Ok(())
}
