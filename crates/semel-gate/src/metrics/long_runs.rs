//! What is counted of work that takes longer than its sender waits, and of runs in doubt.

use super::{OutcomeLabels, added};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// See the module.
#[derive(Debug)]
pub(crate) struct LongRunMetrics {
    outlasted: Family<OutcomeLabels, Counter>,
    probes: Family<ProbeLabels, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ProbeLabels {
    route: String,
    answer: &'static str,
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
            probes: added(
                registry,
                "probes",
                "Questions to the handler what became of a run in doubt, by route and answer",
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

    /// The handler was asked what became of a run in doubt, and this is the word for its answer.
    pub(crate) fn probed(&self, route: &str, answer: &'static str) {
        let route = route.into();
        self.probes
            .get_or_create(&ProbeLabels { route, answer })
            .inc();
    }
}
