//! The gate itself: its routes, and what all deliveries share.

use crate::active_runs::ActiveRuns;
use crate::admin::deliveries::streams_max;
use crate::audit::Audit;
use crate::blocking_pool::BlockingPool;
use crate::bodies::Bodies;
use crate::headers::HeaderRules;
use crate::health::StoreHealth;
use crate::index::Index;
use crate::invalid_streak::InvalidStreak;
use crate::label;
use crate::letters::quota::Quota;
use crate::letters::unfinished::OpenLetters;
use crate::metered_store::MeteredStore;
use crate::metrics::Metrics;
use crate::path::{AmbiguousPath, LoosePattern, ParsedPath, PathAllowance, PathPattern};
use crate::promise_lines::PromiseLines;
use crate::rate_limited_log::{SharedLog, TurnedAwayLog};
use crate::rates::Rates;
use crate::recent::Recent;
use crate::server::Landings;
use crate::settings::{Pass, Route, Secret, Settings, Source};
use crate::steps;
use crate::store_times::StoreTimes;
use crate::trace::{self, Exporter, Tracer};
use crate::upstream::Client;
use crate::verify::KeySets;
use bytes::Bytes;
use http::Method;
use semel::letter::LetterId;
use semel::protocol::{BY_BYTES_MAX, DoubtLimit};
use semel::slots::Slots;
use semel::store::Letters;
use semel::{Key, Semel};
use semel_landing::Landing;
use semel_tls::FileError;
use semel_ui::{Access, AccessSettings};
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

/// A gate, ready to take deliveries.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) settings: Settings,
    pub(crate) routes: Vec<Arc<RouteState>>,
    pub(crate) semel: Semel,
    /// The same store, asked for letters.
    pub(crate) letters: Arc<dyn Letters>,
    pub(crate) client: Client,
    pub(crate) header_rules: HeaderRules,
    /// The keys that tokens are verified with.
    pub(crate) key_sets: KeySets,
    pub(crate) bodies: Bodies,
    pub(crate) blocking_pool: BlockingPool,
    pub(crate) runs: ActiveRuns,
    pub(crate) metrics: Metrics,
    /// What became of the deliveries of the last hour.
    pub(crate) rates: Rates,
    /// What its claims say of who asks: its name.
    pub(crate) by: Bytes,
    /// Writes the names of deliveries to the store, if that is wanted.
    pub(crate) index: Option<Index>,
    /// What is remembered of the latest deliveries.
    pub(crate) recent: Recent,
    /// Places for those who watch deliveries live.
    pub(crate) watchers: Arc<Semaphore>,
    /// Takes spans, if somebody receives them.
    pub(crate) tracer: Option<Tracer>,
    /// Who may ask at the admin address.
    pub(crate) access: Arc<Access>,
    pub(crate) phase: watch::Sender<Phase>,
    /// The deliveries in hand, so that a gate that goes down can wait for them.
    pub(crate) deliveries: TaskTracker,
    /// Whether the store took a write when it was last asked.
    pub(crate) store: StoreHealth,
    pub(crate) turned_away_log: TurnedAwayLog,
    /// What operators did.
    pub(crate) audit: Arc<Audit>,
    /// What its routes promise, as far as that is known.
    pub(crate) promises: PromiseLines,
    /// How long the store takes.
    pub(crate) store_times: Arc<StoreTimes>,
}

/// A route at work.
#[derive(Debug)]
pub(crate) struct RouteState {
    pub(crate) settings: Route,
    /// Its name, for whoever keeps it.
    pub(crate) name: Arc<str>,
    /// What could be taken for this route's path.
    loose: LoosePattern,
    pub(crate) slots: Slots,
    pub(crate) letters: Quota,
    pub(crate) invalid_streak: InvalidStreak,
    /// Letters of unfinished work that are known to be open.
    pub(crate) open_letters: OpenLetters,
    pub(crate) unkept_log: SharedLog,
    pub(crate) alarm_log: SharedLog,
    pub(crate) not_completed_log: SharedLog,
    /// The time of the latest success of its handler, which tells sick work from a sick handler.
    last_success: Mutex<Option<Instant>>,
    /// How the handler reaches its steps; `None` when it could not.
    pub(crate) steps_url: Option<String>,
    /// Where its deliveries land, if they do.
    pub(crate) landing: Option<Landing>,
}

/// How far the gate is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// It takes deliveries.
    Serving,
    /// It takes no new ones and finishes what is in hand.
    Draining,
    /// Time is up: what was not sent is given back, the rest is left to lapse.
    Over,
}

