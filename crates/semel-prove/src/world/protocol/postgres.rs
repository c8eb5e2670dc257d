//! PostgreSQL: statements one way, command tags the other.

mod values;

use super::{Message, MessageKind};
use std::collections::BTreeMap;
use values::bound;

const SSL_REQUEST: u32 = 80_877_103;
const GSS_REQUEST: u32 = 80_877_104;

/// What must be remembered of a connection to read on.
#[derive(Debug, Default)]
pub(crate) struct PostgresParser {
    logged_in: bool,
    prepared: BTreeMap<Vec<u8>, String>,
    /// Of what was asked last.
    asked: MessageKind,
}

/// Whether these bytes ask for encryption before anything else is said.
pub(crate) fn requests_encryption(bytes: &[u8]) -> bool {
    bytes.len() == 8 && matches!(number(bytes, 4), Some(SSL_REQUEST | GSS_REQUEST))
}

// === impl PostgresParser ===

impl PostgresParser {
    pub(crate) fn request(&mut self, bytes: &[u8]) -> Message {
        if !self.logged_in {
            return Message::new("log in", MessageKind::Housekeeping);
        }
        let mut statements: Vec<String> = Vec::new();
        let mut values = Vec::new();
        for (kind, message) in messages(bytes) {
            if kind == b'B' {
                values.extend(bound(message).unwrap_or_default());
            }
            if let Some(statement) = self.statement(kind, message)
                && statements.last() != Some(&statement)
            {
                statements.push(statement);
            }
        }
        let senses = statements.iter().map(|statement| kind(statement));
        let prepares = |kind| matches!(kind, b'X' | b'P' | b'D' | b'S' | b'H' | b'C');
        self.asked = match senses.max() {
            // Preparing a statement, closing one, or leaving.
            _ if messages(bytes).all(|(kind, _)| prepares(kind)) => MessageKind::Housekeeping,
            None => self.asked,
            Some(kind) => kind,
        };
        Message::new(statements.join("; "), self.asked).with(values)
    }

    pub(crate) fn response(&mut self, bytes: &[u8]) -> Message {
        let mut tags = Vec::new();
        let mut settled = false;
        let was_in = self.logged_in;
        for (kind, message) in messages(bytes) {
            match kind {
                b'C' => tags.push(text(message)),
                b'E' => tags.push(error(message)),
                b'Z' => {
                    self.logged_in = true;
                    settled = message.first() == Some(&b'I');
                }
                _ => {}
            }
        }
        if !was_in {
            return Message::new("log in", MessageKind::Housekeeping);
        }
        let kind = if settled && self.asked == MessageKind::Write {
            MessageKind::Commit
        } else {
            self.asked
        };
        if tags.is_empty() {
            return Message::new("answer", kind);
        }
        Message::new(tags.join("; "), kind)
    }

    fn statement(&mut self, kind: u8, message: &[u8]) -> Option<String> {
        let mut strings = message.split(|byte| *byte == 0);
        match kind {
            b'Q' => Some(text(message)),
            b'P' => {
                let name = strings.next()?.to_vec();
                let statement = text(strings.next()?);
                self.prepared.insert(name, statement.clone());
                Some(statement)
            }
            b'B' => {
                let name = strings.nth(1)?;
                self.prepared.get(name).cloned()
            }
            _ => None,
        }
    }
}

/// The whole messages at the beginning of a chunk, and what can be seen of one that is cut off.
fn messages(bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (kind, after) = rest.split_first()?;
        let length = usize::try_from(number(after, 0)?).ok()?.max(4);
        let end = length.min(after.len());
        let message = after.get(4..end)?;
        rest = after.get(end..)?;
        Some((*kind, message))
    })
}

fn kind(statement: &str) -> MessageKind {
    let upper = statement.to_uppercase().replace("FOR UPDATE", "");
    let says = |word: &&str| {
        upper
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .any(|w| w == *word)
    };
    if ["COMMIT", "END"]
        .iter()
        .any(|word| upper.trim_start().starts_with(word))
    {
        return MessageKind::Commit;
    }
    let writes = [
        "INSERT", "UPDATE", "DELETE", "MERGE", "CALL", "COPY", "TRUNCATE", "NOTIFY",
    ];
    if writes.iter().any(says) || upper.contains("SEMEL.") || upper.contains("ADVISORY") {
        return MessageKind::Write;
    }
    let empty = upper.trim().trim_end_matches(';');
    if empty.is_empty() || empty == "SELECT 1" || says(&"SHOW") || upper.contains("PG_CATALOG") {
        return MessageKind::Housekeeping;
    }
    MessageKind::Read
}

fn error(message: &[u8]) -> String {
    let mut fields = message.split(|byte| *byte == 0);
    let said = fields.find_map(|field| field.strip_prefix(b"M"));
    format!("error: {}", said.map(text).unwrap_or_default())
}

fn text(bytes: &[u8]) -> String {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).trim().to_owned()
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_be_bytes(four))
}

#[cfg(test)]
mod tests {
    use super::*;
    use MessageKind::{Commit, Housekeeping, Read, Write};

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap();
        [&[kind], &length.to_be_bytes()[..], body].concat()
    }

    fn logged_in() -> PostgresParser {
        let mut parser = PostgresParser::default();
        assert_eq!(parser.request(b"\0\0\0\x08\0\x03\0\0").kind, Housekeeping);
        assert_eq!(parser.response(&message(b'Z', b"I")).kind, Housekeeping);
        parser
    }

    #[test]
    fn statement_is_read_from_a_query_and_from_a_bind() {
        let mut parser = logged_in();
        let said = parser.request(&message(b'Q', b"SELECT a FROM t\0"));
        assert_eq!(said, Message::new("SELECT a FROM t", Read));
        let parse = message(b'P', b"s1\0INSERT INTO t VALUES ($1)\0\0\0");
        assert_eq!(parser.request(&parse).kind, Housekeeping);
        let bind = message(b'B', b"\0s1\0\0\0");
        let both = [parse, bind.clone()].concat();
        let insert = Message::new("INSERT INTO t VALUES ($1)", Write);
        assert_eq!(parser.request(&both), insert);
        assert_eq!(parser.request(&bind), insert);
    }

    #[test]
    fn write_outside_a_transaction_is_settled_by_its_answer() {
        let mut parser = logged_in();
        parser.request(&message(b'Q', b"INSERT INTO t VALUES (1)\0"));
        let done = message(b'C', b"INSERT 0 1\0");
        let open = [done.clone(), message(b'Z', b"T")].concat();
        assert_eq!(parser.response(&open), Message::new("INSERT 0 1", Write));
        let idle = [done, message(b'Z', b"I")].concat();
        assert_eq!(parser.response(&idle), Message::new("INSERT 0 1", Commit));
    }

    #[test]
    fn reading_with_a_row_lock_is_not_a_write() {
        assert_eq!(kind("SELECT * FROM t WHERE id = $1 FOR UPDATE"), Read);
        assert_eq!(kind("commit"), Commit);
        assert_eq!(kind("SELECT updated_at FROM t"), Read);
    }

    #[test]
    fn bytes_of_no_sense_do_no_harm() {
        let mut parser = logged_in();
        assert_eq!(parser.request(&[255; 40]).text, "");
        assert_eq!(parser.response(&[0, 0, 0, 0, 0]).text, "answer");
        assert!(requests_encryption(&[0, 0, 0, 8, 4, 210, 22, 47]));
    }
}
