//! One event as one JSON object, written as it is read: a delivery pays for every microsecond here.

use super::format::dropped_message;
use jiff::Timestamp;
use std::fmt::{self, Write};
use tracing::field::{Field, Visit};
use tracing::{Event, Level};

/// `{"timestamp":…,"level":…,"target":…,…}` and a line feed.
#[derive(Clone, Debug, Default)]
pub(super) struct JsonLine {
    /// Whose names the members have, if not ours.
    pub(super) cloud: Option<CloudLogging>,
}

/// The names by which Google's Cloud Logging knows the time, the severity, the trace and the request of a line.
#[derive(Clone, Debug, Default)]
pub(super) struct CloudLogging {
    /// Whose traces they are.
    pub(super) project: Option<String>,
}

/// Writes fields as the members of an object that is already open.
struct Members<'a> {
    out: &'a mut String,
    cloud: Option<&'a CloudLogging>,
    /// What Cloud Logging shows of a request.
    request: HttpRequest,
}

#[derive(Default)]
struct HttpRequest {
    method: Option<String>,
    status: Option<u64>,
    elapsed_ms: Option<f64>,
}

// === impl JsonLine ===

impl JsonLine {
    pub(super) fn line(&self, event: &Event<'_>) -> String {
        let meta = event.metadata();
        let mut line = self.open(*meta.level());
        let mut members = Members {
            out: &mut line,
            cloud: self.cloud.as_ref(),
            request: HttpRequest::default(),
        };
        members.text("target", meta.target());
        event.record(&mut members);
        members.close();
        line.push_str("}\n");
        line
    }

    /// The line that stands for lines which are missing.
    pub(super) fn dropped(&self, lines: u64) -> String {
        let mut line = self.open(Level::WARN);
        let message = dropped_message(lines);
        writeln!(
            line,
            ",\"target\":\"semel::log\",\"dropped\":{lines},\"message\":\"{message}\"}}"
        )
        .expect("writing to a string does not fail");
        line
    }

    /// The beginning of a line.
    #[expect(
        clippy::disallowed_methods,
        reason = "a log line carries the time it was written"
    )]
    fn open(&self, level: Level) -> String {
        let (time, name) = match &self.cloud {
            Some(_) => ("time", "severity"),
            None => ("timestamp", "level"),
        };
        let word = match (&self.cloud, level) {
            (Some(_), Level::WARN) => "WARNING",
            (Some(_), Level::TRACE) => "DEBUG",
            _ => level.as_str(),
        };
        let mut line = String::with_capacity(512);
        let now = Timestamp::now();
        write!(line, "{{\"{time}\":\"{now:.6}\",\"{name}\":\"{word}\"")
            .expect("writing to a string does not fail");
        line
    }
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

    /// The trace and the span by the names that Cloud Logging looks for; whether this was one of them.
    fn is_trace(&mut self, name: &str, value: &str) -> bool {
        let Some(cloud) = self.cloud else {
            return false;
        };
        match (name, &cloud.project) {
            ("trace_id", Some(project)) => {
                let trace = format!("projects/{project}/traces/{value}");
                self.text("logging.googleapis.com/trace", &trace);
            }
            ("trace_id", None) => self.text("logging.googleapis.com/trace", value),
            ("span_id", _) => {
                self.text("logging.googleapis.com/spanId", value);
                self.plain("logging.googleapis.com/trace_sampled", true);
            }
            _ => return false,
        }
        true
    }

    /// What is known of the request, as one member.
    fn close(&mut self) {
        let HttpRequest {
            method: Some(method),
            status: Some(status),
            elapsed_ms,
        } = std::mem::take(&mut self.request)
        else {
            return;
        };
        let latency = elapsed_ms.unwrap_or_default() / 1e3;
        self.name("httpRequest");
        self.out.push_str("{\"requestMethod\":");
        quote(self.out, &method);
        write!(
            self.out,
            ",\"status\":{status},\"latency\":\"{latency:.6}s\"}}"
        )
        .expect("writing to a string does not fail");
    }
}

impl Visit for Members<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        if self.is_trace(field.name(), value) {
            return;
        }
        if self.cloud.is_some() && field.name() == "method" {
            self.request.method = Some(value.to_owned());
        }
        self.text(field.name(), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        if self.cloud.is_some() && field.name() == "status" {
            self.request.status = Some(value);
        }
        self.plain(field.name(), value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.plain(field.name(), value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.plain(field.name(), value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        if self.cloud.is_some() && field.name() == "elapsed_ms" {
            self.request.elapsed_ms = Some(value);
        }
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
