//! Sinks: whatever makes groups of rows durable.

use crate::row::Row;
use async_trait::async_trait;
use std::fmt::Debug;
use tokio::time::Instant;

/// Whatever makes groups of rows durable.
///
/// # Contract
///
/// [`write`](Self::write) answers `Ok` only when every row of the group is durable: it survives the end of this process
/// and of the machine. A group that is answered otherwise may have landed all the same, in whole or in part; its rows are
/// delivered again, and land again.
#[async_trait]
pub trait Sink: Send + Debug + 'static {
    /// Writes a group.
    ///
    /// # Errors
    /// What to do about it is in [`WriteError`].
    async fn write(&mut self, group: &[&Row]) -> Result<(), WriteError>;

    /// Whether it would take a group now.
    ///
    /// # Errors
    /// Why not.
    async fn ready(&mut self) -> Result<(), WriteError>;

    /// Writes a marker of this size where a group would go, durably, and takes it back.
    ///
    /// # Errors
    /// Why a group would not be written now.
    async fn try_marker(&mut self, bytes: usize) -> Result<(), WriteError>;

    /// When [`tend`](Self::tend) is due; `None`: never.
    fn due(&self) -> Option<Instant> {
        None
    }

    /// Does what is due by time, not by rows.
    async fn tend(&mut self) {}

    /// Nothing more comes.
    async fn close(&mut self);
}

/// Why a group was not written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// Nothing can be written now, or it is not known whether it was: a retry is safe.
    #[error("{0}")]
    Unavailable(String),
    /// Something in it is refused: a row of it, or all of them.
    #[error("{0}")]
    Refused(String),
}
