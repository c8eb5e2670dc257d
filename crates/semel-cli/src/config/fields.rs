//! The fields of a configuration, as the table in `fields.toml` lists them.

use serde::Deserialize;
use std::sync::LazyLock;

/// One field of a configuration.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Field {
    pub(crate) name: String,
    /// What it must be, after "must be".
    pub(crate) value: String,
    default: Option<String>,
    otherwise: Option<String>,
    example: Option<String>,
    /// What it is for.
    pub(crate) doc: String,
}

/// What holds when a field is not given.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fallback<'a> {
    /// Nothing: it must be given.
    Required,
    /// This value, in TOML.
    Value(&'a str),
    /// What these words say.
    Words(&'a str),
}

/// Which table of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// The top level.
    Gate,
    /// A `[[route]]`.
    Route,
}

#[derive(Debug, Deserialize)]
struct Table {
    gate: Vec<Field>,
    route: Vec<Field>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    toml::from_str(include_str!("fields.toml")).expect("the table of fields is well formed")
});

// === impl Field ===

impl Field {
    pub(crate) fn fallback(&self) -> Fallback<'_> {
        match (&self.default, &self.otherwise) {
            (Some(toml), _) => Fallback::Value(toml),
            (None, Some(words)) => Fallback::Words(words),
            (None, None) => Fallback::Required,
        }
    }

    /// A value to show, in TOML.
    pub(crate) fn example(&self) -> &str {
        let shown = self.example.as_deref().or(self.default.as_deref());
        shown.unwrap_or_default()
    }
}

// === impl Level ===

impl Level {
    pub(crate) fn fields(self) -> &'static [Field] {
        match self {
            Self::Gate => &TABLE.gate,
            Self::Route => &TABLE.route,
        }
    }

    pub(crate) fn field(self, name: &str) -> Option<&'static Field> {
        self.fields().iter().find(|field| field.name == name)
    }

    pub(crate) const fn other(self) -> Self {
        match self {
            Self::Gate => Self::Route,
            Self::Route => Self::Gate,
        }
    }

    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Gate => "the top level",
            Self::Route => "a route",
        }
    }

    /// What to do with a field that stands on this level and belongs to the other.
    pub(crate) const fn move_it(self) -> &'static str {
        match self {
            Self::Gate => "move it below a [[route]]",
            Self::Route => "move it above the first [[route]]",
        }
    }
}
