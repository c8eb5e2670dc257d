//! A layer for axum and hyper services: the service behind it takes effect once per key.
//!
//! The layer gives statuses no meaning. Whether an answer is a success is for the caller's
//! [`Verdict`] function to say, and what could not be answered reaches the caller as an
//! [`OnceError`]; `examples/axum.rs` maps each of them.

pub use crate::outcome::HEADERS_KEPT;

use crate::key::KeyError;
use crate::outcome::bytes_of;
use crate::run::{Ended, Semel};
use crate::work::{Failure, FailureKind, Work};
use crate::{Error, Fingerprint, InDoubt, Outcome};
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode, header};
use http_body::Body;
use http_body_util::{BodyExt, Full, Limited};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::oneshot;
use tower_layer::Layer;
use tower_service::Service;

/// The largest request body, in bytes: the whole body is read before the key is known.
pub const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Makes a service take effect once per key.
///
/// `name` says which work a request is; `judge` says what an answer means.
///
/// ```
/// use bytes::Bytes;
/// use http::{Request, Response};
/// use http_body_util::Full;
/// use semel::memory::MemoryStore;
/// use semel::tower::{OnceLayer, Replayed, Verdict, fingerprint};
/// use semel::work::Work;
/// use semel::{Key, Semel};
/// use tower::{ServiceBuilder, ServiceExt};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let once = OnceLayer::new(
///     Semel::new(MemoryStore::new()),
///     |parts, body| Ok(Work::new(Key::from_bytes([1; 32]), fingerprint(parts, body))),
///     |response| if response.status().is_success() { Verdict::Success } else { Verdict::Retryable },
/// );
/// let service = ServiceBuilder::new().layer(once).service_fn(|_: Request<Full<Bytes>>| async {
///     Ok::<_, std::convert::Infallible>(Response::new(Full::new(Bytes::from("charged"))))
/// });
/// for replayed in [false, true] {
///     let request = Request::post("/charge").body(Full::new(Bytes::from("900"))).unwrap();
///     let response = service.clone().oneshot(request).await.unwrap();
///     assert_eq!(response.extensions().get::<Replayed>().is_some(), replayed);
/// }
/// # });
/// ```
#[derive(Clone)]
pub struct OnceLayer {
    semel: Semel,
    name: Arc<Name>,
    judge: Arc<Judge>,
}

/// A service behind [`OnceLayer`].
#[derive(Clone)]
pub struct Once<S> {
    inner: S,
    layer: OnceLayer,
}

/// What an answer of the service means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It took effect: recorded and replayed.
    Success,
    /// It failed for good: recorded and replayed.
    Final,
    /// It did not take effect and may be tried again: not recorded.
    Retryable,
    /// It may or may not have taken effect: the work's policy decides. Where doubt is parked, that is
    /// what an answer means which does not say for certain that nothing happened.
    InDoubt,
}

/// Marks a response (in its extensions) that was recorded earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replayed;

