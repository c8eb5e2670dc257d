//! Listening: what the three addresses of a gate have in common. Connections are counted, have
//! limits to their patience, and are told to finish when the gate goes down.

use crate::activity::{Activity, Answering, Overdue};
use crate::bodies::{Bodies, Holder};
use crate::metrics::connections::{Counted, Counts};
use crate::origins::{Origins, TooMany, Visit};
use crate::reply::Reply;
use crate::settings::{Limits, Settings};
use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulConnection;
use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::TaskTracker;

/// The most headers of a request, and the most bytes of its head.
const HEADERS_MAX: usize = 100;
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// A pause after `accept` failed, usually for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How long an idle client may take to hear that its connection ends.
const FAREWELL: Duration = Duration::from_secs(1);

/// A log that says the same thing at every connection helps nobody.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// One address that is listened at.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: TcpListener,
    name: &'static str,
    room: Arc<Semaphore>,
    connections_max: usize,
    origins: Origins,
    bodies: Bodies,
    limits: Arc<Limits>,
    counts: Counts,
    builder: auto::Builder<TokioExecutor>,
}

/// Answers requests.
pub(crate) trait Serve: Clone + Send + Sync + 'static {
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
    pub(crate) bodies: Holder,
    activity: Activity,
}

/// The connections of a listener, so that they can be told to finish.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    closing: watch::Sender<bool>,
    open: TaskTracker,
}

/// What a connection gives back at its end.
struct Place {
    visit: Visit,
    _room: OwnedSemaphorePermit,
    _counted: Counted,
}

/// A connection at work.
struct Watched {
    name: &'static str,
    activity: Activity,
    limits: Arc<Limits>,
    closing: watch::Receiver<bool>,
    counts: Counts,
}

/// Says a thing once in a while.
#[derive(Debug, Default)]
struct Seldom(Option<Instant>);

// === impl Listener ===

impl Listener {
    /// A listener for `connections_max`, of which one address may have a part.
    pub(crate) fn new(
        socket: TcpListener,
        name: &'static str,
        connections_max: usize,
        settings: &Settings,
        bodies: &Bodies,
        counts: &Counts,
    ) -> Self {
        let limits = &settings.limits;
        Self {
            socket,
            name,
            room: Arc::new(Semaphore::new(connections_max.min(Semaphore::MAX_PERMITS))),
            connections_max,
            origins: Origins::new(
                settings.proxies.clone(),
                limits.part(connections_max),
                bodies.part_bytes(),
            ),
            bodies: bodies.clone(),
            builder: builder(limits),
            limits: Arc::new(limits.clone()),
            counts: counts.clone(),
        }
    }

    /// Takes connections for ever.
    pub(crate) async fn serve(&self, server: impl Serve, connections: &Connections) {
        let (mut full, mut address) = (Seldom::default(), Seldom::default());
        loop {
            let room = self.place(&mut full).await;
            let (stream, peer) = self.accept().await;
            match self.origins.admit(peer.ip()) {
                Ok(visit) => {
                    let place = Place {
                        visit,
                        _room: room,
                        _counted: self.counts.open(self.name),
                    };
                    self.begin(stream, peer, place, server.clone(), connections);
                }
                Err(TooMany) => {
                    self.counts.turned_away(self.name);
                    address.tell(|| self.tell_turned_away(peer));
                }
            }
        }
    }

    /// Waits for a place: what is not accepted waits in the kernel's queue.
    async fn place(&self, full: &mut Seldom) -> OwnedSemaphorePermit {
        if let Ok(place) = Arc::clone(&self.room).try_acquire_owned() {
            return place;
        }
        self.counts.full(self.name);
        full.tell(|| self.tell_full());
        let place = Arc::clone(&self.room).acquire_owned().await;
        place.expect("this semaphore is never closed")
    }

    async fn accept(&self) -> (TcpStream, SocketAddr) {
        loop {
            match self.socket.accept().await {
                Ok(accepted) => return accepted,
                Err(error) => {
                    tracing::warn!(listener = self.name, %error, "a connection was not accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn begin(
        &self,
        stream: TcpStream,
        address: SocketAddr,
        place: Place,
        server: impl Serve,
        connections: &Connections,
    ) {
        drop(stream.set_nodelay(true));
        let peer = Arc::new(Peer {
            address,
            bodies: self.bodies.holder(place.visit.origin.clone()),
            activity: Activity::new(),
        });
        let activity = peer.activity.clone();
        let service = service_fn(move |request| answer(server.clone(), Arc::clone(&peer), request));
        let connection = self
            .builder
            .serve_connection(TokioIo::new(stream), service)
            .into_owned();
        let watched = Watched {
            name: self.name,
            activity,
            limits: Arc::clone(&self.limits),
            closing: connections.closing.subscribe(),
            counts: self.counts.clone(),
        };
        connections.open.spawn(async move {
            watched.attend(connection).await;
            drop(place);
        });
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

fn builder(limits: &Limits) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_within)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .half_close(true)
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(limits.ping_every)
        .keep_alive_timeout(limits.ping_within)
        .max_header_list_size(u32::try_from(HEAD_BYTES_MAX).unwrap_or(u32::MAX));
    builder
}

async fn answer(
    server: impl Serve,
    peer: Arc<Peer>,
    request: Request<Incoming>,
) -> Result<http::Response<Answering>, Infallible> {
    let in_hand = peer.activity.begin();
    let reply = server.serve(peer, request).await;
    Ok(reply.map(|body| Answering::new(body, in_hand)))
}

// === impl Watched ===

impl Watched {
    /// Serves a connection to its end: its own, the gate's, or that of our patience.
    async fn attend<C>(mut self, connection: C)
    where
        C: GracefulConnection<Error: fmt::Display>,
    {
        let (mut connection, mut told) = (pin!(connection), false);
        loop {
            tokio::select! {
                // What has arrived is looked at before the clock: a process that was held up cuts nobody for it.
                biased;
                ended = connection.as_mut() => {
                    if let Err(error) = ended {
                        tracing::debug!(listener = self.name, %error, "a connection ended early");
                    }
                    return;
                }
                () = told_to_close(&mut self.closing), if !told => {
                    connection.as_mut().graceful_shutdown();
                    told = true;
                }
                why = self.activity.overdue(&self.limits) => break self.cut(connection, why).await,
            }
        }
    }

    async fn cut<C: GracefulConnection>(&self, mut connection: Pin<&mut C>, why: Overdue) {
        tracing::debug!(
            listener = self.name,
            why = why.word(),
            "a connection was cut"
        );
        self.counts.cut(self.name, why);
        match why {
            // An HTTP/2 client that is told does not send its next request here.
            Overdue::Idle => {
                connection.as_mut().graceful_shutdown();
                drop(timeout(FAREWELL, connection).await);
            }
            Overdue::NoRequest | Overdue::Unread => {}
        }
    }
}

/// Nobody left to tell it is as good as being told.
async fn told_to_close(closing: &mut watch::Receiver<bool>) {
    drop(closing.wait_for(|closing| *closing).await);
}

// === impl Connections ===

impl Connections {
    /// Tells all connections to finish what they have in hand, and waits for their end.
    pub(crate) async fn shutdown(&self) {
        self.closing.send_replace(true);
        self.open.close();
        self.open.wait().await;
    }
}

// === impl Seldom ===

impl Seldom {
    fn tell(&mut self, tell: impl FnOnce()) {
        if self.0.is_none_or(|told| told.elapsed() >= TELL_EVERY) {
            self.0 = Some(Instant::now());
            tell();
        }
    }
}
