//! Log lines: JSON, one per line. A gate writes them to standard output, as platforms collect them.

use tracing_subscriber::EnvFilter;

/// Everything that is told without asking: deliveries, audits, warnings, and the program's own story.
const USUAL: &str = "info";

/// Begins to write log lines; `SEMEL_LOG` chooses which, as in `warn,delivery=info`.
pub(crate) fn begin() {
    let filter = EnvFilter::builder()
        .with_env_var("SEMEL_LOG")
        .try_from_env()
        .unwrap_or_else(|_| EnvFilter::new(USUAL));
    tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_current_span(false)
        .with_span_list(false)
        .with_env_filter(filter)
        .init();
}

/// Begins to write only what an operator does, to standard error.
pub(crate) fn begin_audit() {
    tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_current_span(false)
        .with_span_list(false)
        .with_env_filter(EnvFilter::new("off,audit=info"))
        .with_writer(std::io::stderr)
        .init();
}
