//! The gate itself: its routes, and what all deliveries share.

use crate::bodies::Bodies;
use crate::headers::Relied;
use crate::listener::Listener;
use crate::metrics::Metrics;
use crate::runs::Runs;
use crate::settings::{Pass, Route, Settings};
use crate::steps;
use crate::timed::Timed;
use crate::upstream::Client;
use http::Method;
use semel::slots::Slots;
use semel::{Semel, Store};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

/// A gate, ready to take deliveries.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) settings: Settings,
    pub(crate) lanes: Vec<Arc<Lane>>,
    pub(crate) semel: Semel,
    pub(crate) client: Client,
    pub(crate) relied: Relied,
    pub(crate) bodies: Bodies,
    pub(crate) runs: Runs,
    pub(crate) metrics: Metrics,
    pub(crate) phase: watch::Sender<Phase>,
    /// The deliveries in hand, so that a gate that goes down can wait for them.
    pub(crate) deliveries: TaskTracker,
}

/// A route at work.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) route: Route,
    pub(crate) slots: Slots,
    /// How the handler reaches its steps; `None` when it could not.
    pub(crate) steps_url: Option<String>,
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
pub(crate) enum Way<'a> {
    /// To a route: it takes effect once.
    Protected(&'a Arc<Lane>),
    /// Forwarded as it is.
    Pass(&'a Pass),
    /// A route has this path, for other methods.
    OtherMethod,
    /// Nowhere.
    Unknown,
    /// The path could mean one thing here and another thing to the handler.
    Ambiguous,
}

// === impl Gate ===

impl Gate {
    pub(crate) fn new(settings: Settings, store: Arc<dyn Store>, steps: SocketAddr) -> Self {
        let lane = |route| Arc::new(Lane::new(route, steps::url(&settings, route, steps)));
        let lanes: Vec<_> = settings.routes.iter().map(lane).collect();
        let metrics = Metrics::new(&lanes);
        let store = Timed::new(store, metrics.store_seconds.clone());
        let limits = semel::Settings {
            shared_cache: settings.shared_cache,
            // Each route bounds its answers while they are read; a second limit would take the body
            // of one that was read whole from its first caller.
            answer_bytes_max: usize::MAX,
            ..semel::Settings::default()
        };
        Self {
            client: Client::new(),
            bodies: Bodies::new(&settings),
            relied: Relied::of(&settings.routes),
            runs: Runs::default(),
            semel: Semel::with(Arc::new(store), limits),
            metrics,
            phase: watch::Sender::new(Phase::Serving),
            deliveries: TaskTracker::new(),
            lanes,
            settings,
        }
    }

    /// Where a request belongs.
    pub(crate) fn way(&self, method: &Method, path: &str) -> Way<'_> {
        if is_ambiguous(path) {
            return Way::Ambiguous;
        }
        let mut unknown = Way::Unknown;
        for lane in &self.lanes {
            if !lane.route.path.matches(path) {
                continue;
            }
            if lane.route.takes(method) {
                return Way::Protected(lane);
            }
            unknown = Way::OtherMethod;
        }
        match &self.settings.pass {
            Some(pass) if pass.paths.iter().any(|pattern| pattern.matches(path)) => Way::Pass(pass),
            Some(_) | None => unknown,
        }
    }

    /// Listens here, with the limits that all listeners share.
    pub(crate) fn listener(
        &self,
        socket: TcpListener,
        name: &'static str,
        connections_max: usize,
    ) -> Listener {
        let counts = &self.metrics.connections;
        Listener::new(
            socket,
            name,
            connections_max,
            &self.settings,
            &self.bodies,
            counts,
        )
    }

    /// The route with this name.
    pub(crate) fn lane(&self, name: &str) -> Option<&Arc<Lane>> {
        self.lanes.iter().find(|lane| lane.route.name == name)
    }

    /// Whether nothing may be sent any more.
    pub(crate) fn is_over(&self) -> bool {
        *self.phase.borrow() == Phase::Over
    }
}

/// A handler may read `/static/../charge` as `/charge`: a pattern must not be walked around.
fn is_ambiguous(path: &str) -> bool {
    let dots = |segment: &str| {
        let plain = segment.to_ascii_lowercase().replace("%2e", ".");
        plain == "." || plain == ".."
    };
    let lower = path.to_ascii_lowercase();
    path.contains("//")
        || path.contains('\\')
        || lower.contains("%2f")
        || lower.contains("%5c")
        || path.split('/').any(dots)
}

// === impl Lane ===

impl Lane {
    fn new(route: &Route, steps_url: Option<String>) -> Self {
        Self {
            steps_url,
            slots: Slots::new(route.concurrency, route.queue),
            route: route.clone(),
        }
    }
}

impl Route {
    fn takes(&self, method: &Method) -> bool {
        self.methods.is_empty() || self.methods.contains(method)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_two_readers_read_differently_are_ambiguous() {
        for path in [
            "/static/../charge",
            "/a//b",
            "/a/%2e%2E/b",
            "/a%2fb",
            "/a\\b",
            "/.",
            "/a%5Cb",
        ] {
            assert!(is_ambiguous(path), "{path}");
        }
        for path in ["/", "/charge", "/a.b/..c/d...", "/a%20b"] {
            assert!(!is_ambiguous(path), "{path}");
        }
    }
}
