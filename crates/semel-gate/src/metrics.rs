//! Metrics, as Prometheus reads them. No key and no caller is a label.

pub(crate) mod connections;

use crate::bodies::BodyError;
use crate::disposition::Disposition;
use crate::gate::RouteState;
use crate::letters::quota::Count;
use crate::metered_store::StoreSeconds;
use connections::ConnectionMetrics;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use semel::letter::Reason;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// What the gate counts.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    deliveries: Family<OutcomeLabels, Counter>,
    duplicates: Family<RouteLabel, Counter>,
    letters_kept: Family<LetterLabels, Counter>,
    letters_refused: Family<LetterLabels, Counter>,
    letters_open: Family<RouteLabel, Gauge>,
    letters_bytes: Family<RouteLabel, Gauge>,
    runs: Family<RouteLabel, Gauge>,
    queued: Family<RouteLabel, Gauge>,
    letters: Gauge,
    pending: Gauge,
    own_seconds: Seconds,
    slot_seconds: Seconds,
    upstream_seconds: Seconds,
    pub(crate) store_seconds: StoreSeconds,
    pub(crate) connections: ConnectionMetrics,
    bodies_refused: Family<ReasonLabel, Counter>,
    log_lines_dropped: Counter,
    /// Kept by whoever writes the log.
    lines_dropped: OnceLock<Arc<AtomicU64>>,
}

