//! Handlers that speak HTTP/2 without TLS. Connections are made here and not by the pooled client: its
//! pool would take the host that a request is for, which is its sender's word, for the place to connect
//! to.

use super::{AnyBody, CONNECT_WITHIN, Connection, IDLE_MAX, SendError, connector};
use http::header::HOST;
use http::uri::{Authority, Scheme};
use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use std::collections::HashMap;
use std::error::Error as _;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, timeout};
use tower_service::Service;

/// A handler that owes an answer and sends nothing is asked so often whether it is still there. It is far
/// below common timeouts, and rare beside the renewals of the run's lease.
pub(super) const PING_EVERY: Duration = Duration::from_secs(10);

/// A handler that does not answer that is gone, with its host or the way to it: the runs on this connection
/// are in doubt now, not only when their time is over.
pub(super) const PING_ANSWERED_WITHIN: Duration = Duration::from_secs(5);

/// Sends requests over HTTP/2.
#[derive(Clone)]
pub(super) struct H2c {
    connector: HttpConnector,
    kept: Arc<Mutex<HashMap<Authority, PooledConnection>>>,
}

/// A connection for many requests.
struct PooledConnection {
    sender: SendRequest<AnyBody>,
    used: Instant,
}

// === impl H2c ===

impl H2c {
    pub(super) fn new() -> Self {
        Self {
            connector: connector(),
            kept: Arc::default(),
        }
    }

    /// Sends a request; its URI names path and query, `base` the place to connect to.
    pub(super) async fn send(
        &self,
        base: &Uri,
        connection: Connection,
        mut request: Request<AnyBody>,
    ) -> Result<Response<Incoming>, SendError> {
        *request.uri_mut() = self::target(base, &mut request);
        let kept = match connection {
            Connection::Kept => self.kept(base),
            Connection::Fresh => None,
        };
        let mut sender = match kept {
            Some(sender) => sender,
            None => self.connect(base, connection).await?,
        };
        let sent = sender.try_send_request(request).await;
        sent.map_err(|mut error| match error.take_message() {
            Some(_) => SendError::NotSent(error.error().to_string()),
            None => by(error.error()),
        })
    }

    /// A connection that was used a moment ago.
    fn kept(&self, base: &Uri) -> Option<SendRequest<AnyBody>> {
        let mut all = self.kept.lock().expect("no holder of this lock panics");
        let kept = all.get_mut(base.authority()?)?;
        let usable = !kept.sender.is_closed() && kept.used.elapsed() < IDLE_MAX;
        usable.then(|| {
            kept.used = Instant::now();
            kept.sender.clone()
        })
    }

    async fn connect(
        &self,
        base: &Uri,
        connection: Connection,
    ) -> Result<SendRequest<AnyBody>, SendError> {
        let not_sent = |why: &dyn fmt::Display| SendError::NotSent(why.to_string());
        let connecting = self.connector.clone().call(base.clone());
        let stream = connecting.await.map_err(|error| not_sent(&error))?;
        let shaking = Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_ANSWERED_WITHIN)
            .handshake(stream);
        let shaken = timeout(CONNECT_WITHIN, shaking).await;
        let shaken = shaken.map_err(|late| not_sent(&late))?;
        let (sender, served) = shaken.map_err(|error| not_sent(&error))?;
        tokio::spawn(async move {
            if let Err(error) = served.await {
                tracing::debug!(%error, "a connection to a handler ended early");
            }
        });
        if let (Connection::Kept, Some(place)) = (connection, base.authority()) {
            let kept = PooledConnection {
                sender: sender.clone(),
                used: Instant::now(),
            };
            let mut all = self.kept.lock().expect("no holder of this lock panics");
            all.insert(place.clone(), kept);
        }
        Ok(sender)
    }
}

impl fmt::Debug for H2c {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("H2c").finish_non_exhaustive()
    }
}

/// HTTP/2 says in `:authority` what HTTP/1.1 says in `Host`: the handler hears the same host, once.
fn target(base: &Uri, request: &mut Request<AnyBody>) -> Uri {
    let host = request.headers_mut().remove(HOST);
    let named = host.and_then(|host| Authority::try_from(host.as_bytes()).ok());
    let mut parts = super::target(base, request.uri()).into_parts();
    parts.scheme = Some(Scheme::HTTP);
    parts.authority = named.or(parts.authority);
    Uri::from_parts(parts).expect("scheme, host and path are all there")
}

/// What became of a request without an answer. A handler that refuses a stream, or goes away and names an
/// earlier one as its last, promises that it did not look at the request (RFC 9113, 8.7).
fn by(error: &hyper::Error) -> SendError {
    let cause = error
        .source()
        .and_then(|cause| cause.downcast_ref::<h2::Error>());
    let Some(cause) = cause else {
        return SendError::Cut(error.to_string());
    };
    let refused = cause.is_reset() && cause.reason() == Some(h2::Reason::REFUSED_STREAM);
    if cause.is_remote() && (refused || cause.is_go_away()) {
        SendError::NotProcessed(cause.to_string())
    } else {
        SendError::Cut(cause.to_string())
    }
}