/// Where a request belongs.
#[derive(Debug)]
pub(crate) enum RouteMatch<'a> {
    /// To a route: it takes effect once.
    Protected(&'a Arc<RouteState>),
    /// Forwarded as it is.
    Pass(&'a Pass),
    /// A route has this path, for other methods.
    OtherMethod,
    /// Nowhere.
    Unknown,
    /// The path could mean one thing here and another thing to the handler.
    Ambiguous(AmbiguousPath),
}

fn access(settings: &Settings) -> Access {
    fn text(Secret(text): &Secret) -> &str {
        text
    }
    Access::new(AccessSettings {
        place: &format!("{} · {}", settings.namespace, settings.name),
        listens: settings.admin,
        hosts: &settings.admin_hosts,
        act_token: settings.admin_token.as_ref().map(text),
        view_token: settings.admin_view_token.as_ref().map(text),
    })
}

// === impl Gate ===

impl Gate {
    /// With whoever is to send its spans, if they are wanted.
    ///
    /// # Errors
    /// When a file of the settings cannot be read; the message names it.
    pub(crate) fn new(
        settings: Settings,
        store: Arc<dyn Letters>,
        landings: &Landings,
        steps: SocketAddr,
    ) -> Result<(Self, Option<Exporter>), FileError> {
        let route_state = |route: &Route| {
            let landing = landings.get(&route.name).cloned();
            let steps_url = steps::url(&settings, route, steps);
            Arc::new(RouteState::new(route, steps_url, landing))
        };
        let routes: Vec<_> = settings.routes.iter().map(route_state).collect();
        let metrics = Metrics::new(&routes);
        let store_times = Arc::new(StoreTimes::new());
        let seconds = metrics.store_seconds.clone();
        let store = MeteredStore::new(store, seconds, Arc::clone(&store_times));
        let store: Arc<dyn Letters> = Arc::new(store);
        let limits = semel::Settings {
            shared_cache: settings.shared_cache,
            // Each route bounds its answers while they are read; a second limit would take the body
            // of one that was read whole from its first caller.
            answer_bytes_max: usize::MAX,
            ..semel::Settings::default()
        };
        let begin = |otlp| trace::begin(otlp, &metrics.spans);
        let (tracer, exporter) = settings.otlp.as_ref().and_then(begin).unzip();
        let gate = Self {
            client: Client::new(&settings)?,
            bodies: Bodies::new(&settings),
            blocking_pool: BlockingPool::new(),
            header_rules: HeaderRules::of(&settings.routes),
            key_sets: KeySets::of(&settings.routes, &settings.limits),
            runs: ActiveRuns::default(),
            semel: Semel::with_settings(Arc::clone(&store) as _, limits),
            letters: store,
            rates: Rates::new(&routes),
            by: label::cut(&settings.name, BY_BYTES_MAX).into_owned().into(),
            index: Index::of(settings.index),
            recent: Recent::new(),
            watchers: Arc::new(Semaphore::new(streams_max(&settings.limits))),
            metrics,
            tracer,
            access: Arc::new(access(&settings)),
            phase: watch::Sender::new(Phase::Serving),
            deliveries: TaskTracker::new(),
            store: StoreHealth::default(),
            turned_away_log: TurnedAwayLog::default(),
            audit: Arc::default(),
            promises: PromiseLines::default(),
            store_times,
            routes,
            settings,
        };
        Ok((gate, exporter))
    }

    /// Where a request belongs. A path that only looks like a route's goes nowhere: neither to that
    /// route, nor to another, nor by.
    pub(crate) fn find_route(&self, method: &Method, path: &ParsedPath) -> RouteMatch<'_> {
        let taken = self
            .routes
            .iter()
            .find(|route_state| route_state.takes(method, path));
        if let Some(why) = self.doubt(method, path, taken) {
            return RouteMatch::Ambiguous(why);
        }
        if let Some(route_state) = taken {
            return RouteMatch::Protected(route_state);
        }
        if self
            .routes
            .iter()
            .any(|route_state| route_state.owns(method, path))
        {
            return RouteMatch::OtherMethod;
        }
        let matches = |pattern: &PathPattern| pattern.matches(&path.canonical);
        match &self.settings.pass {
            Some(pass) if pass.paths.iter().any(matches) => RouteMatch::Pass(pass),
            Some(_) | None if self.names(path) => RouteMatch::OtherMethod,
            Some(_) | None => RouteMatch::Unknown,
        }
    }

    /// Whether a route has this path, for whatever methods.
    fn names(&self, path: &ParsedPath) -> bool {
        let mut routes = self.routes.iter().map(|route_state| &route_state.settings);
        routes.any(|route| route.path.matches(&path.canonical))
    }

    /// What two readers could differ about.
    fn doubt(
        &self,
        method: &Method,
        path: &ParsedPath,
        taken: Option<&Arc<RouteState>>,
    ) -> Option<AmbiguousPath> {
        let allowed = taken.map_or(&[][..], |route_state| &route_state.settings.path_allows);
        let refused = |spelling: &&PathAllowance| !allowed.contains(spelling);
        if let Some(spelling) = path.spellings.iter().find(refused) {
            return Some(AmbiguousPath::NotAllowed(*spelling));
        }
        // What stands in the settings letter by letter was meant.
        let exactly = PathPattern::Exact(path.canonical.clone());
        if taken.is_some_and(|route_state| route_state.settings.path == exactly) {
            return None;
        }
        let passed = self.settings.pass.iter().flat_map(|pass| &pass.paths);
        let passed_exactly = passed.into_iter().any(|pattern| *pattern == exactly);
        let looks_like = |route_state: &&Arc<RouteState>| {
            let meant = passed_exactly && route_state.settings.path.is_below();
            route_state.settings.owns(method) && route_state.resembles(path) && !meant
        };
        let alike = self.routes.iter().find(looks_like);
        alike.map(|_| AmbiguousPath::LooksLikeRoute)
    }

    /// The route with this name.
    pub(crate) fn route_state(&self, name: &str) -> Option<&Arc<RouteState>> {
        self.routes
            .iter()
            .find(|route_state| route_state.settings.name == name)
    }

    /// The path of this route, if it is private.
    pub(crate) fn private_path(&self, name: &str) -> Option<&PathPattern> {
        let settings = &self.route_state(name)?.settings;
        settings.private.as_ref().map(|_| &settings.path)
    }

    /// Whether nothing may be sent any more.
    pub(crate) fn is_over(&self) -> bool {
        *self.phase.borrow() == Phase::Over
    }
}

