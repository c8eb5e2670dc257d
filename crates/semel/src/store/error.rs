//! What a store says when it does not answer.

use std::error::Error as StdError;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Why a store did not answer, by what to do next. Its [`source`](StdError::source) is what the server, the driver or
/// the operating system said, where one of them did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The store could not be asked, or did not answer: whether the write was made is unknown.
    /// Repeating the same call is safe.
    Unavailable(Detail),
    /// The store was reached and does not take the call until somebody fixes it: a password, a
    /// right, a table, a read-only server, room on a disk. Nothing was written. Repeating the same
    /// call is safe, and succeeds once it is fixed.
    Denied(Detail),
    /// The call itself is wrong. A repeat fails again: fix the call.
    Invalid(Detail),
    /// What is stored cannot be trusted. Nothing is replayed from it: stop and look.
    Corrupt(Detail),
    /// Something that cannot be, was. Please report it.
    Bug(Detail),
}

/// What happened, in words, and what caused it. Two are equal if their words are.
///
/// ```
/// use semel::Error;
/// use std::error::Error as _;
///
/// let error = Error::unavailable("the disk did not answer");
/// assert!(error.source().is_none());
/// let error = error.caused_by(std::io::Error::other("I/O error"));
/// assert_eq!(error.to_string(), "store unavailable: the disk did not answer");
/// assert_eq!(error.source().unwrap().to_string(), "I/O error");
/// ```
#[derive(Clone, Debug)]
pub struct Detail {
    words: Arc<str>,
    cause: Option<Arc<dyn StdError + Send + Sync>>,
}

// === impl Error ===

impl Error {
    /// [`Unavailable`](Self::Unavailable), in these words.
    pub fn unavailable(words: impl Into<Detail>) -> Self {
        Self::Unavailable(words.into())
    }

    /// [`Denied`](Self::Denied), in these words.
    pub fn denied(words: impl Into<Detail>) -> Self {
        Self::Denied(words.into())
    }

    /// [`Invalid`](Self::Invalid), in these words.
    pub fn invalid(words: impl Into<Detail>) -> Self {
        Self::Invalid(words.into())
    }

    /// [`Corrupt`](Self::Corrupt), in these words.
    pub fn corrupt(words: impl Into<Detail>) -> Self {
        Self::Corrupt(words.into())
    }

    /// [`Bug`](Self::Bug), in these words.
    pub fn bug(words: impl Into<Detail>) -> Self {
        Self::Bug(words.into())
    }

    /// The same, with what caused it.
    #[must_use]
    pub fn caused_by(mut self, cause: impl StdError + Send + Sync + 'static) -> Self {
        let (Self::Unavailable(detail)
        | Self::Denied(detail)
        | Self::Invalid(detail)
        | Self::Corrupt(detail)
        | Self::Bug(detail)) = &mut self;
        detail.cause = Some(Arc::new(cause));
        self
    }

    const fn parts(&self) -> (&'static str, &Detail) {
        match self {
            Self::Unavailable(detail) => ("store unavailable", detail),
            Self::Denied(detail) => ("store denies", detail),
            Self::Invalid(detail) => ("invalid", detail),
            Self::Corrupt(detail) => ("corrupt", detail),
            Self::Bug(detail) => ("bug in semel", detail),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, detail) = self.parts();
        write!(f, "{kind}: {detail}")
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        let (_, detail) = self.parts();
        detail.cause.as_ref().map(|cause| &**cause as _)
    }
}

// === impl Detail ===

impl Deref for Detail {
    type Target = str;

    fn deref(&self) -> &str {
        &self.words
    }
}

impl From<String> for Detail {
    fn from(words: String) -> Self {
        Self::from(words.as_str())
    }
}

impl From<&str> for Detail {
    fn from(words: &str) -> Self {
        Self {
            words: words.into(),
            cause: None,
        }
    }
}

impl PartialEq for Detail {
    fn eq(&self, other: &Self) -> bool {
        self.words == other.words
    }
}

impl Eq for Detail {}

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}
