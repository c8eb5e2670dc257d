//! The handler: sending it a request, and telling apart what was sent from what was not.

mod h2c;
mod https;

use crate::bodies::BodyBuffer;
use crate::headers::toward_client;
use crate::map_body::filter_trailers;
use crate::settings::{Settings, Upstream};
use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{Request, Response, Uri};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use http_body_util::combinators::{BoxBody, UnsyncBoxBody};
use hyper::body::Incoming;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::AlertDescription;
use semel_tls::FileError;
use std::collections::HashMap;
use std::error::Error as _;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// How long a connection may take to be made.
const CONNECT_WITHIN: Duration = Duration::from_secs(3);

/// How long a connection is kept for the next request: shorter than what common servers allow (5 s),
/// because a request on a connection that just closed is in doubt.
const IDLE_MAX: Duration = Duration::from_secs(3);

/// How many idle connections are kept to one handler.
const IDLE_CONNECTIONS_MAX: usize = 256;

/// A body, whatever it is made of.
pub(crate) type AnyBody = UnsyncBoxBody<Bytes, BoxError>;
/// The same while a delivery holds it that more than one thread looks at.
pub(crate) type SharedBody = BoxBody<Bytes, BoxError>;
/// A reply, with its body.
pub(crate) type Reply = Response<AnyBody>;
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Sends requests to handlers.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    http: Pools<HttpConnector>,
    /// Those with TLS, by the file of their roots: who is believed on one route is a stranger on another.
    https: Arc<HashMap<Option<PathBuf>, Pools<https::HttpsConnector>>>,
    h2c: h2c::H2c,
}

/// Connections that were used before, and new ones.
#[derive(Clone, Debug)]
struct Pools<C> {
    kept: legacy::Client<C, AnyBody>,
    fresh: legacy::Client<C, AnyBody>,
}

/// Which connection a request may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Connection {
    /// One that was used before, if there is one.
    Kept,
    /// A new one: what fails before it is made was not sent.
    Fresh,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SendError {
    /// Not one byte was sent.
    NotSent(String),
    /// The handler says that it did not look at the request.
    NotProcessed(String),
    /// The handler may have got the request, whole or in part.
    Cut(String),
}

/// An answer, read as far as it is kept.
#[derive(Debug)]
pub(crate) enum AnswerBody {
    /// All of it.
    Whole(Bytes),
    /// It is larger: what was read, and what is still to come.
    Beyond(Bytes, Incoming),
}

// === impl Client ===

impl Client {
    /// One that reaches all handlers of a gate.
    ///
    /// # Errors
    /// When roots cannot be read; the message names the file.
    pub(crate) fn new(settings: &Settings) -> Result<Self, FileError> {
        let routes = settings.routes.iter().map(|route| &route.upstream);
        let passed = settings.pass.iter().map(|pass| &pass.upstream);
        let mut https = HashMap::new();
        for upstream in routes.chain(passed).filter(|upstream| upstream.is_https()) {
            if !https.contains_key(&upstream.ca) {
                let connector = https::HttpsConnector::new(connector(), &upstream.verify())?;
                https.insert(upstream.ca.clone(), Pools::new(&connector));
            }
        }
        Ok(Self {
            http: Pools::new(&connector()),
            https: Arc::new(https),
            h2c: h2c::H2c::new(),
        })
    }

    /// Sends a request; its URI names path and query, `upstream` the rest.
    pub(crate) async fn send(
        &self,
        upstream: &Upstream,
        connection: Connection,
        mut request: Request<AnyBody>,
    ) -> Result<Response<Incoming>, SendError> {
        if upstream.h2c {
            return self.h2c.send(&upstream.base, connection, request).await;
        }
        *request.uri_mut() = target(&upstream.base, request.uri());
        *request.version_mut() = http::Version::HTTP_11;
        if !upstream.is_https() {
            return self.http.send(connection, request).await;
        }
        let pools = self.https.get(&upstream.ca);
        let pools = pools.expect("the roots of every handler were read at the start");
        pools.send(connection, request).await
    }
}

// === impl Pools ===

