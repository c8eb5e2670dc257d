//! What is counted of connections.

use super::added;
use crate::activity::CutReason;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Connections, by the listener they came to.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionMetrics {
    open: Family<ListenerLabel, Gauge>,
    full: Family<ListenerLabel, Counter>,
    turned_away: Family<ListenerLabel, Counter>,
    cut: Family<CutLabels, Counter>,
}

/// A connection that is open, until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenConnection(Gauge);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ListenerLabel {
    listener: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CutLabels {
    listener: &'static str,
    reason: &'static str,
}

// === impl ConnectionMetrics ===

impl ConnectionMetrics {
    pub(super) fn new(r: &mut Registry) -> Self {
        Self {
            open: added(r, "connections", "Connections that are open"),
            full: added(
                r,
                "connections_full",
                "How often all connections were taken and a new one had to wait",
            ),
            turned_away: added(
                r,
                "connections_turned_away",
                "Connections closed at once because their address had its part",
            ),
            cut: added(
                r,
                "connections_cut",
                "Connections closed because nothing happened on them, by reason",
            ),
        }
    }

    /// A metric that is there from the start can be told from one that is missing.
    pub(crate) fn begin(&self, listener: &'static str) {
        let label = ListenerLabel { listener };
        drop(self.open.get_or_create(&label));
        drop(self.full.get_or_create(&label));
        drop(self.turned_away.get_or_create(&label));
    }

    pub(crate) fn open(&self, listener: &'static str) -> OpenConnection {
        let gauge = self.open.get_or_create_owned(&ListenerLabel { listener });
        gauge.inc();
        OpenConnection(gauge)
    }

    pub(crate) fn full(&self, listener: &'static str) {
        self.full.get_or_create(&ListenerLabel { listener }).inc();
    }

    pub(crate) fn turned_away(&self, listener: &'static str) {
        self.turned_away
            .get_or_create(&ListenerLabel { listener })
            .inc();
    }

    pub(crate) fn cut(&self, listener: &'static str, why: CutReason) {
        let reason = why.word();
        self.cut
            .get_or_create(&CutLabels { listener, reason })
            .inc();
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.dec();
    }
}
