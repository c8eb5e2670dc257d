//! The task that sends spans, and its end.

use super::otlp::Exporter;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

/// Spans are being sent.
#[derive(Debug)]
pub(crate) struct Exporting {
    task: JoinHandle<()>,
    stop: Stop,
}

/// How the task is told to end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop {
    /// When what is queued has been sent, each batch once.
    pub(crate) soon: CancellationToken,
    /// Now.
    pub(crate) now: CancellationToken,
}

// === impl Exporting ===

impl Exporting {
    pub(crate) fn begin(exporter: Exporter) -> Self {
        let stop = Stop::default();
        Self {
            task: tokio::spawn(exporter.run(stop.clone())),
            stop,
        }
    }

    /// Sends what is queued, until the deadline.
    pub(crate) async fn end(self, deadline: Instant) {
        let Self { mut task, stop } = self;
        stop.soon.cancel();
        if timeout_at(deadline, &mut task).await.is_err() {
            stop.now.cancel();
            // It has nothing left to wait for.
            drop(task.await);
        }
    }
}
