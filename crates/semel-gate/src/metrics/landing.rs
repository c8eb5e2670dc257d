//! What is counted of rows that land.

use super::{RouteLabel, Seconds, added, added_seconds, observe};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use semel_landing::{Landed, NotLanded};
use std::time::Duration;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct LandingMetrics {
    rows: Family<RouteLabel, Counter>,
    failures: Family<RouteLabel, Counter>,
    seconds: Seconds<RouteLabel>,
}

// === impl LandingMetrics ===

impl LandingMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        Self {
            rows: added(
                registry,
                "landed_rows",
                "Rows that are durable, faults among them",
            ),
            failures: added(
                registry,
                "landing_failures",
                "Deliveries that were not known to have landed, and are delivered again",
            ),
            seconds: added_seconds(
                registry,
                "landing_seconds",
                "Seconds until a row was durable, or was given up",
            ),
        }
    }

    /// A delivery has landed, or has not.
    pub(crate) fn landed(&self, route: &str, landed: &Result<Landed, NotLanded>, took: Duration) {
        let label = RouteLabel::of(route);
        let counter = match landed {
            Ok(_) => &self.rows,
            Err(_) => &self.failures,
        };
        counter.get_or_create(&label).inc();
        observe(&self.seconds, &label, took);
    }
}
