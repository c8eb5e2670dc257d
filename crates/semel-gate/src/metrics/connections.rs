//! What is counted of connections.

use crate::activity::Overdue;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Connections, by the listener they came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    open: Family<Listener, Gauge>,
    full: Family<Listener, Counter>,
    turned_away: Family<Listener, Counter>,
    cut: Family<Cut, Counter>,
}

/// A connection that is open, until it is dropped.
#[derive(Debug)]
pub(crate) struct Counted(Gauge);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Listener {
    listener: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Cut {
    listener: &'static str,
    reason: &'static str,
}

// === impl Counts ===

impl Counts {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "connections",
            "Connections that are open",
            self.open.clone(),
        );
        registry.register(
            "connections_full",
            "How often all connections were taken and a new one had to wait",
            self.full.clone(),
        );
        registry.register(
            "connections_turned_away",
            "Connections closed at once because their address had its part",
            self.turned_away.clone(),
        );
        registry.register(
            "connections_cut",
            "Connections closed because nothing happened on them, by reason",
            self.cut.clone(),
        );
    }

    pub(crate) fn open(&self, listener: &'static str) -> Counted {
        let gauge = self.open.get_or_create_owned(&Listener { listener });
        gauge.inc();
        Counted(gauge)
    }

    pub(crate) fn full(&self, listener: &'static str) {
        self.full.get_or_create(&Listener { listener }).inc();
    }

    pub(crate) fn turned_away(&self, listener: &'static str) {
        self.turned_away.get_or_create(&Listener { listener }).inc();
    }

    pub(crate) fn cut(&self, listener: &'static str, why: Overdue) {
        let reason = why.word();
        self.cut.get_or_create(&Cut { listener, reason }).inc();
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}
