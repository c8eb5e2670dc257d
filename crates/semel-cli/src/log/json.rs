//! One event as one JSON object, written as it is read: a delivery pays for every microsecond here.

use jiff::Timestamp;
use std::fmt::{self, Write};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// `{"timestamp":…,"level":…,"target":…,…}` and a line feed.
#[derive(Clone, Copy, Debug)]
pub(super) struct JsonLine;

/// Writes fields as the members of an object that is already open.
struct Members<'a> {
    out: &'a mut String,
}

impl<S, N> FormatEvent<S, N> for JsonLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    #[expect(
        clippy::disallowed_methods,
        reason = "a log line carries the time it was written"
    )]
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let meta = event.metadata();
        let mut line = String::with_capacity(512);
        write!(
            line,
            "{{\"timestamp\":\"{:.6}\",\"level\":\"{}\"",
            Timestamp::now(),
            meta.level()
        )?;
        let mut members = Members { out: &mut line };
        members.text("target", meta.target());
        event.record(&mut members);
        line.push_str("}\n");
        writer.write_str(&line)
    }
}

/// The line that stands for lines which are missing.
#[expect(
    clippy::disallowed_methods,
    reason = "a log line carries the time it was written"
)]
pub(super) fn dropped(lines: u64) -> String {
    let now = Timestamp::now();
    format!(
        "{{\"timestamp\":\"{now:.6}\",\"level\":\"WARN\",\"target\":\"semel::log\",\"dropped\":{lines},\
         \"message\":\"{lines} log lines were dropped: whoever reads them was too slow\"}}\n"
    )
}

// === impl Members ===

impl Members<'_> {
    fn name(&mut self, name: &str) {
        self.out.push(',');
        quote(self.out, name);
        self.out.push(':');
    }

    fn text(&mut self, name: &str, text: &str) {
        self.name(name);
        quote(self.out, text);
    }

    fn plain(&mut self, name: &str, value: impl fmt::Display) {
        self.name(name);
        write!(self.out, "{value}").expect("writing to a string does not fail");
    }
}

impl Visit for Members<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field.name(), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.plain(field.name(), value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.plain(field.name(), value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.plain(field.name(), value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        if value.is_finite() {
            self.plain(field.name(), value);
        } else {
            self.plain(field.name(), "null");
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.text(field.name(), &format!("{value:?}"));
    }
}

/// A JSON string. Control characters are escaped, so that nothing a sender says can begin a line.
fn quote(out: &mut String, text: &str) {
    out.push('"');
    let mut plain_from = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' && byte != 0x7f {
            continue;
        }
        out.push_str(text.get(plain_from..at).unwrap_or_default());
        plain_from = at + 1;
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            other => {
                write!(out, "\\u{other:04x}").expect("writing to a string does not fail");
            }
        }
    }
    out.push_str(text.get(plain_from..).unwrap_or_default());
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_quoted_is_read_back() {
        for text in [
            "",
            "plain",
            "a\"b\\c",
            "line\nfeed\r\t\0",
            "ü€😀\u{7f}",
            "\u{2028}",
        ] {
            let mut out = String::new();
            quote(&mut out, text);
            assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text, "{out}");
            assert!(!out.contains(['\n', '\r']), "{out}");
        }
    }
}
