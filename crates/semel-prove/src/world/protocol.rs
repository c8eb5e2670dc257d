//! Reads what bytes on the wire say, as far as it helps: which statement, command or request, and whether it writes.

mod postgres;
mod redis;
mod http;
mod firestore;

pub(crate) use postgres::requests_encryption;
pub(crate) use redis::reads;

/// Longer texts are cut: they are for a person to read.
const TEXT_CHARS_MAX: usize = 160;

/// The protocol of a dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// PostgreSQL's protocol 3.
    Postgres,
    /// RESP.
    Redis,
    /// HTTP/1.
    Http,
    /// gRPC, as the Firestore emulator speaks it.
    Firestore,
    /// Anything else: only sizes are seen.
    Other,
}

/// What one piece of a conversation says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Message {
    /// For a person.
    pub(crate) text: String,
    /// What it is good for.
    pub(crate) kind: MessageKind,
    /// The values that are bound to a statement; a request's header that names its idempotency key.
    pub(crate) values: Vec<String>,
}

/// What a piece of a conversation is good for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MessageKind {
    /// A greeting, a log-in, a poll: not part of any delivery.
    Housekeeping,
    /// A question, or an answer that changes nothing.
    #[default]
    Read,
    /// A write, or what answers one that is not settled yet.
    Write,
    /// Settles a write: a commit, a call of another service, and what answers it.
    Commit,
}

/// One connection's parser.
#[derive(Debug)]
pub(crate) enum Parser {
    Postgres(postgres::PostgresParser),
    Redis(redis::RedisParser),
    Http(http::HttpParser),
    Firestore(firestore::FirestoreParser),
    Other,
}

// === impl Parser ===

impl Parser {
    pub(crate) fn of(protocol: Protocol) -> Self {
        match protocol {
            Protocol::Postgres => Self::Postgres(postgres::PostgresParser::default()),
            Protocol::Redis => Self::Redis(redis::RedisParser::default()),
            Protocol::Http => Self::Http(http::HttpParser::default()),
            Protocol::Firestore => Self::Firestore(firestore::FirestoreParser::default()),
            Protocol::Other => Self::Other,
        }
    }

    /// What a chunk says that goes to the dependency, or comes from it.
    pub(crate) fn parse(&mut self, outward: bool, bytes: &[u8]) -> Message {
        let message = match (self, outward) {
            (Self::Postgres(parser), true) => parser.request(bytes),
            (Self::Postgres(parser), false) => parser.response(bytes),
            (Self::Redis(parser), true) => parser.request(bytes),
            (Self::Redis(parser), false) => parser.response(bytes),
            (Self::Http(parser), true) => parser.request(bytes),
            (Self::Http(parser), false) => parser.response(bytes),
            (Self::Firestore(parser), true) => parser.request(bytes),
            (Self::Firestore(parser), false) => parser.response(bytes),
            (Self::Other, _) => Message::new(format!("{} bytes", bytes.len()), MessageKind::Commit),
        };
        let values = message.values.iter().map(|value| short(value));
        Message::new(short(&message.text), message.kind).with(values.collect())
    }
}

// === impl Message ===

impl Message {
    pub(crate) fn new(text: impl Into<String>, kind: MessageKind) -> Self {
        Self {
            text: text.into(),
            kind,
            values: Vec::new(),
        }
    }

    fn with(self, values: Vec<String>) -> Self {
        Self { values, ..self }
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
