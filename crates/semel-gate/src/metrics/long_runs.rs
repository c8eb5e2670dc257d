//! What is counted of work that takes longer than its sender waits.

use super::{OutcomeLabels, RouteLabel, added};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// See the module.
#[derive(Debug)]
pub(crate) struct LongRunMetrics {
    outlasted: Family<OutcomeLabels, Counter>,
    abandoned: Family<RouteLabel, Counter>,
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
            abandoned: added(
                registry,
                "abandoned",
                "Work that was parked because nobody delivered it for as long as its sender may",
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

    /// Work was parked that nobody delivers any more.
    pub(crate) fn abandoned(&self, route: &str) {
        self.abandoned.get_or_create(&RouteLabel::of(route)).inc();
    }
}
