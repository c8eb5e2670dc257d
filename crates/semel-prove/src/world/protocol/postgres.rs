//! PostgreSQL: statements one way, command tags the other.

use super::{Said, Sense};
use std::collections::BTreeMap;

const SSL_REQUEST: u32 = 80_877_103;
const GSS_REQUEST: u32 = 80_877_104;

/// What must be remembered of a connection to read on.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    logged_in: bool,
    prepared: BTreeMap<Vec<u8>, String>,
    /// Of what was asked last.
    asked: Sense,
}

/// Whether these bytes ask for encryption before anything else is said.
pub(crate) fn asks_encryption(bytes: &[u8]) -> bool {
    bytes.len() == 8 && matches!(number(bytes, 4), Some(SSL_REQUEST | GSS_REQUEST))
}

// === impl Reader ===

impl Reader {
    pub(crate) fn asked(&mut self, bytes: &[u8]) -> Said {
        if !self.logged_in {
            return Said::new("log in", Sense::Small);
        }
        let mut statements: Vec<String> = Vec::new();
        for (kind, message) in messages(bytes) {
            if let Some(statement) = self.statement(kind, message)
                && statements.last() != Some(&statement)
            {
                statements.push(statement);
            }
        }
        let senses = statements.iter().map(|statement| sense(statement));
        let runs = messages(bytes).any(|(kind, _)| matches!(kind, b'Q' | b'B' | b'E'));
        let does = messages(bytes)
            .any(|(kind, _)| !matches!(kind, b'X' | b'P' | b'D' | b'S' | b'H' | b'C'));
        self.asked = match senses.max() {
            // Preparing a statement, closing one, or leaving.
            _ if !runs && !does => Sense::Small,
            None => self.asked,
            Some(sense) => sense,
        };
        Said::new(statements.join("; "), self.asked)
    }

    pub(crate) fn answered(&mut self, bytes: &[u8]) -> Said {
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
            return Said::new("log in", Sense::Small);
        }
        let sense = match self.asked {
            Sense::Writes if settled => Sense::Settles,
            as_asked @ (Sense::Small | Sense::Asks | Sense::Writes | Sense::Settles) => as_asked,
        };
        let text = if tags.is_empty() {
            "answer".to_owned()
        } else {
            tags.join("; ")
        };
        Said::new(text, sense)
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

fn sense(statement: &str) -> Sense {
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
        return Sense::Settles;
    }
    let writes = [
        "INSERT", "UPDATE", "DELETE", "MERGE", "CALL", "COPY", "TRUNCATE", "NOTIFY",
    ];
    if writes.iter().any(says) || upper.contains("SEMEL.") || upper.contains("ADVISORY") {
        return Sense::Writes;
    }
    let empty = upper.trim().trim_end_matches(';');
    if empty.is_empty() || empty == "SELECT 1" || says(&"SHOW") || upper.contains("PG_CATALOG") {
        return Sense::Small;
    }
    Sense::Asks
}

fn error(message: &[u8]) -> String {
    let fields = message.split(|byte| *byte == 0);
    let said = fields
        .filter_map(|session| session.split_first())
        .find(|(code, _)| **code == b'M');
    format!(
        "error: {}",
        said.map(|(_, words)| text(words)).unwrap_or_default()
    )
}

fn text(bytes: &[u8]) -> String {
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes.get(..end).unwrap_or_default())
        .trim()
        .to_owned()
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_be_bytes(four))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap();
        [&[kind], &length.to_be_bytes()[..], body].concat()
    }

    fn logged_in() -> Reader {
        let mut reader = Reader::default();
        assert_eq!(reader.asked(b"\0\0\0\x08\0\x03\0\0").sense, Sense::Small);
        assert_eq!(reader.answered(&message(b'Z', b"I")).sense, Sense::Small);
        reader
    }

    #[test]
    fn statement_is_read_from_a_query_and_from_a_bind() {
        let mut reader = logged_in();
        let said = reader.asked(&message(b'Q', b"SELECT a FROM t\0"));
        assert_eq!(said, Said::new("SELECT a FROM t", Sense::Asks));
        let parse = message(b'P', b"s1\0INSERT INTO t VALUES ($1)\0\0\0");
        assert_eq!(reader.asked(&parse).sense, Sense::Small);
        let bind = message(b'B', b"\0s1\0\0\0");
        let both = [parse, bind.clone()].concat();
        let insert = Said::new("INSERT INTO t VALUES ($1)", Sense::Writes);
        assert_eq!(reader.asked(&both), insert);
        assert_eq!(reader.asked(&bind), insert);
    }

    #[test]
    fn write_outside_a_transaction_is_settled_by_its_answer() {
        let mut reader = logged_in();
        reader.asked(&message(b'Q', b"INSERT INTO t VALUES (1)\0"));
        let done = message(b'C', b"INSERT 0 1\0");
        let open = [done.clone(), message(b'Z', b"T")].concat();
        assert_eq!(
            reader.answered(&open),
            Said::new("INSERT 0 1", Sense::Writes)
        );
        let idle = [done, message(b'Z', b"I")].concat();
        assert_eq!(
            reader.answered(&idle),
            Said::new("INSERT 0 1", Sense::Settles)
        );
    }

    #[test]
    fn reading_with_a_row_lock_is_not_a_write() {
        assert_eq!(
            sense("SELECT * FROM t WHERE id = $1 FOR UPDATE"),
            Sense::Asks
        );
        assert_eq!(sense("commit"), Sense::Settles);
        assert_eq!(sense("SELECT updated_at FROM t"), Sense::Asks);
    }

    #[test]
    fn bytes_of_no_sense_do_no_harm() {
        let mut reader = logged_in();
        assert_eq!(reader.asked(&[255; 40]).text, "");
        assert_eq!(reader.answered(&[0, 0, 0, 0, 0]).text, "answer");
        assert!(asks_encryption(&[0, 0, 0, 8, 4, 210, 22, 47]));
    }
}
