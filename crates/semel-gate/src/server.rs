//! The server: listening, reading requests, and coming to an orderly end.

use crate::bodies::{BodyError, BodyReservation};
use crate::connections::Connections;
use crate::disposition::Disposition;
use crate::failpoint::{Point, pass};
use crate::gate::{Gate, Phase, RouteMatch, RouteState};
use crate::handle::handle;
use crate::key_missing::{lacks_key, unprotected};
use crate::letters::keep::MEMORY;
use crate::letters::reconcile;
use crate::listener::{Acceptor, Listener, Peer, Serve};
use crate::map_body::filter_trailers;
use crate::normalize::Rejection;
use crate::promise_lines::PromiseLines;
use crate::refusal::turn_away;
use crate::reply::cors::CorsGrant;
use crate::reply::meaning::GATE_BROKEN;
use crate::reply::problem::Problem;
use crate::settings::{Pass, Redelivery, Settings, Source};
use crate::silence::Silence;
use crate::trace::{Exporter, Exporting};
use crate::upstream::{Connection, Reply, full, streamed};
use crate::waiting_sender::WaitingSender;
use crate::{admin, headers, health, normalize, pace, refusal, source, steps, verify};
use bytes::Bytes;
use http::header::{CONNECTION, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, Method, Request, Version};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use semel::PendingOutcome;
use semel::letter::Attempt;
use semel::store::Letters;
use semel_landing::Landing;
use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::{Instant, timeout_at};

/// How long replies may take to leave after time is up.
const LAST_REPLIES: Duration = Duration::from_millis(500);

/// A gate that has its addresses and does not serve yet.
#[derive(Debug)]
pub struct Server {
    gate: Arc<Gate>,
    deliveries: TcpListener,
    tls: Option<Acceptor>,
    admin: TcpListener,
    steps: TcpListener,
    exporter: Option<Exporter>,
}

/// Where deliveries land, by the names of their routes.
pub type Landings = BTreeMap<String, Landing>;

/// Answers what senders deliver.
#[derive(Clone, Debug)]
struct Deliveries(Arc<Gate>);

/// What was left when a gate went down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// Runs that were sent to their handlers and had not ended: their leases lapse. Route and key
    /// of each.
    pub runs: Vec<(String, semel::Key)>,
    /// Successes and final failures that the store did not take: nobody else knows them.
    pub pending: Vec<PendingOutcome>,
}

// === impl Server ===

impl Server {
    /// Takes the addresses of the settings.
    ///
    /// # Errors
    /// When one of them cannot be had, or a certificate cannot be read; the message names it.
    pub async fn bind(settings: Settings, store: Arc<dyn Letters>) -> io::Result<Self> {
        Self::bind_landing(settings, store, &Landings::new()).await
    }

    /// The same for a gate whose deliveries land. It closes the landings at its end.
    ///
    /// # Errors
    /// The same.
    pub async fn bind_landing(
        settings: Settings,
        store: Arc<dyn Letters>,
        landings: &Landings,
    ) -> io::Result<Self> {
        let tls = settings.tls.as_ref().map(Acceptor::new);
        let tls = tls.transpose().map_err(io::Error::other)?;
        let deliveries = listen("listen", settings.listen).await?;
        let admin = listen("admin", settings.admin).await?;
        let steps = listen("steps", settings.steps).await?;
        let steps_address = steps.local_addr()?;
        let made = Gate::new(settings, store, landings, steps_address);
        let (gate, exporter) = made.map_err(io::Error::other)?;
        Ok(Self {
            gate: Arc::new(gate),
            deliveries,
            tls,
            admin,
            steps,
            exporter,
        })
    }

    /// Where deliveries arrive.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.deliveries.local_addr()
    }

    /// Where operators ask.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn admin_address(&self) -> io::Result<SocketAddr> {
        self.admin.local_addr()
    }

    /// The routes, in order.
    #[must_use]
    pub fn route_names(&self) -> Vec<&str> {
        let routes = self.gate.routes.iter();
        routes
            .map(|route_state| route_state.settings.name.as_str())
            .collect()
    }

    /// Where whoever proves it says what the routes promise.
    #[must_use]
    pub fn promise_lines(&self) -> PromiseLines {
        self.gate.promises.clone()
    }

    /// Shows on `/metrics` how many log lines were dropped, as counted by whoever writes the log.
    pub fn shows_lines_dropped(&self, dropped: Arc<AtomicU64>) {
        self.gate.metrics.lines_dropped(dropped);
    }

    /// Serves until `stop` resolves, then finishes what is in hand within the grace period.
    pub async fn serve(self, stop: impl Future<Output = ()>) -> Unfinished {
        let gate = self.gate;
        let admin = tokio::spawn(admin::serve(Arc::clone(&gate), self.admin));
        let steps = tokio::spawn(steps::serve(Arc::clone(&gate), self.steps));
        let sweep = tokio::spawn(health::sweep(Arc::clone(&gate)));
        let watch = tokio::spawn(health::watch(Arc::clone(&gate)));
        let reconciler = tokio::spawn(reconcile::run(Arc::clone(&gate)));
        let renewal = self.tls.clone().map(|tls| tokio::spawn(tls.keep_current()));
        let exporting = self.exporter.map(Exporting::begin);
        let connections = Connections::default();
        let most = gate.settings.connections_max;
        let deliveries = Listener::new(&gate, self.deliveries, "deliveries", most);
        let deliveries = deliveries.with_tls(self.tls);
        tokio::select! {
            () = deliveries.serve(Deliveries(Arc::clone(&gate)), &connections) => {}
            () = stop => {}
        }
        drop(deliveries);
        let deadline = Instant::now() + gate.settings.grace;
        let left = drain(&gate, connections, deadline).await;
        for task in [admin, steps, sweep, watch, reconciler]
            .into_iter()
            .chain(renewal)
        {
            task.abort();
        }
        if let Some(exporting) = exporting {
            exporting.end(deadline + LAST_REPLIES).await;
        }
        left
    }
}

