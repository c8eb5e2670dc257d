//! Reads what bytes on the wire say, as far as it helps: which statement, command or request, and whether it writes.

mod postgres;
mod redis;
mod http;

pub(crate) use postgres::asks_encryption;

/// Longer texts are cut: they are for a person to read.
const TEXT_CHARS_MAX: usize = 160;

/// The language of a dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    /// PostgreSQL's protocol 3.
    Postgres,
    /// RESP.
    Redis,
    /// HTTP/1.
    Http,
    /// Anything else: only sizes are seen.
    Other,
}

/// What one piece of a conversation says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Said {
    /// For a person.
    pub(crate) text: String,
    /// What it is good for.
    pub(crate) sense: Sense,
}

/// What a piece of a conversation is good for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sense {
    /// A greeting, a log-in, a poll: not part of any delivery.
    Small,
    /// A question, or an answer that changes nothing.
    #[default]
    Asks,
    /// A write, or what answers one that is not settled yet.
    Writes,
    /// Settles a write: a commit, a call of another service, and what answers it.
    Settles,
}

/// One connection's reader.
#[derive(Debug)]
pub(crate) enum Reader {
    Postgres(postgres::Reader),
    Redis(redis::Reader),
    Http(http::Reader),
    Other,
}

// === impl Reader ===

impl Reader {
    pub(crate) fn of(language: Language) -> Self {
        match language {
            Language::Postgres => Self::Postgres(postgres::Reader::default()),
            Language::Redis => Self::Redis(redis::Reader::default()),
            Language::Http => Self::Http(http::Reader::default()),
            Language::Other => Self::Other,
        }
    }

    /// What a chunk says that goes to the dependency, or comes from it.
    pub(crate) fn read(&mut self, outward: bool, bytes: &[u8]) -> Said {
        let said = match (self, outward) {
            (Self::Postgres(reader), true) => reader.asked(bytes),
            (Self::Postgres(reader), false) => reader.answered(bytes),
            (Self::Redis(reader), true) => reader.asked(bytes),
            (Self::Redis(reader), false) => reader.answered(bytes),
            (Self::Http(reader), true) => reader.asked(bytes),
            (Self::Http(reader), false) => reader.answered(bytes),
            (Self::Other, true) => Said::new(format!("{} bytes", bytes.len()), Sense::Settles),
            (Self::Other, false) => Said::new(format!("{} bytes", bytes.len()), Sense::Settles),
        };
        Said::new(short(&said.text), said.sense)
    }
}

// === impl Said ===

impl Said {
    pub(crate) fn new(text: impl Into<String>, sense: Sense) -> Self {
        Self {
            text: text.into(),
            sense,
        }
    }
}

/// The text without what differs from delivery to delivery: every word with a digit in it.
pub(crate) fn shape(text: &str) -> String {
    text.split_inclusive(|c: char| !c.is_alphanumeric())
        .map(|word| {
            let (stem, end) = match word.char_indices().next_back() {
                Some((at, last)) if !last.is_alphanumeric() => word.split_at(at),
                _ => (word, ""),
            };
            let varies = stem.chars().any(|c| c.is_ascii_digit());
            format!("{}{end}", if varies { "#" } else { stem })
        })
        .collect()
}

fn short(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.chars().count() <= TEXT_CHARS_MAX {
        return words;
    }
    words
        .chars()
        .take(TEXT_CHARS_MAX - 1)
        .chain(['…'])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shape_forgets_what_differs() {
        assert_eq!(
            shape("SET seen:p1a0007 4f2-x NX"),
            shape("SET seen:p1a0012 9c1-x NX")
        );
        assert_eq!(shape("INSERT 0 1"), "INSERT # #");
        assert_ne!(shape("GET a"), shape("GET b"));
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(short(&"x".repeat(1_000)).chars().count(), TEXT_CHARS_MAX);
        assert_eq!(short("a\n   b"), "a b");
    }
}
