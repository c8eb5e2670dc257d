//! Paths by their names, of which some may be any: `/users/{id}/pay`. A name in braces stands for one whole name, never
//! for none, a part of one, or several: what it takes is seen at a glance, by the reader of a file and by the gate.

use std::fmt;

/// The names of a path; what stands in braces is for people only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    names: Vec<Name>,
    below: bool,
}

/// What stands between two slashes of a pattern.
#[derive(Clone, Debug)]
pub(super) enum Name {
    This(String),
    /// Any but an empty one.
    Any(String),
}

// === impl Template ===

impl Template {
    /// A path without braces.
    pub(super) fn of(path: &str, below: bool) -> Self {
        let names = path.split('/').map(|name| Name::This(name.into()));
        let names = names.collect();
        Self { names, below }
    }

    /// Reads a pattern in which some names stand in braces; `None` when braces are anywhere else. The rest becomes what
    /// `canonical` makes of it. One that is below a path ends with a slash.
    pub(super) fn read<E>(
        path: &str,
        below: bool,
        canonical: impl FnOnce(&str) -> Result<String, E>,
    ) -> Option<Result<Self, E>> {
        let written: Option<Vec<_>> = path.split('/').map(Name::read).collect();
        let written = written?;
        let literal: Vec<_> = written.iter().map(Name::literal).collect();
        let canonical = canonical(&literal.join("/"));
        Some(canonical.map(|canonical| {
            let names = canonical.split('/').zip(written);
            let names = names.map(|(canonical, written)| match written {
                Name::This(_) => Name::This(canonical.into()),
                Name::Any(word) => Name::Any(word),
            });
            let mut names: Vec<_> = names.collect();
            if below {
                names.pop();
            }
            Self { names, below }
        }))
    }

    pub(super) fn matches(&self, path: &str) -> bool {
        let mut path = path.split('/');
        let begins = self
            .names
            .iter()
            .all(|name| path.next().is_some_and(|found| name.matches(found)));
        begins && path.next().is_some() == self.below
    }

    pub(super) const fn is_below(&self) -> bool {
        self.below
    }

    /// Whether there is a name that may be any.
    pub(super) fn is_open(&self) -> bool {
        let mut names = self.names.iter();
        names.any(|name| matches!(name, Name::Any(_)))
    }

    pub(super) fn covers(&self, narrow: &Self) -> bool {
        let (own, others) = (self.names.len(), narrow.names.len());
        let length = match (self.below, narrow.below) {
            (false, false) => own == others,
            (false, true) => false,
            (true, false) => own < others,
            (true, true) => own <= others,
        };
        let mut both = self.names.iter().zip(&narrow.names);
        length && both.all(|(wide, narrow)| wide.covers(narrow))
    }

    /// Each name, or `None` for any.
    pub(super) fn names(&self) -> impl Iterator<Item = Option<&str>> {
        self.names.iter().map(|name| match name {
            Name::This(name) => Some(name.as_str()),
            Name::Any(_) => None,
        })
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.names.iter().map(ToString::to_string).collect();
        f.write_str(&names.join("/"))?;
        f.write_str(if self.below { "/*" } else { "" })
    }
}

// === impl Name ===

impl Name {
    /// What a pattern says between two slashes.
    fn read(text: &str) -> Option<Self> {
        if !text.contains(['{', '}']) {
            return Some(Self::This(text.into()));
        }
        let word = text.strip_prefix('{')?.strip_suffix('}')?;
        let good = !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        good.then(|| Self::Any(word.into()))
    }

    /// A name that is read as itself, in its place.
    fn literal(&self) -> &str {
        match self {
            Self::This(name) => name,
            Self::Any(_) => "any",
        }
    }

    fn matches(&self, found: &str) -> bool {
        match self {
            Self::This(name) => name == found,
            Self::Any(_) => !found.is_empty(),
        }
    }

    fn covers(&self, narrow: &Self) -> bool {
        match (self, narrow) {
            (_, Self::This(name)) => self.matches(name),
            (Self::Any(_), Self::Any(_)) => true,
            (Self::This(_), Self::Any(_)) => false,
        }
    }
}

/// The words in braces mean nothing: two patterns that differ in them alone take the same paths.
impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::This(one), Self::This(other)) => one == other,
            (Self::Any(_), Self::Any(_)) => true,
            (Self::This(_), Self::Any(_)) | (Self::Any(_), Self::This(_)) => false,
        }
    }
}

impl Eq for Name {}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::This(name) => f.write_str(name),
            Self::Any(word) => write!(f, "{{{word}}}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::path::PathPattern;

    fn pattern(text: &str) -> PathPattern {
        text.parse().unwrap()
    }

    #[test]
    fn braces_stand_for_one_whole_name() {
        let pay = pattern("/users/{id}/pay");
        assert_eq!(pay.to_string(), "/users/{id}/pay");
        for path in ["/users/7/pay", "/users/%7Bid%7D/pay", "/users/a%2Fb/pay"] {
            assert!(pay.matches(path), "{path}");
        }
        for path in [
            "/users//pay",
            "/users/pay",
            "/users/7/8/pay",
            "/users/7/pay/",
            "/users/7/pays",
            "/users/7/PAY",
            "/Users/7/pay",
        ] {
            assert!(!pay.matches(path), "{path}");
        }
        let below = pattern("/%75sers/{user_id}/*");
        assert_eq!(below.to_string(), "/users/{user_id}/*");
        assert!(below.matches("/users/7/") && below.matches("/users/7/pay/now"));
        assert!(!below.matches("/users/7") && !below.matches("/users//x"));
    }

    #[test]
    fn braces_anywhere_else_are_refused_by_name() {
        for text in [
            "/users/{}/pay",
            "/users/{id",
            "/users/id}",
            "/users/{id}.json",
            "/users/v{id}",
            "/users/{*rest}",
            "/users/{id:int}",
            "/users/{a}{b}",
        ] {
            let error = text.parse::<PathPattern>().unwrap_err().to_string();
            let says = "with a name in braces as the whole of a segment";
            assert!(error.contains(says) && error.contains(text), "{error}");
        }
        // Whoever means braces encodes them.
        let literal = pattern("/users/%7Bid%7D");
        assert!(literal.matches("/users/%7Bid%7D") && !literal.matches("/users/7"));
        assert!("/users/{id}/../x".parse::<PathPattern>().is_err());
    }

    #[test]
    fn one_pattern_covers_another_when_it_takes_all_of_it() {
        for (wide, narrow) in [
            ("/*", "/"),
            ("/*", "/users/{id}/pay"),
            ("/users/*", "/users/{id}/*"),
            ("/users/{id}/*", "/users/{id}/pay"),
            ("/users/{id}/*", "/users/7/"),
            ("/users/{id}/pay", "/users/{user}/pay"),
            ("/users/{id}/pay", "/users/me/pay"),
            ("/a/*", "/a/*"),
            ("/a", "/a"),
        ] {
            assert!(pattern(wide).covers(&pattern(narrow)), "{wide} {narrow}");
        }
        for (wide, narrow) in [
            ("/users/me/pay", "/users/{id}/pay"),
            ("/users/{id}/pay", "/users/{id}/*"),
            ("/users/{id}", "/users/"),
            ("/users/{id}/*", "/users/{id}"),
            ("/users/7/*", "/users/{id}/pay"),
            ("/a/*", "/a"),
            ("/a/*", "/ab/c"),
            ("/a", "/a/*"),
        ] {
            assert!(!pattern(wide).covers(&pattern(narrow)), "{wide} {narrow}");
        }
        assert_eq!(pattern("/users/{id}"), pattern("/users/{user}"));
    }
}
