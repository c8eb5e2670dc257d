//! What is counted of senders: those that are not believed, and those that send no key yet.

use super::{ReasonLabel, RouteLabel, added};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// See the module.
#[derive(Debug)]
pub(crate) struct SenderMetrics {
    unverified: Family<UnverifiedLabels, Counter>,
    unprotected: Family<RouteLabel, Counter>,
    turned_away: Family<ReasonLabel, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct UnverifiedLabels {
    route: String,
    reason: &'static str,
}

// === impl SenderMetrics ===

impl SenderMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        Self {
            unverified: added(
                registry,
                "unverified",
                "Deliveries whose sender was not believed, by reason",
            ),
            unprotected: added(
                registry,
                "unprotected",
                "Requests without a key that were forwarded unprotected (`key_missing`)",
            ),
            turned_away: added(
                registry,
                "turned_away",
                "Requests that were refused before they were deliveries, by reason",
            ),
        }
    }

    /// A delivery was not taken, because its sender is not believed.
    pub(crate) fn unverified(&self, route: &str, reason: &'static str) {
        let route = route.into();
        let label = UnverifiedLabels { route, reason };
        self.unverified.get_or_create(&label).inc();
    }

    /// Counts a request that was refused before it was a delivery.
    pub(crate) fn turned_away(&self, reason: &'static str) {
        let label = ReasonLabel { reason };
        self.turned_away.get_or_create(&label).inc();
    }

    /// A request without a key was forwarded unprotected.
    pub(crate) fn unprotected(&self, route: &str) {
        self.unprotected.get_or_create(&RouteLabel::of(route)).inc();
    }
}
