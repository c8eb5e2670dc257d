//! Log lines: JSON, one per line, or text on a terminal. A gate writes them to standard output, as platforms collect
//! them.
//!
//! Nobody waits for a reader of the log but one thread: lines are queued, and dropped and counted when
//! the queue is full. What an operator did has room of its own in it.

mod format;
mod json;
mod text;
mod queue;

use format::LogFormat;
use queue::Queue;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::Duration;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// Everything that is told without asking: deliveries, audits, warnings, and the program's own story.
const FILTER_DEFAULT: &str = "info";

/// What a program tells whose output is for people: what goes wrong, and what they did on its page.
const FILTER_ASIDE: &str = "warn,audit=info";

/// How long the end of the process waits for a reader of the last lines: shorter than the pause
/// between SIGTERM and SIGKILL leaves after a drain.
const FLUSH_WITHIN: Duration = Duration::from_secs(1);

/// A log at work. When it is dropped, what is left is written, if somebody reads it soon.
#[derive(Debug)]
#[must_use]
pub(crate) struct Log {
    queue: Queue,
}

/// Why no log is written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LogError {
    /// A variable says what nobody understands.
    #[error("{0}")]
    Variable(String),
    /// The system has no thread, or no file.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// Begins to write log lines; `SEMEL_LOG` chooses which, as in `warn,delivery=info`, and `SEMEL_LOG_FORMAT` how they
/// look.
///
/// # Errors
/// When one of these cannot be read, or no thread can be started: lines would gather and nobody would write them.
pub(crate) fn begin() -> Result<Log, LogError> {
    let stdout = io::stdout().as_fd().try_clone_to_owned()?;
    start(FILTER_DEFAULT, stdout.into())
}

/// Begins to write warnings and audits to standard error, for a program whose output is for people; `SEMEL_LOG`
/// chooses more.
///
/// # Errors
/// As above.
pub(crate) fn begin_aside() -> Result<Log, LogError> {
    let stderr = io::stderr().as_fd().try_clone_to_owned()?;
    start(FILTER_ASIDE, stderr.into())
}

/// Begins to write only what an operator does, to standard error: a command of theirs may wait.
pub(crate) fn begin_audit() {
    let format = LogFormat::Json(json::JsonLine::default());
    subscribe(EnvFilter::new("off,audit=info"), format, io::stderr);
}

/// `to` is a file of its own: a thread that waits for its reader holds no lock that others need.
fn start(default: &str, to: File) -> Result<Log, LogError> {
    let filter = filter(default, variable)?;
    let format = LogFormat::choose(variable, to.is_terminal())?;
    let queue = Queue::default();
    subscribe(filter, format.clone(), queue.clone());
    let lines = queue.clone();
    thread::Builder::new()
        .name("semel-log".into())
        .spawn(move || lines.write_to(&format, to))?;
    Ok(Log { queue })
}

/// Which lines are written: what `SEMEL_LOG` says, or `RUST_LOG` as elsewhere in Rust.
fn filter(default: &str, variable: impl Fn(&str) -> Option<String>) -> Result<EnvFilter, LogError> {
    let said = |name| variable(name).filter(|text| !text.is_empty());
    let of = |name| said(name).map(|text| (name, text));
    let Some((name, text)) = of("SEMEL_LOG").or_else(|| of("RUST_LOG")) else {
        return Ok(EnvFilter::new(default));
    };
    EnvFilter::builder().parse(&text).map_err(|error| {
        let says =
            format!("{name} = {text}: {error}; say info, or by target as in warn,delivery=info");
        LogError::Variable(says)
    })
}

#[allow(
    clippy::disallowed_methods,
    reason = "the command alone reads the environment"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn subscribe(
    filter: EnvFilter,
    format: LogFormat,
    writer: impl for<'a> MakeWriter<'a> + Send + Sync + 'static,
) {
    tracing_subscriber::fmt()
        .event_format(format)
        .with_env_filter(filter)
        .with_writer(writer)
        .init();
}

// === impl Log ===

impl Log {
    /// How many lines nobody will read.
    pub(crate) fn dropped(&self) -> Arc<AtomicU64> {
        self.queue.dropped()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.queue.close(FLUSH_WITHIN);
    }
}

#[cfg(test)]
mod tests {
    use super::format::LogFormat;
    use super::*;
    use serde_json::Value;
    use std::sync::Mutex;

    /// What stands in the variables.
    fn said(variables: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> {
        |name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        }
    }