type Seconds = Family<RouteLabel, Histogram, fn() -> Histogram>;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabel {
    route: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    route: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LetterLabels {
    route: String,
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabel {
    reason: &'static str,
}

/// From half a millisecond to half a minute.
const SECONDS: [f64; 12] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0,
];

fn seconds() -> Histogram {
    Histogram::new(SECONDS)
}

// === impl Metrics ===

impl Metrics {
    pub(crate) fn new(routes: &[Arc<RouteState>]) -> Self {
        let histogram = || Family::new_with_constructor(seconds as fn() -> Histogram);
        let mut metrics = Self {
            registry: Registry::with_prefix("semel"),
            deliveries: Family::default(),
            duplicates: Family::default(),
            letters_kept: Family::default(),
            letters_refused: Family::default(),
            letters_open: Family::default(),
            letters_bytes: Family::default(),
            runs: Family::default(),
            queued: Family::default(),
            letters: Gauge::default(),
            pending: Gauge::default(),
            own_seconds: histogram(),
            slot_seconds: histogram(),
            upstream_seconds: histogram(),
            store_seconds: Family::new_with_constructor(seconds as fn() -> Histogram),
            connections: ConnectionMetrics::default(),
            bodies_refused: Family::default(),
            log_lines_dropped: Counter::default(),
            lines_dropped: OnceLock::new(),
        };
        metrics.register();
        metrics.register_seconds();
        // A counter that is there from the start can be told from one that is missing.
        for route_state in routes {
            let route = route_state.settings.name.clone();
            drop(metrics.duplicates.get_or_create(&RouteLabel { route }));
        }
        metrics
    }

    fn register(&mut self) {
        let r = &mut self.registry;
        r.register(
            "deliveries",
            "Deliveries by route and outcome",
            self.deliveries.clone(),
        );
        r.register(
            "duplicates_prevented",
            "Deliveries that would have taken effect again",
            self.duplicates.clone(),
        );
        r.register(
            "letters_kept",
            "Letters that were put into the store",
            self.letters_kept.clone(),
        );
        r.register(
            "letters_refused",
            "Deliveries that were not kept as letters because the route's quota is used up",
            self.letters_refused.clone(),
        );
        r.register(
            "letters_open",
            "Letters of the route in the store, counted once a minute",
            self.letters_open.clone(),
        );
        r.register(
            "letters_bytes",
            "Bytes of the route's letters in the store, counted once a minute",
            self.letters_bytes.clone(),
        );
        r.register("runs_in_hand", "Runs that hold a slot", self.runs.clone());
        r.register(
            "queued",
            "Deliveries that wait for a slot",
            self.queued.clone(),
        );
        r.register(
            "letters_waiting",
            "Letters in the store, counted up to 10000",
            self.letters.clone(),
        );
        r.register(
            "pending_outcomes",
            "Outcomes in hand that the store has not taken yet",
            self.pending.clone(),
        );
        r.register(
            "bodies_refused",
            "Bodies that were not read to their end, by reason",
            self.bodies_refused.clone(),
        );
        r.register(
            "log_lines_dropped",
            "Log lines that nobody took in time",
            self.log_lines_dropped.clone(),
        );
        self.connections.register(r);
    }

    fn register_seconds(&mut self) {
        let r = &mut self.registry;
        r.register(
            "slot_seconds",
            "Seconds that deliveries waited for a slot, of those that had to (`concurrency`)",
            self.slot_seconds.clone(),
        );
        r.register(
            "own_seconds",
            "Seconds per delivery without the handler: the store, waiting, and the gate itself",
            self.own_seconds.clone(),
        );
        r.register(
            "upstream_seconds",
            "Seconds that the handler took",
            self.upstream_seconds.clone(),
        );
        r.register(
            "store_seconds",
            "Seconds that the store took, by verb",
            self.store_seconds.clone(),
        );
    }

    pub(crate) fn delivery(
        &self,
        route: &str,
        disposition: &Disposition,
        all: Duration,
        upstream: Option<Duration>,
    ) {
        let label = RouteLabel {
            route: route.into(),
        };
        let by_outcome = OutcomeLabels {
            route: route.into(),
            outcome: disposition.word(),
        };
        self.deliveries.get_or_create(&by_outcome).inc();
        if disposition.is_duplicate() {
            self.duplicates.get_or_create(&label).inc();
        }
        let own = all.saturating_sub(upstream.unwrap_or_default());
        self.own_seconds
            .get_or_create(&label)
            .observe(own.as_secs_f64());
        if let Some(upstream) = upstream {
            self.upstream_seconds
                .get_or_create(&label)
                .observe(upstream.as_secs_f64());
        }
    }

    /// A delivery had to wait for a slot.
    pub(crate) fn slot_waited(&self, route: &str, waited: Duration) {
        let label = RouteLabel {
            route: route.into(),
        };
        self.slot_seconds
            .get_or_create(&label)
            .observe(waited.as_secs_f64());
    }

    pub(crate) fn letter_kept(&self, route: &str, reason: Reason) {
        let label = LetterLabels {
            route: route.into(),
            reason: reason.word(),
        };
        self.letters_kept.get_or_create(&label).inc();
    }

    pub(crate) fn body_refused(&self, why: &BodyError) {
        let reason = match why {
            BodyError::TooLarge { .. } => "too_large",
            BodyError::NoRoom => "no_room",
            BodyError::TooSlow => "too_slow",
            BodyError::Broken(_) => "broken",
        };
        self.bodies_refused
            .get_or_create(&ReasonLabel { reason })
            .inc();
    }

    /// Where the lost lines of the log are counted.
    pub(crate) fn lines_dropped(&self, dropped: Arc<AtomicU64>) {
        // A second log has no other counter: the first one stays.
        drop(self.lines_dropped.set(dropped));
    }

    pub(crate) fn letter_refused(&self, route: &str, reason: Reason) {
        let label = LetterLabels {
            route: route.into(),
            reason: reason.word(),
        };
        self.letters_refused.get_or_create(&label).inc();
    }

    pub(crate) fn letters_counted(&self, route: &str, count: Count) {
        let label = RouteLabel {
            route: route.into(),
        };
        let gauge = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        self.letters_open
            .get_or_create(&label)
            .set(gauge(count.letters()));
        self.letters_bytes
            .get_or_create(&label)
            .set(gauge(count.bytes()));
    }

    /// All of it as text; `letters` is how many wait in the store, if that is known, and `pending` how
    /// many outcomes wait for it.
    pub(crate) fn text(
        &self,
        routes: &[Arc<RouteState>],
        letters: Option<usize>,
        pending: usize,
    ) -> String {
        let gauge = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        for route_state in routes {
            let label = RouteLabel {
                route: route_state.settings.name.clone(),
            };
            self.runs
                .get_or_create(&label)
                .set(gauge(route_state.slots.runs()));
            self.queued
                .get_or_create(&label)
                .set(gauge(route_state.slots.queued()));
        }
        self.pending.set(gauge(pending));
        if let Some(letters) = letters {
            self.letters.set(gauge(letters));
        }
        if let Some(dropped) = self.lines_dropped.get() {
            let more = dropped.load(Ordering::Relaxed) - self.log_lines_dropped.get();
            self.log_lines_dropped.inc_by(more);
        }
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a string does not fail");
        text
    }
}
