//! Path patterns: `/charge`, or `/static/*` for everything below.

use std::fmt;
use std::str::FromStr;

/// Which paths are meant.
///
/// ```
/// use semel_gate::path::PathPattern;
///
/// let below: PathPattern = "/static/*".parse().unwrap();
/// assert!(below.matches("/static/logo.svg") && below.matches("/static/"));
/// assert!(!below.matches("/static") && !below.matches("/statics"));
/// let one: PathPattern = "/charge".parse().unwrap();
/// assert!(one.matches("/charge") && !one.matches("/charge/"));
/// assert!("charge".parse::<PathPattern>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathPattern {
    /// This path.
    Exact(String),
    /// Every path that begins so; it ends with a slash.
    Below(String),
}

/// A pattern that means nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no path: write /charge for one path or /static/* for all below")]
pub struct BadPath(String);

// === impl PathPattern ===

impl PathPattern {
    /// Whether a request's path is meant, exactly as it was sent.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        match self {
            Self::Exact(exact) => path == exact,
            Self::Below(prefix) => path.starts_with(prefix.as_str()),
        }
    }
}

impl FromStr for PathPattern {
    type Err = BadPath;

    fn from_str(text: &str) -> Result<Self, BadPath> {
        let plain = text.strip_suffix('*').unwrap_or(text);
        let good = plain.starts_with('/') && !plain.contains(['*', '?', '#', ' ', '\\']);
        if !good {
            return Err(BadPath(text.into()));
        }
        if plain == text {
            Ok(Self::Exact(text.into()))
        } else if plain.ends_with('/') {
            Ok(Self::Below(plain.into()))
        } else {
            Err(BadPath(text.into()))
        }
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(path) => f.write_str(path),
            Self::Below(prefix) => write!(f, "{prefix}*"),
        }
    }
}
