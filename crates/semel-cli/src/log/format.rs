//! How log lines look: JSON, JSON by the names of Google's Cloud Logging, or text for people.

use super::LogError;
use super::json::{CloudLogging, JsonLine};
use super::text::TextLine;
use std::fmt;
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// The variable that chooses the form.
const VARIABLE: &str = "SEMEL_LOG_FORMAT";

/// The form of log lines.
#[derive(Clone, Debug)]
pub(super) enum LogFormat {
    Json(JsonLine),
    Text(TextLine),
}

// === impl LogFormat ===

impl LogFormat {
    /// What the environment says: `json`, `cloud-logging` or `text`. Otherwise text where a person reads it on a
    /// terminal, and JSON everywhere else.
    ///
    /// # Errors
    /// When it says something else.
    pub(super) fn choose(
        variable: impl Fn(&str) -> Option<String>,
        is_terminal: bool,
    ) -> Result<Self, LogError> {
        let no_color = variable("NO_COLOR").is_some_and(|text| !text.is_empty());
        let text = TextLine {
            has_color: is_terminal && !no_color,
        };
        match variable(VARIABLE).as_deref() {
            Some("json") => Ok(Self::Json(JsonLine::default())),
            Some("text") => Ok(Self::Text(text)),
            Some("cloud-logging") => Ok(Self::Json(JsonLine {
                cloud: Some(CloudLogging {
                    project: variable("GOOGLE_CLOUD_PROJECT"),
                }),
            })),
            Some("") | None if is_terminal => Ok(Self::Text(text)),
            Some("") | None => Ok(Self::Json(JsonLine::default())),
            Some(other) => Err(LogError::Variable(format!(
                "{VARIABLE} = {other}: say json, cloud-logging or text"
            ))),
        }
    }

    /// The line that stands for lines which are missing.
    pub(super) fn dropped(&self, lines: u64) -> String {
        match self {
            Self::Json(json) => json.dropped(lines),
            Self::Text(text) => text.dropped(lines),
        }
    }
}

/// What people and programs read where lines are missing.
pub(super) fn dropped_message(lines: u64) -> String {
    format!("{lines} log lines were dropped: whoever reads them was too slow")
}

impl<S, N> FormatEvent<S, N> for LogFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        writer.write_str(&match self {
            Self::Json(json) => json.line(event),
            Self::Text(text) => text.line(event),
        })
    }
}