impl<C> Pools<C>
where
    C: legacy::connect::Connect + Clone + Send + Sync + 'static,
{
    fn new(connector: &C) -> Self {
        let build = |idle_max| {
            legacy::Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(IDLE_MAX)
                .pool_max_idle_per_host(idle_max)
                // The default sends a POST again.
                .retry_canceled_requests(false)
                .build(connector.clone())
        };
        Self {
            kept: build(IDLE_CONNECTIONS_MAX),
            fresh: build(0),
        }
    }

    async fn send(
        &self,
        connection: Connection,
        request: Request<AnyBody>,
    ) -> Result<Response<Incoming>, SendError> {
        let sender = match connection {
            Connection::Kept => &self.kept,
            Connection::Fresh => &self.fresh,
        };
        let sent = sender.request(request).await;
        sent.map_err(|error| SendError::by(&error))
    }
}

fn connector() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT_WITHIN));
    connector
}

fn target(base: &Uri, path: &Uri) -> Uri {
    let mut parts = base.clone().into_parts();
    parts.path_and_query = path
        .path_and_query()
        .cloned()
        .or_else(|| Some(PathAndQuery::from_static("/")));
    Uri::from_parts(parts).expect("a base with scheme and host takes any path")
}

// === impl SendError ===

impl SendError {
    /// The word for it, in traces.
    pub(crate) const fn word(&self) -> &'static str {
        match self {
            Self::NotSent(_) => "not_sent",
            Self::NotProcessed(_) => "not_processed",
            Self::Cut(_) => "connection_cut",
        }
    }

    fn by(error: &legacy::Error) -> Self {
        let cause = error.source();
        let why = cause.map_or_else(|| error.to_string(), ToString::to_string);
        // In TLS 1.3 a handler that misses our certificate says so after the handshake, and reads no more.
        if semel_tls::alert(error) == Some(AlertDescription::CertificateRequired) {
            return Self::NotProcessed(
                "the handler asks for a client certificate, and the gate has none".into(),
            );
        }
        // A request that a closing connection never took is given back as cancelled.
        let cancelled = cause
            .and_then(|cause| cause.downcast_ref::<hyper::Error>())
            .is_some_and(hyper::Error::is_canceled);
        if error.is_connect() || cancelled {
            Self::NotSent(why)
        } else {
            Self::Cut(why)
        }
    }
}

/// Reads an answer up to `bytes_max`.
pub(crate) async fn read(mut body: Incoming, bytes_max: usize) -> Result<AnswerBody, SendError> {
    let mut read = BodyBuffer::default();
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| SendError::Cut(format!("the answer broke off: {error}")))?;
        if let Ok(data) = frame.into_data() {
            read.push(data);
        }
        if read.len() > bytes_max {
            return Ok(AnswerBody::Beyond(read.whole(), body));
        }
    }
    Ok(AnswerBody::Whole(unpinned(read.whole())))
}

/// A small answer outlives its connection's buffer in records and caches: it must not keep all of it.
fn unpinned(body: Bytes) -> Bytes {
    const COPIED_BYTES_MAX: usize = 64 * 1024;
    if body.len() <= COPIED_BYTES_MAX {
        Bytes::copy_from_slice(&body)
    } else {
        body
    }
}

pub(crate) fn full(bytes: Bytes) -> AnyBody {
    UnsyncBoxBody::new(http_body_util::Full::new(bytes).map_err(|never| match never {}))
}

/// What was read of a body, and then the rest of it.
pub(crate) fn chained(begun: Bytes, rest: SharedBody) -> AnyBody {
    let chained = Chained {
        begun: Some(begun),
        rest,
    };
    UnsyncBoxBody::new(filter_trailers(chained, toward_client))
}

struct Chained {
    begun: Option<Bytes>,
    rest: SharedBody,
}

impl Body for Chained {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(begun) = self.begun.take() {
            return Poll::Ready(Some(Ok(Frame::data(begun))));
        }
        Pin::new(&mut self.rest).poll_frame(cx)
    }
}

pub(crate) fn streamed<B>(body: B) -> AnyBody
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    UnsyncBoxBody::new(body.map_err(Into::into))
}
