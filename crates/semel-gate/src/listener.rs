//! Listening: what the three addresses of a gate have in common. Connections are counted, all of them
//! and those of one address.

mod tls;

pub(crate) use tls::Acceptor;

use crate::activity::{Activity, TrackedBody};
use crate::address_limits::{AddressLimits, AddressPermit, TooMany};
use crate::bodies::{Bodies, ConnectionBudget};
use crate::connections::{Connections, WatchedConnection};
use crate::gate::Gate;
use crate::head;
use crate::metrics::connections::{ConnectionMetrics, OpenConnection};
use crate::rate_limited_log::RateLimitedLog;
use crate::settings::Limits;
use crate::upstream::Reply;
use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

/// The most requests at once on one HTTP/2 connection. 100: the least that RFC 9113 (6.5.2) recommends, so that
/// no client is slowed down by it, and heads that wait to be counted are few.
const STREAMS_MAX: u32 = 100;

/// A pause after `accept` failed, usually for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// One address that is listened at.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: TcpListener,
    name: &'static str,
    room: Arc<Semaphore>,
    connections_max: usize,
    address_limits: AddressLimits,
    bodies: Bodies,
    limits: Arc<Limits>,
    counts: ConnectionMetrics,
    tls: Option<Acceptor>,
}

/// Answers requests.
pub(crate) trait Serve: Clone + Send + Sync + 'static {
    /// Whether many may come at once on one connection. Where bodies are not counted together, the
    /// number of connections has to bound them.
    const HTTP2: bool;

    /// Answers one.
    fn serve(
        self,
        peer: Arc<Peer>,
        request: Request<Incoming>,
    ) -> impl Future<Output = Reply> + Send;
}

/// Who is at the other end of a connection, and what it has in hand.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    pub(crate) bodies: ConnectionBudget,
    activity: Activity,
}

/// What a connection gives back at its end.
struct ConnectionSlot {
    permit: AddressPermit,
    _room: OwnedSemaphorePermit,
    _counted: OpenConnection,
}

// === impl Listener ===

impl Listener {
    /// A listener of this gate for `connections_max`, of which one address may have a part.
    pub(crate) fn new(
        gate: &Gate,
        socket: TcpListener,
        name: &'static str,
        connections_max: usize,
    ) -> Self {
        let (limits, bodies) = (&gate.settings.limits, &gate.bodies);
        let proxies = gate.settings.proxies.clone();
        let part = limits.part(connections_max);
        gate.metrics.connections.begin(name);
        Self {
            socket,
            name,
            room: Arc::new(Semaphore::new(connections_max.min(Semaphore::MAX_PERMITS))),
            connections_max,
            address_limits: AddressLimits::new(proxies, part, bodies.part_bytes()),
            bodies: bodies.clone(),
            limits: Arc::new(limits.clone()),
            counts: gate.metrics.connections.clone(),
            tls: None,
        }
    }

    /// The same, which speaks TLS alone.
    pub(crate) fn with_tls(self, tls: Option<Acceptor>) -> Self {
        Self { tls, ..self }
    }

    /// Takes connections for ever.
    pub(crate) async fn serve<S: Serve>(&self, server: S, connections: &Connections) {
        let (mut full, mut address) = (RateLimitedLog::default(), RateLimitedLog::default());
        let builder = builder(&self.limits, S::HTTP2);
        loop {
            let room = self.place(&mut full).await;
            let (stream, peer) = self.accept().await;
            match self.address_limits.admit(peer.ip()) {
                Ok(permit) => {
                    let place = ConnectionSlot {
                        permit,
                        _room: room,
                        _counted: self.counts.open(self.name),
                    };
                    let peer = self.peer(peer, &place);
                    let watched = self.watched(&peer, connections);
                    let (builder, server) = (builder.clone(), server.clone());
                    let (tls, within) = (self.tls.clone(), self.limits.head_within);
                    connections.spawn(async move {
                        match tls {
                            None => converse(&builder, server, peer, stream, watched).await,
                            Some(tls) => {
                                let shaken =
                                    watched.unless_closing(tls.accept(stream, within)).await;
                                if let Some(stream) = shaken.flatten() {
                                    converse(&builder, server, peer, stream, watched).await;
                                }
                            }
                        }
                        drop(place);
                    });
                }
                Err(TooMany) => {
                    self.counts.turned_away(self.name);
                    if address.is_due() {
                        self.tell_turned_away(peer);
                    }
                }
            }
        }
    }

    /// Waits for a place: what is not accepted waits in the kernel's queue.
    async fn place(&self, full: &mut RateLimitedLog) -> OwnedSemaphorePermit {
        if let Ok(place) = Arc::clone(&self.room).try_acquire_owned() {
            return place;
        }
        self.counts.full(self.name);
        if full.is_due() {
            self.tell_full();
        }
        let place = Arc::clone(&self.room).acquire_owned().await;
        place.expect("this semaphore is never closed")
    }

    async fn accept(&self) -> (TcpStream, SocketAddr) {
        loop {
            match self.socket.accept().await {
                Ok((stream, peer)) => {
                    drop(stream.set_nodelay(true));
                    return (stream, peer);
                }
                Err(error) => {
                    tracing::warn!(listener = self.name, %error, "a connection was not accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn peer(&self, address: SocketAddr, place: &ConnectionSlot) -> Arc<Peer> {
        Arc::new(Peer {
            address,
            bodies: self.bodies.holder(place.permit.share.clone()),
            activity: Activity::new(),
        })
    }

    fn watched(&self, peer: &Peer, connections: &Connections) -> WatchedConnection {
        WatchedConnection {
            listener: self.name,
            activity: peer.activity.clone(),
            limits: Arc::clone(&self.limits),
            closing: connections.closing(),
            counts: self.counts.clone(),
        }
    }

    fn tell_full(&self) {
        tracing::warn!(
            listener = self.name,
            connections_max = self.connections_max,
            "all connections are taken: new ones wait until one ends"
        );
    }

    fn tell_turned_away(&self, peer: SocketAddr) {
        tracing::warn!(
            listener = self.name,
            address = %peer.ip(),
            connections_max = self.limits.part(self.connections_max),
            "one address has as many connections as one may have: more of them are closed at once; \
             a load balancer belongs into `proxies`"
        );
    }
}

fn builder(limits: &Limits, http2: bool) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_within)
        .max_buf_size(head::BYTES_MAX)
        .max_headers(head::HEADERS_MAX)
        .half_close(true)
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(limits.ping_every)
        .keep_alive_timeout(limits.ping_within)
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(u32::try_from(head::BYTES_MAX).unwrap_or(u32::MAX));
    if http2 { builder } else { builder.http1_only() }
}

/// Answers what comes over a connection, to its end.
async fn converse<S, I>(
    builder: &auto::Builder<TokioExecutor>,
    server: S,
    peer: Arc<Peer>,
    stream: I,
    watched: WatchedConnection,
) where
    S: Serve,
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request| answer(server.clone(), Arc::clone(&peer), request));
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    watched.serve_to_end(connection.into_owned()).await;
}

async fn answer(
    server: impl Serve,
    peer: Arc<Peer>,
    request: Request<Incoming>,
) -> Result<http::Response<TrackedBody>, Infallible> {
    let (version, in_hand) = (request.version(), peer.activity.begin());
    // On the heap only while there is a request: an idle connection keeps room for what `answer` is made of.
    let reply = Box::pin(server.serve(peer, request)).await;
    Ok(reply.map(|body| TrackedBody::new(body, version, in_hand)))
}
