//! What a store says when it does not answer.

/// Why a store did not answer, by what to do next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The store could not be asked, or did not answer: whether the write was made is unknown.
    /// Repeating the same call is safe.
    #[error("store unavailable: {0}")]
    Unavailable(String),
    /// The store was reached and does not take the call until somebody fixes it: a password, a
    /// right, a table, a read-only server, room on a disk. Nothing was written. Repeating the same
    /// call is safe, and succeeds once it is fixed.
    #[error("store denies: {0}")]
    Denied(String),
    /// The call itself is wrong. A repeat fails again: mend the call.
    #[error("invalid: {0}")]
    Invalid(String),
    /// What is stored cannot be trusted. Nothing is replayed from it: stop and look.
    #[error("corrupt: {0}")]
    Corrupt(String),
    /// Something that cannot be, was. Please report it.
    #[error("bug in semel: {0}")]
    Bug(String),
}
