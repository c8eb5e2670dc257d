//! Rows in the text form of COPY: tabs between columns, `\N` for null, and backslashes before what would mean something.

use semel_landing::{Row, written};
use std::fmt::Write;

/// What rows and faults have in common.
const FACTS: [&str; 8] = [
    "event_id",
    "fingerprint",
    "message_id",
    "source",
    "published_at",
    "received_at",
    "delivery_id",
    "attempt",
];

const OF_ROWS: [&str; 2] = ["version", "payload"];
const OF_ANSWERS: [&str; 2] = ["answer_status", "answer"];
const OF_FAULTS: [&str; 3] = ["fault", "detail", "payload"];

/// The columns of a row, with or without those of an answer.
pub(super) fn row_columns(answers: bool) -> Vec<&'static str> {
    let beside: &[_] = if answers { &OF_ANSWERS } else { &[] };
    [&FACTS[..], &OF_ROWS, beside].concat()
}

/// Those of a fault.
pub(super) fn fault_columns() -> Vec<&'static str> {
    [&FACTS[..], &OF_FAULTS, &OF_ANSWERS].concat()
}

pub(super) fn row_line(row: &Row, answers: bool) -> String {
    let mut line = Line::of_facts(row);
    line.value(row.version);
    line.text(row.payload_text());
    if answers {
        line.known(row.answer.as_ref().map(|answer| answer.status));
        line.text(row.answer.as_ref().map_or("", |answer| answer.text()));
    }
    line.end()
}

pub(super) fn fault_line(row: &Row) -> String {
    let mut line = Line::of_facts(row);
    let fault = row.fault.as_ref();
    line.text(fault.map_or("", |fault| fault.word));
    // What a server said may quote a row, and a row may have anything in it.
    line.text(&fault.map_or("", |fault| &fault.detail).replace('\0', ""));
    line.bytes(Some(&row.payload));
    line.known(row.answer.as_ref().map(|answer| answer.status));
    line.bytes(row.answer.as_ref().map(|answer| &*answer.body));
    line.end()
}

/// A line while it is written.
struct Line(String);

// === impl Line ===

impl Line {
    /// What rows and faults have in common.
    fn of_facts(row: &Row) -> Self {
        let mut line = Self(String::with_capacity(row.bytes()));
        line.known_text(row.event_id.as_deref());
        line.known_text(row.fingerprint.as_deref());
        // An id is the sender's own text, and databases take no NUL.
        line.text(&row.message_id.replace('\0', ""));
        line.text(row.source);
        line.value(written(row.published_at));
        line.value(written(row.received_at));
        line.text(&row.delivery_id);
        line.known(
            row.attempt
                .map(|count| i64::try_from(count).unwrap_or(i64::MAX)),
        );
        line
    }

    fn value(&mut self, value: impl std::fmt::Display) {
        write!(self.0, "{value}\t").expect("a string takes every word");
    }

    fn known(&mut self, value: Option<impl std::fmt::Display>) {
        match value {
            Some(value) => self.value(value),
            None => self.value("\\N"),
        }
    }

    fn known_text(&mut self, text: Option<&str>) {
        match text {
            Some(text) => self.text(text),
            None => self.value("\\N"),
        }
    }

    fn text(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '\\' => self.0.push_str("\\\\"),
                '\n' => self.0.push_str("\\n"),
                '\r' => self.0.push_str("\\r"),
                '\t' => self.0.push_str("\\t"),
                other => self.0.push(other),
            }
        }
        self.0.push('\t');
    }

    fn bytes(&mut self, bytes: Option<&[u8]>) {
        let Some(bytes) = bytes else {
            return self.value("\\N");
        };
        self.0.push_str("\\\\x");
        for byte in bytes {
            write!(self.0, "{byte:02x}").expect("a string takes every word");
        }
        self.0.push('\t');
    }

    fn end(mut self) -> String {
        self.0.pop();
        self.0.push('\n');
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_something_to_copy_is_written_with_a_backslash() {
        let row = Row::new("pubsub", "a\tb\\N\n\r\\.").named("k", "f");
        let line = row_line(&row, false);
        assert!(
            line.ends_with("\t\\N\t0\ta\\tb\\\\N\\n\\r\\\\.\n"),
            "{line}"
        );
        assert_eq!(line.matches('\t').count(), row_columns(false).len() - 1);
        let columns = fault_columns().len();
        assert_eq!(fault_line(&row).matches('\t').count(), columns - 1);
    }
}