async fn listen(name: &str, address: SocketAddr) -> io::Result<TcpListener> {
    let named = |error: io::Error| {
        io::Error::new(
            error.kind(),
            format!("{name} = {address}: {error}; is another process there?"),
        )
    };
    TcpListener::bind(address).await.map_err(named)
}

/// Finishes what is in hand, outcomes that the store has not taken yet included; at the end of the
/// grace period gives back what was not sent, and tells what is left.
async fn drain(gate: &Gate, connections: Connections, deadline: Instant) -> Unfinished {
    gate.phase.send_replace(Phase::Draining);
    pass(Point::DrainBegun);
    // A sender that hung up has no connection any more, but its delivery is still in hand.
    gate.deliveries.close();
    let mut finished = std::pin::pin!(async {
        connections.shutdown().await;
        gate.deliveries.wait().await;
        gate.semel.pending_recorded().await;
        for route_state in &gate.routes {
            if let Some(landing) = &route_state.landing {
                landing.close().await;
            }
        }
    });
    if timeout_at(deadline, &mut finished).await.is_err() {
        gate.phase.send_replace(Phase::Over);
        for route_state in &gate.routes {
            route_state.slots.close();
        }
        drop(timeout_at(deadline + LAST_REPLIES, finished).await);
    }
    let runs = gate.runs.all();
    Unfinished {
        runs: runs
            .into_iter()
            .map(|run| (run.route, run.lease.key))
            .collect(),
        pending: gate.semel.pending(),
    }
}

impl Serve for Deliveries {
    const HTTP2: bool = true;

    async fn serve(self, peer: Arc<Peer>, request: Request<Incoming>) -> Reply {
        serve_one(self.0, &peer, request).await
    }
}

async fn serve_one(gate: Arc<Gate>, peer: &Peer, request: Request<Incoming>) -> Reply {
    let (mut parts, body) = request.into_parts();
    let path = match normalize::normalize(&mut parts, &gate.header_rules) {
        Ok(Some(path)) => path,
        Ok(None) => return turn_away(&gate, &parts, &refusal::UNKNOWN_PATH),
        Err(why) => return reject(&gate, &parts, &why),
    };
    let handshake = verify::answer_handshake(&gate, &parts.method, &path, &parts.headers);
    if let Some(answer) = handshake {
        return answer.map(full);
    }
    match gate.find_route(&parts.method, &path) {
        RouteMatch::Protected(route_state) => {
            let route_state = Arc::clone(route_state);
            let request = Request::from_parts(parts, body);
            let grant = CorsGrant::of(&route_state.settings, request.headers());
            grant.apply(protected(gate, peer, route_state, request).await)
        }
        RouteMatch::Pass(pass) => {
            forward(&gate, peer, pass, Request::from_parts(parts, body)).await
        }
        RouteMatch::OtherMethod => turn_away(&gate, &parts, &refusal::OTHER_METHOD),
        RouteMatch::Unknown => turn_away(&gate, &parts, &refusal::UNKNOWN_PATH),
        RouteMatch::Ambiguous(why) => turn_away(&gate, &parts, &refusal::ambiguous_path(why)),
    }
}

fn refuse(problem: &Problem) -> Reply {
    problem.reply().map(full)
}

/// Where the end of a request is unsure, nothing may follow it.
fn reject(gate: &Gate, head: &Parts, why: &Rejection) -> Reply {
    let mut reply = turn_away(gate, head, &refusal::rejected(why));
    if head.version < Version::HTTP_2 && !matches!(why, Rejection::Path(_)) {
        let close = HeaderValue::from_static("close");
        reply.headers_mut().insert(CONNECTION, close);
    }
    reply
}