// === impl RouteState ===

impl RouteState {
    fn new(route: &Route, steps_url: Option<String>, landing: Option<Landing>) -> Self {
        Self {
            name: route.name.as_str().into(),
            steps_url,
            landing,
            loose: LoosePattern::of(&route.path),
            slots: Slots::new(route.concurrency, route.queue),
            letters: Quota::new(route.letters),
            invalid_streak: InvalidStreak::default(),
            open_letters: OpenLetters::default(),
            unkept_log: SharedLog::default(),
            alarm_log: SharedLog::default(),
            not_completed_log: SharedLog::default(),
            last_success: Mutex::default(),
            settings: route.clone(),
        }
    }

    /// Notes that its handler did a piece of work.
    pub(crate) fn succeeded(&self) {
        let mut last = self.last_success.lock().expect("no holder panics");
        *last = Some(Instant::now());
    }

    /// The limit on doubts for a delivery of this source. Doubts count against a piece of work only if the handler has done
    /// other work since the first of them; otherwise the handler may be sick, and there is no limit.
    pub(crate) fn doubt_limit(&self, source: Source) -> Option<DoubtLimit> {
        let terms = self.settings.terms(source);
        let runs = NonZeroU32::new(terms.max_in_doubt)?;
        let last = self.last_success.lock().expect("no holder panics");
        let age = terms.doubt_age.max(last.as_ref()?.elapsed());
        Some(DoubtLimit { runs, age })
    }

    /// Counts work that may be lost: no letter holds it, and its sender may not deliver it again.
    pub(crate) fn unkept(&self, metrics: &Metrics, outcome: &str, not_kept: &str) {
        let route = &self.settings.name;
        metrics.letters.unkept(route);
        if self.unkept_log.is_due() {
            tracing::error!(
                route,
                outcome,
                not_kept,
                "unfinished work not kept as a letter: it is lost unless its sender delivers it again; make room (`semel letters \
                 list`) or repair the store"
            );
        }
    }

    /// Alerts an operator: no further delivery of the letter's work is expected.
    pub(crate) fn alarmed(&self, metrics: &Metrics, letter: &LetterId, key: Option<Key>) {
        let route = &self.settings.name;
        metrics.letters.alarmed(route);
        if self.alarm_log.is_due() {
            let key = key.map(tracing::field::display);
            tracing::error!(
                route, key, letter = %letter,
                "unfinished work needs an operator: no further delivery is expected; redrive its letter (`semel letters redrive`) \
                 or resolve its record (`semel records resolve`); others of this route are counted in \
                 semel_letters_alarmed_total for an hour"
            );
        }
    }

    /// Where requests go that this route forwards as they are.
    pub(crate) fn pass(&self) -> Pass {
        Pass {
            paths: Vec::new(),
            upstream: self.settings.upstream.clone(),
        }
    }

    fn takes(&self, method: &Method, path: &ParsedPath) -> bool {
        self.settings.takes(method) && self.settings.path.matches(&path.canonical)
    }

    /// Whether nobody else may have this request.
    fn owns(&self, method: &Method, path: &ParsedPath) -> bool {
        self.settings.owns(method) && self.settings.path.matches(&path.canonical)
    }

    /// Whether a path that is not this route's could be taken for it.
    fn resembles(&self, path: &ParsedPath) -> bool {
        self.loose.takes(&path.loosest) && !self.settings.path.matches(&path.canonical)
    }
}

impl Route {
    fn takes(&self, method: &Method) -> bool {
        self.methods.is_empty() || self.methods.contains(method)
    }

    /// Handlers answer HEAD by running what they run for GET: whoever takes GET has HEAD, too.
    fn owns(&self, method: &Method) -> bool {
        self.takes(method) || (*method == Method::HEAD && self.takes(&Method::GET))
    }
}
