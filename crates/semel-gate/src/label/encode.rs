//! A label's bytes, written in one go: JSON, each member within its own room.

use super::Description;
use bytes::Bytes;
use semel::store::LABEL_BYTES_MAX;
use std::fmt::{self, Write as _};

/// What a label is written of.
#[derive(Clone, Copy, Debug)]
pub struct LabelOf<'a> {
    /// The route's name.
    pub route: &'a str,
    /// Who delivered: the word of a source, `python` or `celery`.
    pub source: &'a str,
    /// The gate, or the process that has none before it.
    pub gate: &'a str,
    /// The sender's own name for the delivery.
    pub id: Option<&'a str>,
    /// The queue or subscription that it came from.
    pub from: Option<&'a str>,
    /// What the delivery says of its work.
    pub description: Option<&'a Description>,
    /// The span that begins the work: 55 characters of the W3C's form.
    pub traceparent: Option<&'a str>,
}

/// The room of each member, in bytes of JSON without its quotes. Together with names and quotes they are less than a label
/// may have.
const ROUTE_BYTES: usize = 96;
const SOURCE_BYTES: usize = 24;
const GATE_BYTES: usize = 64;
const ID_BYTES: usize = 128;
const FROM_BYTES: usize = 96;
const TRACEPARENT_BYTES: usize = 55;
const PARTS_BYTES: usize = 320;

/// The bytes of most labels: one allocation holds them.
const USUAL_BYTES: usize = 384;

/// A label while it is written.
struct Writer {
    out: String,
}

// === impl LabelOf ===

impl LabelOf<'_> {
    /// The bytes of the label.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut writer = Writer {
            out: String::with_capacity(USUAL_BYTES),
        };
        writer.out.push('{');
        writer.member("route", self.route, ROUTE_BYTES);
        writer.member("source", self.source, SOURCE_BYTES);
        writer.member("gate", self.gate, GATE_BYTES);
        if let Some(id) = self.id {
            writer.member("id", id, ID_BYTES);
        }
        if let Some(from) = self.from {
            writer.member("from", from, FROM_BYTES);
        }
        if let Some(traceparent) = self.traceparent {
            writer.member("traceparent", traceparent, TRACEPARENT_BYTES);
        }
        if let Some(description) = self.description {
            writer.parts(&description.parts);
            writer.plain("digests", &description.digests);
            if let Some(payload) = &description.payload {
                writer.payload(payload);
            }
        }
        writer.out.push('}');
        writer.out.into()
    }
}

// === impl Writer ===

impl Writer {
    fn name(&mut self, name: &str) {
        if !self.out.ends_with('{') {
            self.out.push(',');
        }
        self.out.push('"');
        self.out.push_str(name);
        self.out.push_str("\":\"");
    }

    fn member(&mut self, name: &str, text: &str, bytes_max: usize) {
        self.name(name);
        self.escaped(text, bytes_max);
        self.out.push('"');
    }

    /// A member that needs no escapes, and is as long as it always is.
    fn plain(&mut self, name: &str, value: &dyn fmt::Display) {
        self.name(name);
        write!(self.out, "{value}").expect("writing to a string does not fail");
        self.out.push('"');
    }

    /// The parts share their room; a part that has none left is left out.
    fn parts(&mut self, parts: &[(String, String)]) {
        const AROUND: usize = "\"\":\"\",".len();
        if parts.is_empty() {
            return;
        }
        self.name("parts");
        self.out.pop();
        self.out.push('{');
        let begin = self.out.len();
        for (name, value) in parts {
            let left = PARTS_BYTES.saturating_sub(self.out.len() - begin);
            let Some(room) = left.checked_sub(AROUND).filter(|room| *room >= 16) else {
                break;
            };
            if self.out.len() > begin {
                self.out.push(',');
            }
            self.out.push('"');
            let before = self.out.len();
            self.escaped(name, room / 2);
            let used = self.out.len() - before;
            self.out.push_str("\":\"");
            self.escaped(value, room - used);
            self.out.push('"');
        }
        self.out.push('}');
    }

    /// All of it, or none: half a document is read as another one.
    fn payload(&mut self, payload: &[u8]) {
        const CLOSES: usize = "\"}".len();
        let Ok(text) = std::str::from_utf8(payload) else {
            return;
        };
        let before = self.out.len();
        self.name("payload");
        let room = LABEL_BYTES_MAX.saturating_sub(self.out.len() + CLOSES);
        if self.escaped(text, room) {
            self.out.push('"');
        } else {
            self.out.truncate(before);
        }
    }

    /// Text as JSON has it between quotes, whole or cut with `…`; whether it is whole.
    fn escaped(&mut self, text: &str, bytes_max: usize) -> bool {
        const CUT: char = '…';
        let begin = self.out.len();
        // Where the text is cut if it does not fit.
        let mut fits_until = begin;
        for character in text.chars() {
            match character {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\0'..='\u{1f}' | '\u{7f}' => {
                    write!(self.out, "\\u{:04x}", u32::from(character))
                        .expect("writing to a string does not fail");
                }
                other => self.out.push(other),
            }
            let used = self.out.len() - begin;
            if used > bytes_max {
                self.out.truncate(fits_until);
                self.out.push(CUT);
                return false;
            }
            if used + CUT.len_utf8() <= bytes_max {
                fits_until = self.out.len();
            }
        }
        true
    }
}