/// Reads the whole request, then lets its delivery go its way in a task of its own: a sender that
/// hangs up does not cancel it.
async fn protected(
    gate: Arc<Gate>,
    peer: &Peer,
    route_state: Arc<RouteState>,
    mut request: Request<Incoming>,
) -> Reply {
    let arrived = Instant::now();
    let claims = match verify::verify_head(&gate, &route_state, request.headers_mut()).await {
        Ok(claims) => claims,
        Err(why) => return verify::turned_away(&gate, &route_state, why),
    };
    let who = source::sender_by_head(&route_state.settings.sources, request.headers());
    if passes(&route_state, request.method()) && who == Source::Api {
        if headers::has(request.headers(), headers::IDEMPOTENCY_KEY) {
            let problem = refusal::key_unprotected(request.method());
            return turn_away(&gate, &request.into_parts().0, &problem);
        }
        return forward(&gate, peer, &route_state.pass(), request).await;
    }
    if who == Source::Api && lacks_key(&route_state.settings, request.headers()) {
        let reply = forward(&gate, peer, &route_state.pass(), request).await;
        return unprotected(&gate, &route_state, reply);
    }
    let (mut parts, body) = request.into_parts();
    let bytes_max = route_state.settings.body_bytes_max;
    let read = async {
        let share = gate.bodies.head(&peer.bodies, &parts)?;
        gate.bodies.read(share, body, bytes_max).await
    };
    let (body, share) = match read.await {
        Ok(read) => read,
        Err(why) => {
            if matches!(why, BodyError::NoRoom) {
                note_unkept(&gate, &route_state, who, &parts.headers);
            }
            return unread(&gate, &parts, who, &why);
        }
    };
    // What the connection left beside the request is not the delivery's.
    parts.extensions.clear();
    if let Some(claims) = claims {
        parts.extensions.insert(claims);
    }
    let request = Request::from_parts(parts, body);
    pass(Point::AfterAccept);
    let (sender, reply) = WaitingSender::new(arrived);
    let delivery = in_hand(Arc::clone(&gate), route_state, request, share, sender);
    drop(gate.deliveries.spawn(delivery));
    reply
        .await
        .unwrap_or_else(|_| GATE_BROKEN.response().map(full))
}

/// Counts a delivery that is refused for want of memory, if it may be its sender's last.
fn note_unkept(gate: &Gate, route_state: &RouteState, who: Source, headers: &HeaderMap) {
    let route = &route_state.settings;
    let transport = source::transport_by_head(who, headers);
    let attempts = route.terms(who).sender_attempts;
    let redelivery = Redelivery::of_delivery(who, attempts, &transport);
    let may_be_last = redelivery.attempt(transport.attempt()) == Attempt::MayBeLast;
    if who.is_broker() && route.keeps_records() && may_be_last {
        route_state.unkept(&gate.metrics, Disposition::NoRoom.word(), MEMORY);
    }
}

fn unread(gate: &Gate, head: &Parts, who: Source, why: &BodyError) -> Reply {
    gate.metrics.body_refused(why);
    turn_away(gate, head, &refusal::unread(who, why))
}

/// The body counts as in hand until the delivery has come to its end.
async fn in_hand(
    gate: Arc<Gate>,
    route_state: Arc<RouteState>,
    request: Request<Bytes>,
    share: BodyReservation,
    sender: WaitingSender,
) {
    handle(gate, route_state, request, sender).await;
    drop(share);
}

/// An API client may look without a key, unless the route lists the method; a broker's delivery is
/// protected whatever its method.
fn passes(route_state: &RouteState, method: &Method) -> bool {
    route_state.settings.caller.is_some()
        && normalize::is_safe(method)
        && !route_state.settings.methods.contains(method)
}

/// Forwards a request as it is. Its body is not held here, but its head is.
async fn forward(gate: &Arc<Gate>, peer: &Peer, pass: &Pass, request: Request<Incoming>) -> Reply {
    let (parts, body) = request.into_parts();
    let _share = match gate.bodies.head(&peer.bodies, &parts) {
        Ok(share) => share,
        Err(why) => return unread(gate, &parts, Source::Api, &why),
    };
    let limits = &gate.settings.limits;
    let silence = Silence::new(limits);
    let cut = Arc::new(OnceLock::new());
    let seen = Arc::clone(&cut);
    let body = pace::passed(body, limits).map_err(move |why| {
        // The first reason counts.
        seen.get_or_init(|| refusal::Truncation::of(&why));
        why
    });
    let body = silence.broken_by(body);
    let rules = Arc::clone(gate);
    let body = filter_trailers(body, move |trailers: &HeaderMap| {
        rules.header_rules.trailers_toward_handler(trailers)
    });
    let mut request = Request::new(streamed(body));
    *request.method_mut() = parts.method;
    *request.uri_mut() = parts.uri;
    *request.headers_mut() = gate.header_rules.toward_handler(&parts.headers);
    let sent = gate.client.send(&pass.upstream, Connection::Kept, request);
    match silence.bounds(sent).await {
        Ok(Ok(response)) => {
            let (mut parts, body) = response.into_parts();
            parts.headers = headers::toward_client(&parts.headers);
            let body = filter_trailers(pace::answered(body, limits), headers::toward_client);
            http::Response::from_parts(parts, streamed(body))
        }
        Ok(Err(broken)) => match cut.get() {
            Some(why) => refuse(&refusal::not_passed_whole(*why)),
            None => refusal::not_forwarded(&broken).response().map(full),
        },
        Err(max) => refusal::not_answered(max).response().map(full),
    }
}