    /// The one line that is written with these variables.
    fn line(variables: &[(&str, &str)], tell: impl FnOnce()) -> String {
        let format = LogFormat::choose(said(variables), false).unwrap();
        let written = Arc::new(Mutex::new(Vec::new()));
        let subscriber = tracing_subscriber::fmt()
            .event_format(format)
            .with_writer({
                let written = Arc::clone(&written);
                move || Shared(Arc::clone(&written))
            })
            .finish();
        tracing::subscriber::with_default(subscriber, tell);
        let written = written.lock().unwrap().clone();
        String::from_utf8(written).unwrap()
    }

    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn delivery() {
        tracing::warn!(
            target: "delivery",
            outcome = "ran", method = "POST", status = 200_u16, elapsed_ms = 12.5,
            trace_id = "0af7651916cd43dd8448eb211c80319c", span_id = "b7ad6b7169203331",
            "delivery"
        );
    }

    #[test]
    fn a_line_is_json_where_no_terminal_is() {
        let line: Value = serde_json::from_str(&line(&[], delivery)).unwrap();
        for (name, value) in [
            ("level", "WARN"),
            ("target", "delivery"),
            ("message", "delivery"),
        ] {
            assert_eq!(line[name], value);
        }
        assert_eq!(line["trace_id"], "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(line["status"], 200);
        assert!(line["timestamp"].is_string() && line["httpRequest"].is_null());
    }

    #[test]
    fn cloud_logging_finds_the_names_it_looks_for() {
        let google = [
            ("SEMEL_LOG_FORMAT", "cloud-logging"),
            ("GOOGLE_CLOUD_PROJECT", "shop"),
        ];
        let line: Value = serde_json::from_str(&line(&google, delivery)).unwrap();
        assert_eq!(line["severity"], "WARNING");
        assert_eq!(line["message"], "delivery");
        assert!(line["time"].as_str().unwrap().ends_with('Z'), "{line}");
        let trace = "projects/shop/traces/0af7651916cd43dd8448eb211c80319c";
        assert_eq!(line["logging.googleapis.com/trace"], trace);
        assert_eq!(line["logging.googleapis.com/spanId"], "b7ad6b7169203331");
        assert_eq!(line["logging.googleapis.com/trace_sampled"], true);
        let request =
            serde_json::json!({"requestMethod": "POST", "status": 200, "latency": "0.012500s"});
        assert_eq!(line["httpRequest"], request);
        assert!(
            line["level"].is_null() && line["timestamp"].is_null() && line["trace_id"].is_null()
        );
    }

    #[test]
    fn a_person_reads_one_line_of_text() {
        let text = line(&[("SEMEL_LOG_FORMAT", "text")], || {
            tracing::info!(route = "a b", status = 200, "ready\n\x1b[31m");
        });
        assert!(
            text.ends_with("INFO  ready\\n\\u{1b}[31m route=\"a b\" status=200\n"),
            "{text:?}"
        );
        assert_eq!(text.lines().count(), 1);
    }

    #[test]
    fn colours_are_for_terminals_that_want_them() {
        let color = |variables, is_terminal| match LogFormat::choose(said(variables), is_terminal)
            .unwrap()
        {
            LogFormat::Text(text) => Some(text.has_color),
            LogFormat::Json(_) => None,
        };
        let text = ("SEMEL_LOG_FORMAT", "text");
        for (variables, is_terminal, expected) in [
            (&[][..], false, None),
            (&[], true, Some(true)),
            (&[("NO_COLOR", "1")], true, Some(false)),
            (&[("NO_COLOR", "")], true, Some(true)),
            (&[text], false, Some(false)),
            (&[("SEMEL_LOG_FORMAT", "json")], true, None),
        ] {
            assert_eq!(
                color(variables, is_terminal),
                expected,
                "{variables:?} {is_terminal}"
            );
        }
    }

    #[test]
    fn our_variable_comes_before_rusts_and_a_broken_one_is_refused() {
        let chosen = |variables| filter("info", said(variables)).map(|it| it.to_string());
        assert_eq!(chosen(&[]).unwrap(), "info");
        assert_eq!(chosen(&[("RUST_LOG", "debug")]).unwrap(), "debug");
        let both = [("SEMEL_LOG", "warn"), ("RUST_LOG", "debug")];
        assert_eq!(chosen(&both).unwrap(), "warn");
        let broken = chosen(&[("SEMEL_LOG", "delivery=loud")]).unwrap_err();
        assert!(
            broken
                .to_string()
                .starts_with("SEMEL_LOG = delivery=loud: "),
            "{broken}"
        );
        let format = LogFormat::choose(said(&[("SEMEL_LOG_FORMAT", "xml")]), false);
        assert!(matches!(format, Err(LogError::Variable(_))));
    }
}
