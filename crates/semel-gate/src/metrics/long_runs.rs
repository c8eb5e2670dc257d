//! What is counted of work that takes longer than its sender waits.

use super::{OutcomeLabels, added};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// See the module.
#[derive(Debug)]
pub(crate) struct LongRunMetrics {
    outlasted: Family<OutcomeLabels, Counter>,
}

// === impl LongRunMetrics ===

impl LongRunMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        Self {
            outlasted: added(
                registry,
                "runs_outlasted",
                "Runs that ended after their sender heard that they go on, by route and outcome",
            ),
        }
    }

    /// A run has ended so.
    pub(super) fn outlasted(&self, route: &str, outcome: &'static str) {
        let route = route.into();
        self.outlasted
            .get_or_create(&OutcomeLabels { route, outcome })
            .inc();
    }
}
