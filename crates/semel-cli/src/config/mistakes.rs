//! Mistakes: everything that is wrong with a configuration, told at once.

use std::fmt;

/// All mistakes of one configuration. Starting again without fixing them fails again.
#[derive(Debug)]
pub(crate) struct Mistakes {
    file: Option<String>,
    all: Vec<Mistake>,
}

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct Mistake {
    /// Where to fix it.
    pub(crate) location: Location,
    /// The route it belongs to.
    pub(crate) route: Option<String>,
    /// What is wrong, and what to write.
    pub(crate) says: String,
}

/// Where a value came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Location {
    /// From nowhere in particular.
    Whole,
    /// A line of the file, from 1.
    Line(usize),
    /// A flag, or a variable of the environment.
    Given(&'static str),
}

// === impl Mistakes ===

impl Mistakes {
    /// None yet, in this file or in flags alone.
    pub(crate) const fn none(file: Option<String>) -> Self {
        Self {
            file,
            all: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, location: Location, route: Option<&str>, says: impl Into<String>) {
        self.all.push(Mistake {
            location,
            route: route.map(Into::into),
            says: says.into(),
        });
    }

    /// Drops those of these words.
    pub(crate) fn forgive(&mut self, are_forgiven: impl Fn(&str) -> bool) {
        self.all.retain(|mistake| !are_forgiven(&mistake.says));
    }

    /// `found`, unless something was wrong with it.
    pub(crate) fn unless_any<T>(mut self, found: Option<T>) -> Result<T, Self> {
        self.all.sort_by_key(|mistake| mistake.location);
        match found {
            Some(found) if self.all.is_empty() => Ok(found),
            Some(_) | None => Err(self),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Mistake> {
        self.all.iter()
    }

    /// The file and line, the flag or the variable.
    pub(crate) fn location(&self, mistake: &Mistake) -> String {
        let file = self.file.as_deref().unwrap_or("the configuration");
        match mistake.location {
            Location::Whole => file.into(),
            Location::Line(line) => format!("{file}:{line}"),
            Location::Given(name) => name.into(),
        }
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.all.len() {
            1 => f.write_str("the configuration has a mistake")?,
            count => write!(f, "the configuration has {count} mistakes")?,
        }
        for mistake in &self.all {
            write!(f, "\n  {}: ", self.location(mistake))?;
            if let Some(route) = &mistake.route {
                write!(f, "route {route}: ")?;
            }
            f.write_str(&mistake.says)?;
        }
        Ok(())
    }
}

impl std::error::Error for Mistakes {}
