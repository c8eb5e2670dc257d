//! The way of spans out of the gate: sampled, queued, and counted when they are lost. No delivery waits for it.

use super::context::TraceContext;
use super::span::Span;
use crate::metrics::spans::{LostReason, SpanMetrics};
use crate::rate_limited_log::RateLimitedLog;
use crate::settings::{Otlp, Sampler};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

/// Takes spans. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Tracer {
    sampler: Sampler,
    queue: mpsc::Sender<Span>,
    lost: LostSpans,
}

/// Counts spans that nobody will see, and says so once in a while.
#[derive(Clone, Debug)]
pub(crate) struct LostSpans {
    metrics: SpanMetrics,
    log: Arc<Mutex<LossLog>>,
}

#[derive(Debug, Default)]
struct LossLog {
    untold: u64,
    rate: RateLimitedLog,
}

// === impl Tracer ===

impl Tracer {
    /// A queue for spans, and its end to be read.
    pub(crate) fn new(settings: &Otlp, metrics: SpanMetrics) -> (Self, mpsc::Receiver<Span>) {
        let (queue, spans) = mpsc::channel(settings.batch.queue_max.max(1));
        let tracer = Self {
            sampler: settings.sampler,
            queue,
            lost: LostSpans {
                metrics,
                log: Arc::default(),
            },
        };
        (tracer, spans)
    }

    /// The context of a new span: within the sender's, or the first of a new trace.
    pub(crate) fn begin(&self, parent: Option<&TraceContext>) -> TraceContext {
        let begun = parent.map_or_else(TraceContext::root, TraceContext::child);
        let decided = parent.map(TraceContext::is_sampled);
        let is_sampled = self.sampler.samples(begun.trace_id, decided);
        begun.sampled(is_sampled)
    }

    /// Queues a span, or drops it.
    pub(crate) fn send(&self, span: Span) {
        match self.queue.try_send(span) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                let why = "more spans came than the receiver takes; OTEL_BSP_MAX_QUEUE_SIZE is how many wait";
                self.lost.add(1, LostReason::QueueFull, why);
            }
            Err(TrySendError::Closed(_)) => {
                self.lost
                    .add(1, LostReason::Stopped, "the gate is going down");
            }
        }
    }

    pub(crate) const fn lost(&self) -> &LostSpans {
        &self.lost
    }
}

// === impl LostSpans ===

impl LostSpans {
    pub(crate) fn add(&self, count: usize, reason: LostReason, why: &str) {
        self.metrics.lost(count as u64, reason);
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.untold += count as u64;
        if log.rate.is_due() {
            let spans_dropped = std::mem::take(&mut log.untold);
            drop(log);
            tracing::warn!(
                spans_dropped,
                reason = reason.word(),
                why,
                "spans were dropped; deliveries are not affected"
            );
        }
    }

    pub(crate) fn sent(&self, count: usize) {
        self.metrics.sent(count as u64);
    }
}
