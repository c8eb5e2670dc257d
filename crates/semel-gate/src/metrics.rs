//! Metrics, as Prometheus reads them. No key and no caller is a label.

pub(crate) mod connections;
mod long_runs;
mod doubt;
mod landing;
mod letters;
mod senders;
pub(crate) mod spans;

use crate::bodies::BodyError;
use crate::disposition::Disposition;
use crate::gate::RouteState;
use crate::metered_store::Verb;
use crate::rates::Became;
use connections::ConnectionMetrics;
use doubt::DoubtMetrics;
use landing::LandingMetrics;
use letters::LetterMetrics;
use long_runs::LongRunMetrics;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};
use semel::letter::Reason;
use senders::SenderMetrics;
use spans::SpanMetrics;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// What the gate counts.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    deliveries: Family<OutcomeLabels, Counter>,
    duplicates: Family<RouteLabel, Counter>,
    runs: Family<RouteLabel, Gauge>,
    queued: Family<RouteLabel, Gauge>,
    letters_waiting: Gauge,
    pending: Gauge,
    own_seconds: Seconds<RouteLabel>,
    slot_seconds: Seconds<RouteLabel>,
    upstream_seconds: Seconds<RouteLabel>,
    pub(crate) store_seconds: Seconds<Verb>,
    pub(crate) connections: ConnectionMetrics,
    pub(crate) senders: SenderMetrics,
    pub(crate) spans: SpanMetrics,
    pub(crate) long_runs: LongRunMetrics,
    pub(crate) doubt: DoubtMetrics,
    pub(crate) letters: LetterMetrics,
    pub(crate) landing: LandingMetrics,
    bodies_refused: Family<ReasonLabel, Counter>,
    log_lines_dropped: Counter,
    /// Kept by whoever writes the log.
    lines_dropped: OnceLock<Arc<AtomicU64>>,
}

/// Seconds by label.
pub(crate) type Seconds<L> = Family<L, Histogram, fn() -> Histogram>;

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

/// A count as gauges take it.
fn signed(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}

fn observe(seconds: &Seconds<RouteLabel>, label: &RouteLabel, took: Duration) {
    seconds.get_or_create(label).observe(took.as_secs_f64());
}

/// A metric that is shown under this name.
fn added<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

/// Seconds that are shown under this name, by label.
fn added_seconds<L>(registry: &mut Registry, name: &str, help: &str) -> Seconds<L>
where
    L: EncodeLabelSet + Clone + Debug + Eq + Hash + Send + Sync + 'static,
{
    let seconds = Seconds::new_with_constructor(|| Histogram::new(SECONDS));
    registry.register(name, help, seconds.clone());
    seconds
}

impl RouteLabel {
    fn of(route: &str) -> Self {
        let route = route.into();
        Self { route }
    }
}

impl LetterLabels {
    fn of(route: &str, reason: Reason) -> Self {
        let (route, reason) = (route.into(), reason.word());
        Self { route, reason }
    }
}

// === impl Metrics ===

impl Metrics {
    pub(crate) fn new(routes: &[Arc<RouteState>]) -> Self {
        let mut registry = Registry::with_prefix("semel");
        let r = &mut registry;
        let metrics = Self {
            deliveries: added(r, "deliveries", "Deliveries by route and outcome"),
            duplicates: added(
                r,
                "duplicates_prevented",
                "Deliveries of work that had succeeded, answered from its record",
            ),
            runs: added(r, "runs_in_hand", "Runs that hold a slot"),
            queued: added(r, "queued", "Deliveries that wait for a slot"),
            letters_waiting: added(r, "letters_waiting", "Letters in the store, up to 10000"),
            pending: added(
                r,
                "pending_outcomes",
                "Outcomes in hand that the store has not taken yet",
            ),
            bodies_refused: added(
                r,
                "bodies_refused",
                "Bodies that were not read to their end, by reason",
            ),
            log_lines_dropped: added(r, "log_lines_dropped", "Log lines that nobody took in time"),
            connections: ConnectionMetrics::new(r),
            senders: SenderMetrics::new(r),
            spans: SpanMetrics::new(r),
            long_runs: LongRunMetrics::new(r),
            doubt: DoubtMetrics::new(r),
            landing: LandingMetrics::new(r),
            letters: LetterMetrics::new(r),
            slot_seconds: added_seconds(
                r,
                "slot_seconds",
                "Seconds that deliveries waited for a slot, of those that had to (`concurrency`)",
            ),
            own_seconds: added_seconds(
                r,
                "own_seconds",
                "Seconds per delivery without the handler: the store, waiting, and the gate itself",
            ),
            upstream_seconds: added_seconds(r, "upstream_seconds", "Seconds that the handler took"),
            store_seconds: added_seconds(
                r,
                "store_seconds",
                "Seconds that the store took, by verb",
            ),
            lines_dropped: OnceLock::new(),
            registry,
        };
        metrics.begin(routes);
        metrics
    }

    /// A counter that is there from the start can be told from one that is missing.
    fn begin(&self, routes: &[Arc<RouteState>]) {
        for route_state in routes {
            let route = RouteLabel::of(&route_state.settings.name);
            drop(self.duplicates.get_or_create(&route));
            self.doubt.begin(&route);
            self.letters.begin(&route);
        }
    }

    pub(crate) fn delivery(
        &self,
        route: &str,
        disposition: &Disposition,
        all: Duration,
        upstream: Option<Duration>,
    ) {
        let label = RouteLabel::of(route);
        let by_outcome = OutcomeLabels {
            route: route.into(),
            outcome: disposition.word(),
        };
        self.deliveries.get_or_create(&by_outcome).inc();
        if Became::of(disposition) == Became::Replayed {
            self.duplicates.get_or_create(&label).inc();
        }
        let own = all.saturating_sub(upstream.unwrap_or_default());
        observe(&self.own_seconds, &label, own);
        if let Some(upstream) = upstream {
            observe(&self.upstream_seconds, &label, upstream);
        }
    }

    /// A run ended whose sender heard before that it goes on.
    pub(crate) fn outlasted(
        &self,
        route: &str,
        disposition: &Disposition,
        upstream: Option<Duration>,
    ) {
        self.long_runs.outlasted(route, disposition.word());
        if let Some(upstream) = upstream {
            observe(&self.upstream_seconds, &RouteLabel::of(route), upstream);
        }
    }

    /// A delivery had to wait for a slot.
    pub(crate) fn slot_waited(&self, route: &str, waited: Duration) {
        observe(&self.slot_seconds, &RouteLabel::of(route), waited);
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

    /// All of it as text; `letters` is how many wait in the store, if that is known, and `pending` how
    /// many outcomes wait for it.
    pub(crate) fn text(
        &self,
        routes: &[Arc<RouteState>],
        letters: Option<usize>,
        pending: usize,
    ) -> String {
        for route_state in routes {
            let label = RouteLabel::of(&route_state.settings.name);
            let slots = &route_state.slots;
            self.runs.get_or_create(&label).set(signed(slots.runs()));
            self.queued
                .get_or_create(&label)
                .set(signed(slots.queued()));
        }
        self.pending.set(signed(pending));
        if let Some(letters) = letters {
            self.letters_waiting.set(signed(letters));
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
