//! The table of fields. It alone says which fields there are, what they hold, their defaults and
//! what they are for: the reader, `semel init` and `docs/config.md` all follow it.

mod gate;
mod route;

/// One field of a configuration.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    /// What it must be, after "must be".
    pub(crate) words: &'static str,
    pub(crate) fallback: Fallback,
    /// What it is for, in one line.
    pub(crate) doc: &'static str,
}

/// What holds when a field is not given. Examples and defaults are written in TOML.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fallback {
    /// Nothing: it must be given.
    Needed { example: &'static str },
    /// This value.
    Is(&'static str),
    /// What these words say.
    Says {
        words: &'static str,
        example: &'static str,
    },
}

/// Which table of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// The top level.
    Gate,
    /// A `[[route]]`.
    Route,
}

// === impl Field ===

impl Field {
    const fn needed(
        name: &'static str,
        words: &'static str,
        example: &'static str,
        doc: &'static str,
    ) -> Self {
        let fallback = Fallback::Needed { example };
        Self {
            name,
            words,
            fallback,
            doc,
        }
    }

    const fn is(
        name: &'static str,
        words: &'static str,
        usual: &'static str,
        doc: &'static str,
    ) -> Self {
        let fallback = Fallback::Is(usual);
        Self {
            name,
            words,
            fallback,
            doc,
        }
    }

    const fn says(
        name: &'static str,
        words: &'static str,
        (usual, example): (&'static str, &'static str),
        doc: &'static str,
    ) -> Self {
        let fallback = Fallback::Says {
            words: usual,
            example,
        };
        Self {
            name,
            words,
            fallback,
            doc,
        }
    }

    /// A value to show, in TOML.
    pub(crate) const fn example(&self) -> &'static str {
        match self.fallback {
            Fallback::Needed { example } | Fallback::Says { example, .. } => example,
            Fallback::Is(usual) => usual,
        }
    }
}

// === impl Level ===

impl Level {
    pub(crate) const fn fields(self) -> &'static [Field] {
        match self {
            Self::Gate => gate::FIELDS,
            Self::Route => route::FIELDS,
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