/// Why a request has no answer of the service.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OnceError {
    /// The same request is being worked on.
    #[error("the same request is being worked on; ask again after {retry_after:?}")]
    Busy {
        /// When to ask again.
        retry_after: Duration,
    },
    /// It failed, and its next run is not due yet.
    #[error("this request failed and is not due again yet; ask again after {retry_after:?}")]
    NotYet {
        /// When it is due.
        retry_after: Duration,
    },
    /// Too much work is in hand.
    #[error("too much work is in hand; nothing was run, ask again after {retry_after:?}")]
    Full {
        /// When to ask again.
        retry_after: Duration,
    },
    /// A person must look first.
    #[error("this request is parked: a person must look first; a retry changes nothing")]
    Parked,
    /// The key was used for other work.
    #[error(
        "this key was used for other work (another payload, method or path); use a new key for new work"
    )]
    Mismatched,
    /// The run was overtaken.
    #[error("this run was overtaken; ask again for the outcome of the other")]
    Stale,
    /// It ran, and whether its own transaction committed cannot be read yet.
    #[error("it ran, and whether it committed cannot be read yet; a retry is safe")]
    Unread,
    /// The request has no key.
    #[error(transparent)]
    NoKey(#[from] KeyError),
    /// The store could not be asked; nothing was run.
    #[error("nothing was run: {0}")]
    Store(#[from] Error),
    /// The body is too large, or broke off.
    #[error("the request body could not be read: {0}; nothing was run")]
    Body(String),
    /// The service itself failed; whether it took effect is unknown.
    #[error("the service failed: {0}")]
    Service(String),
}

type Name = dyn Fn(&Parts, &Bytes) -> Result<Work, KeyError> + Send + Sync;
type Judge = dyn Fn(&Response<Bytes>) -> Verdict + Send + Sync;
type Reply = Response<Full<Bytes>>;

/// The fingerprint of a request: its method, its path with the query, and its body, as a JSON value if
/// its `Content-Type` says so.
#[must_use]
pub fn fingerprint(parts: &Parts, body: &[u8]) -> Fingerprint {
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let content_type = parts.headers.get(header::CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok());
    Fingerprint::of_request(parts.method.as_str(), path, content_type, body)
}

// === impl OnceLayer ===

impl OnceLayer {
    /// A layer on this library, with the caller's way to name work and to judge answers.
    pub fn new(
        semel: Semel,
        name: impl Fn(&Parts, &Bytes) -> Result<Work, KeyError> + Send + Sync + 'static,
        judge: impl Fn(&Response<Bytes>) -> Verdict + Send + Sync + 'static,
    ) -> Self {
        Self {
            semel,
            name: Arc::new(name),
            judge: Arc::new(judge),
        }
    }
}

impl<S> Layer<S> for OnceLayer {
    type Service = Once<S>;

    fn layer(&self, inner: S) -> Once<S> {
        Once {
            inner,
            layer: self.clone(),
        }
    }
}

// === impl Once ===

impl<S, B, R> Service<Request<B>> for Once<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Error: fmt::Display,
    S::Future: Send,
    B: Body + From<Bytes> + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    R: Body + Send + 'static,
    R::Data: Send,
    R::Error: fmt::Display,
{
    type Response = Reply;
    type Error = OnceError;
    type Future = Pin<Box<dyn Future<Output = Result<Reply, OnceError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), OnceError>> {
        self.inner
            .poll_ready(cx)
            .map_err(|error| OnceError::Service(error.to_string()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The clone stays for the next call; the one that was polled ready is used now.
        let clone = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, clone);
        Box::pin(self.layer.clone().answer(inner, request))
    }
}

impl OnceLayer {
    /// Read → name → run → answer.
    async fn answer<S, B, R>(self, mut inner: S, request: Request<B>) -> Result<Reply, OnceError>
    where
        S: Service<Request<B>, Response = Response<R>> + Send + 'static,
        S::Error: fmt::Display,
        S::Future: Send,
        B: Body + From<Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
        R: Body + Send,
        R::Data: Send,
        R::Error: fmt::Display,
    {
        let (parts, body) = request.into_parts();
        let body = Limited::new(body, BODY_BYTES_MAX).collect().await;
        let body = body
            .map_err(|error| OnceError::Body(error.to_string()))?
            .to_bytes();
        let work = (self.name)(&parts, &body)?;
        refuse_probing(&work)?;
        let (first_hand, to_first) = oneshot::channel();
        let judge = Arc::clone(&self.judge);
        let effect = move |_| async move {
            let response = inner.call(Request::from_parts(parts, B::from(body))).await;
            let response = response.map_err(|error| Failure::in_doubt(error.to_string()))?;
            let response = buffered(response).await?;
            let said = judged(judge(&response), &response);
            drop(first_hand.send(response));
            said
        };
        let ended = self.semel.run(work, effect).await?;
        // Whoever ran it hears all that the service said; a duplicate hears what was recorded.
        answered(ended, to_first.await.ok())
    }
}

/// A service is not told that the run before was in doubt, so it could not find out.
fn refuse_probing(work: &Work) -> Result<(), Error> {
    if work.in_doubt == InDoubt::Probe {
        return Err(Error::invalid(
            "work behind this layer cannot be probed: use `retry` or `park`, or `Semel::run`; nothing was run",
        ));
    }
    Ok(())
}

async fn buffered<R>(response: Response<R>) -> Result<Response<Bytes>, Failure>
where
    R: Body,
    R::Error: fmt::Display,
{
    let (parts, body) = response.into_parts();
    match body.collect().await {
        Ok(body) => Ok(Response::from_parts(parts, body.to_bytes())),
        Err(error) => Err(Failure::in_doubt(format!("the answer broke off: {error}"))),
    }
}

fn judged(verdict: Verdict, response: &Response<Bytes>) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::new(response.status().as_u16(), response.body().clone());
    for name in HEADERS_KEPT {
        for value in response.headers().get_all(name) {
            outcome = outcome.with_header_bytes(name, value.as_bytes());
        }
    }
    let failure = |kind, outcome| {
        Err(Failure {
            kind,
            outcome,
            after: None,
        })
    };
    match verdict {
        Verdict::Success => Ok(outcome),
        Verdict::Final => failure(FailureKind::Final, outcome),
        Verdict::Retryable => failure(FailureKind::Retryable, outcome),
        Verdict::InDoubt => failure(FailureKind::InDoubt, outcome),
    }
}

