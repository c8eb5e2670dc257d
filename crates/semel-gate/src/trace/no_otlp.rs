//! A build without the feature `otlp` sends no spans.

use super::exporting::Stop;
use super::tracer::Tracer;
use crate::metrics::spans::SpanMetrics;
use crate::settings::Otlp;

/// Nobody sends spans.
#[derive(Debug)]
pub(crate) enum Exporter {}

pub(crate) fn begin(_: &Otlp, _: &SpanMetrics) -> Option<(Tracer, Exporter)> {
    tracing::warn!("this build has no OpenTelemetry (feature `otlp`): no spans are sent");
    None
}

impl Exporter {
    pub(crate) async fn run(self, _: Stop) {
        match self {}
    }
}
