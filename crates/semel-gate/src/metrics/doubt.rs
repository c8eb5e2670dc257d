//! What is counted of doubt: runs whose effect may or may not have happened, and routes whose deliveries have no key.

use super::{RouteLabel, added};
use crate::effect::doubt::Doubt;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// See the module.
#[derive(Debug)]
pub(crate) struct DoubtMetrics {
    timeouts: Family<RouteLabel, Counter>,
    in_doubt: Family<RouteLabel, Counter>,
    repeats: Family<RepeatLabels, Counter>,
    uncompleted: Family<RouteLabel, Counter>,
    only_invalid: Family<RouteLabel, Gauge>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RepeatLabels {
    route: String,
    reason: &'static str,
}

// === impl DoubtMetrics ===

impl DoubtMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        Self {
            timeouts: added(
                registry,
                "timeouts",
                "Runs whose handler did not answer within `timeout`",
            ),
            in_doubt: added(
                registry,
                "runs_in_doubt",
                "Runs that ended while their effect may or may not have happened, timeouts among them",
            ),
            repeats: added(
                registry,
                "runs_repeated_in_doubt",
                "Runs of work whose run before ended in doubt, by its reason: the effect may happen twice",
            ),
            uncompleted: added(
                registry,
                "runs_not_completed",
                "Runs whose handler answered with success and whose transaction did not complete them: their effect is in doubt",
            ),
            only_invalid: added(
                registry,
                "only_invalid",
                "1 while a route's deliveries, several in a row, have no key: an alarm",
            ),
        }
    }

    /// A metric that is there from the start can be told from one that is missing.
    pub(super) fn begin(&self, route: &RouteLabel) {
        drop(self.timeouts.get_or_create(route));
        drop(self.in_doubt.get_or_create(route));
        drop(self.uncompleted.get_or_create(route));
        for doubt in Doubt::ALL {
            let labels = RepeatLabels::of(&route.route, doubt);
            drop(self.repeats.get_or_create(&labels));
        }
        drop(self.only_invalid.get_or_create(route));
    }

    /// A handler did not answer in time.
    pub(crate) fn timed_out(&self, route: &str) {
        self.timeouts.get_or_create(&RouteLabel::of(route)).inc();
    }

    /// A run ended in doubt.
    pub(crate) fn ended(&self, route: &str) {
        self.in_doubt.get_or_create(&RouteLabel::of(route)).inc();
    }

    /// A handler answered with success, and its transaction did not complete the run.
    pub(crate) fn not_completed(&self, route: &str) {
        self.ended(route);
        self.uncompleted.get_or_create(&RouteLabel::of(route)).inc();
    }

    /// Work whose run before ended in doubt runs again.
    pub(crate) fn repeated(&self, route: &str, doubt: Doubt) {
        let labels = RepeatLabels::of(route, doubt);
        self.repeats.get_or_create(&labels).inc();
    }

    /// Whether only deliveries without a key arrive.
    pub(crate) fn only_invalid(&self, route: &str, is_so: bool) {
        let gauge = self.only_invalid.get_or_create(&RouteLabel::of(route));
        gauge.set(i64::from(is_so));
    }
}

// === impl RepeatLabels ===

impl RepeatLabels {
    fn of(route: &str, doubt: Doubt) -> Self {
        let (route, reason) = (route.into(), doubt.word());
        Self { route, reason }
    }
}