fn answered(ended: Ended, first_hand: Option<Response<Bytes>>) -> Result<Reply, OnceError> {
    let whole = first_hand.map(|response| response.map(Full::new));
    match ended {
        Ended::Ran(recorded) | Ended::Unrecorded(recorded) => match whole {
            Some(response) => Ok(response),
            None => response(&recorded.outcome),
        },
        Ended::Replayed(recorded) => {
            let mut response = response(&recorded.outcome)?;
            response.extensions_mut().insert(Replayed);
            Ok(response)
        }
        Ended::Failed(failed) => whole.ok_or_else(|| {
            let said = failed.failure.outcome.body_bytes();
            OnceError::Service(String::from_utf8_lossy(&said).into_owned())
        }),
        Ended::Unread => Err(OnceError::Unread),
        Ended::Busy { retry_after } => Err(OnceError::Busy { retry_after }),
        Ended::NotYet { retry_after } => Err(OnceError::NotYet { retry_after }),
        Ended::Full { retry_after } => Err(OnceError::Full { retry_after }),
        Ended::Parked => Err(OnceError::Parked),
        Ended::Mismatched => Err(OnceError::Mismatched),
        Ended::Stale => Err(OnceError::Stale),
    }
}

fn response(outcome: &Outcome) -> Result<Reply, OnceError> {
    let unreadable = |what: String| {
        Error::corrupt(format!(
            "a recorded answer has {what}; nothing is replayed from it"
        ))
    };
    let mut response = Response::new(Full::new(outcome.body_bytes()));
    *response.status_mut() = StatusCode::from_u16(outcome.status)
        .map_err(|_| unreadable(format!("the status {}", outcome.status)))?;
    for (name, values) in &outcome.headers {
        for value in values {
            let header = name
                .parse::<HeaderName>()
                .ok()
                .zip(HeaderValue::from_bytes(&bytes_of(value)).ok());
            let (name, value) =
                header.ok_or_else(|| unreadable(format!("a bad header {name:?}")))?;
            response.headers_mut().append(name, value);
        }
    }
    Ok(response)
}

impl fmt::Debug for OnceLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnceLayer")
            .field("semel", &self.semel)
            .finish_non_exhaustive()
    }
}

impl<S> fmt::Debug for Once<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once")
            .field("layer", &self.layer)
            .finish_non_exhaustive()
    }
}
