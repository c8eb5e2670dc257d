//! Path patterns: `/charge`, `/users/{id}/pay` with any one name for `{id}`, or `/static/*` for everything below.
//! `parsed` says what a request's path is compared as.

mod parsed;
mod template;

pub(crate) use parsed::{AmbiguousPath, LoosePattern, ParsedPath};
pub use template::Template;

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
/// let any: PathPattern = "/users/{id}/pay".parse().unwrap();
/// assert!(any.matches("/users/7/pay") && !any.matches("/users/7/8/pay") && !any.matches("/users//pay"));
/// assert_eq!("/%63af\u{e9}".parse(), "/caf%C3%A9".parse::<PathPattern>());
/// assert!("charge".parse::<PathPattern>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathPattern {
    /// This path.
    Exact(String),
    /// Every path that begins so; it ends with a slash.
    Below(String),
    /// Every path with these names, some of which may be any.
    Template(Template),
}

/// Spellings that handlers read in different ways. Below a path, a route may allow them: however its
/// handler reads them, they stay below that path, or are refused because they look like another route.
/// Dot segments have no word here: they could leave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathAllowance {
    /// `;`, also encoded: some handlers cut it off, with all up to the next slash.
    Semicolon,
    /// `%2F` and `%5C`: some handlers read a slash.
    EncodedSlash,
    /// `//` behind the first segment: some handlers read one slash.
    DoubleSlash,
    /// `%3F` and `%23`: some handlers read the end of the path.
    EncodedDelimiter,
}

/// A pattern that means nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a path: write /charge for one path, /users/{{id}}/pay for any one name or /static/* for all below{1}"
)]
pub struct BadPath(String, &'static str);

// === impl PathPattern ===

impl PathPattern {
    /// Whether a path is meant; it is compared in its canonical form.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        match self {
            Self::Exact(exact) => path == exact,
            Self::Below(prefix) => path.starts_with(prefix.as_str()),
            Self::Template(template) => template.matches(path),
        }
    }

    /// Whether everything below a path is meant.
    #[must_use]
    pub fn is_below(&self) -> bool {
        self.template().is_below()
    }

    /// Whether every path of the other pattern is one of this one's.
    #[must_use]
    pub fn covers(&self, narrow: &Self) -> bool {
        self.template().covers(&narrow.template())
    }

    fn template(&self) -> Template {
        match self {
            Self::Exact(path) => Template::of(path, false),
            Self::Below(prefix) => Template::of(prefix.strip_suffix('/').unwrap_or(prefix), true),
            Self::Template(template) => template.clone(),
        }
    }

    /// Whether some handler could take this one path for one of the other's: they differ in letter case,
    /// a slash at the end or encodings at the most.
    #[must_use]
    pub fn resembles(&self, other: &Self) -> bool {
        match self {
            Self::Exact(path) => LoosePattern::of(other).takes(&parsed::loosest_of(path)),
            Self::Below(_) | Self::Template(_) => false,
        }
    }
}

impl FromStr for PathPattern {
    type Err = BadPath;

    fn from_str(text: &str) -> Result<Self, BadPath> {
        let bad = |why| BadPath(text.into(), why);
        let plain = text.strip_suffix('*').unwrap_or(text);
        let good = plain.starts_with('/') && !plain.contains(['*', '?', '#', ' ']);
        let below = plain != text;
        let braces = || bad(", with a name in braces as the whole of a segment");
        if !good || (below && !plain.ends_with('/')) {
            let has_braces = text.contains(['{', '}']);
            return Err(if has_braces { braces() } else { bad("") });
        }
        let canonical = |path: &str| match ParsedPath::of(path) {
            Ok(read) if read.spellings.is_empty() => Ok(read.canonical),
            Ok(_) | Err(_) => Err(bad(
                ", without dot segments, semicolons, double or encoded slashes",
            )),
        };
        let template = Template::read(plain, below, canonical).ok_or_else(braces)??;
        Ok(if template.is_open() {
            Self::Template(template)
        } else if below {
            Self::Below(canonical(plain)?)
        } else {
            Self::Exact(canonical(plain)?)
        })
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(path) => f.write_str(path),
            Self::Below(prefix) => write!(f, "{prefix}*"),
            Self::Template(template) => template.fmt(f),
        }
    }
}

// === impl PathAllowance ===

impl PathAllowance {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Semicolon,
        Self::EncodedSlash,
        Self::DoubleSlash,
        Self::EncodedDelimiter,
    ];

    /// The word for it in a route's `path_allows`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Semicolon => "semicolons",
            Self::EncodedSlash => "encoded-slashes",
            Self::DoubleSlash => "double-slashes",
            Self::EncodedDelimiter => "encoded-delimiters",
        }
    }
}
