//! What is counted of spans: those that their receiver has, and those that nobody will see.

use super::{ReasonLabel, added};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct SpanMetrics {
    sent: Counter,
    dropped: Family<ReasonLabel, Counter>,
}

/// Why a span was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LostReason {
    /// Too many waited.
    QueueFull,
    /// The receiver was not reached, or did not take it.
    #[cfg_attr(
        not(feature = "otlp"),
        allow(dead_code, reason = "without the feature nothing is sent")
    )]
    NotTaken,
    /// The gate ended before it was sent.
    Stopped,
}

// === impl SpanMetrics ===

impl SpanMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        Self {
            sent: added(
                registry,
                "spans_sent",
                "Spans that their receiver has taken",
            ),
            dropped: added(
                registry,
                "spans_dropped",
                "Spans that nobody will see, by reason",
            ),
        }
    }

    pub(crate) fn sent(&self, count: u64) {
        self.sent.inc_by(count);
    }

    pub(crate) fn lost(&self, count: u64, reason: LostReason) {
        let reason = reason.word();
        self.dropped
            .get_or_create(&ReasonLabel { reason })
            .inc_by(count);
    }
}

// === impl LostReason ===

impl LostReason {
    /// The word for it, in metrics and log lines.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::NotTaken => "not_taken",
            Self::Stopped => "stopped",
        }
    }
}
