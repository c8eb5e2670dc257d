//! One event as one line for people: time, level, what happened, and the fields as `name=value`.

use super::format::dropped_message;
use jiff::Timestamp;
use std::fmt::{self, Write};
use tracing::field::{Field, Visit};
use tracing::{Event, Level};

/// `2026-11-17T20:03:11.123Z WARN  the message name=value …`
#[derive(Clone, Copy, Debug)]
pub(super) struct TextLine {
    /// Whether the terminal is told to show colours.
    pub(super) has_color: bool,
}

/// The message, and the fields behind it.
#[derive(Default)]
struct Words {
    message: String,
    fields: String,
}

const GREY: &str = "\x1b[2m";
const RED: &str = "\x1b[31m";
const YELLOW: &str = "\x1b[33m";
const GREEN: &str = "\x1b[32m";
const PLAIN: &str = "\x1b[0m";

// === impl TextLine ===

impl TextLine {
    pub(super) fn line(self, event: &Event<'_>) -> String {
        let mut words = Words::default();
        event.record(&mut words);
        let Words { message, fields } = words;
        self.written(*event.metadata().level(), &message, &fields)
    }

    pub(super) fn dropped(self, lines: u64) -> String {
        self.written(Level::WARN, &dropped_message(lines), "")
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a log line carries the time it was written"
    )]
    fn written(self, level: Level, message: &str, fields: &str) -> String {
        let now = Timestamp::now();
        if !self.has_color {
            return format!("{now:.3} {level:<5} {message}{fields}\n");
        }
        let color = match level {
            Level::ERROR => RED,
            Level::WARN => YELLOW,
            Level::INFO => GREEN,
            Level::DEBUG | Level::TRACE => GREY,
        };
        format!("{GREY}{now:.3}{PLAIN} {color}{level:<5}{PLAIN} {message}{GREY}{fields}{PLAIN}\n")
    }
}

// === impl Words ===

impl Words {
    fn add(&mut self, field: &Field, value: &dyn fmt::Display) {
        let name = field.name();
        let written = if name == "message" {
            write!(self.message, "{}", Escaped(value))
        } else {
            write!(self.fields, " {name}={}", Escaped(value))
        };
        written.expect("writing to a string does not fail");
    }
}

impl Visit for Words {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() != "message" && value.contains([' ', '"', '=']) {
            self.add(field, &format_args!("{value:?}"));
        } else {
            self.add(field, &value);
        }
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, &value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, &format_args!("{value:?}"));
    }
}

/// Without control characters: nothing a sender says can begin a line or move the cursor.
struct Escaped<'a>(&'a dyn fmt::Display);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in self.0.to_string().chars() {
            if part.is_control() {
                write!(f, "{}", part.escape_default())?;
            } else {
                f.write_char(part)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_begins_a_line_or_moves_the_cursor() {
        let evil = "a\nb\r\x1b[2J\u{9b}c";
        let shown = Escaped(&evil).to_string();
        assert!(!shown.contains(|c: char| c.is_control()), "{shown:?}");
        assert!(shown.starts_with("a\\nb"), "{shown}");
    }

    #[test]
    fn colour_is_only_where_it_was_asked_for() {
        let line = |has_color| TextLine { has_color }.written(Level::WARN, "late", " key=v1");
        assert!(
            line(false).ends_with("Z WARN  late key=v1\n"),
            "{}",
            line(false)
        );
        assert!(line(true).contains("\x1b[33mWARN "), "{}", line(true));
        assert!(!line(false).contains('\x1b'));
    }
}
