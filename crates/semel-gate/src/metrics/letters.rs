//! Counts of letters: those put and refused, those that are open, and work that no letter holds.

use super::{LetterLabels, RouteLabel, added, signed};
use crate::letters::quota::Count;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use semel::letter::Reason;

/// See the module.
#[derive(Debug)]
pub(crate) struct LetterMetrics {
    kept: Family<LetterLabels, Counter>,
    refused: Family<LetterLabels, Counter>,
    open: Family<RouteLabel, Gauge>,
    bytes: Family<RouteLabel, Gauge>,
    for_operator: Family<RouteLabel, Gauge>,
    alarmed: Family<RouteLabel, Counter>,
    unkept: Family<RouteLabel, Counter>,
}

// === impl LetterMetrics ===

impl LetterMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let r = registry;
        Self {
            kept: added(r, "letters_kept", "Letters that were put into the store"),
            refused: added(
                r,
                "letters_refused",
                "Deliveries that were not kept as letters because the route's quota is used up",
            ),
            open: added(
                r,
                "letters_open",
                "Letters of the route in the store, counted once a minute",
            ),
            bytes: added(
                r,
                "letters_bytes",
                "Bytes of the route's letters in the store, counted once a minute",
            ),
            for_operator: added(
                r,
                "letters_for_operator",
                "Letters that only an operator can finish, because no further delivery is expected; counted once a minute",
            ),
            alarmed: added(
                r,
                "letters_alarmed",
                "Letters of unfinished work whose next delivery is overdue, or whose sender's attempts are used up",
            ),
            unkept: added(
                r,
                "work_unkept",
                "Deliveries without success that may be their sender's last, and could not be kept as letters: work that may be \
                 lost",
            ),
        }
    }

    /// A metric that is there from the start can be told from one that is missing.
    pub(super) fn begin(&self, route: &RouteLabel) {
        drop(self.alarmed.get_or_create(route));
        drop(self.unkept.get_or_create(route));
        drop(self.for_operator.get_or_create(route));
    }

    pub(crate) fn kept(&self, route: &str, reason: Reason) {
        let labels = LetterLabels::of(route, reason);
        self.kept.get_or_create(&labels).inc();
    }

    pub(crate) fn refused(&self, route: &str, reason: Reason) {
        let labels = LetterLabels::of(route, reason);
        self.refused.get_or_create(&labels).inc();
    }

    pub(crate) fn counted(&self, route: &str, count: Count) {
        let label = RouteLabel::of(route);
        for (gauge, number) in [
            (&self.open, count.letters()),
            (&self.bytes, count.bytes()),
            (&self.for_operator, count.for_operator()),
        ] {
            gauge.get_or_create(&label).set(signed(number));
        }
    }

    pub(crate) fn alarmed(&self, route: &str) {
        self.alarmed.get_or_create(&RouteLabel::of(route)).inc();
    }

    pub(crate) fn unkept(&self, route: &str) {
        self.unkept.get_or_create(&RouteLabel::of(route)).inc();
    }
}
