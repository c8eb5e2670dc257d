//! Outgoing HTTP: resolves a host once, looks at every address, connects to one of these, and brings the answer's
//! status back.

mod request;
mod connector;
mod address;

use crate::clock::Clock;
use bytes::Bytes;
use connector::Connector;
use http::header::RETRY_AFTER;
use http::{HeaderMap, Method, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use request::SingleRequest;
use std::error::Error;
use std::sync::OnceLock;
use std::time::Duration;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tower::ServiceExt;
use url::Url;

/// How much of an answer's body is read; with more, the connection is dropped.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// How many redirects of one call are followed; the next one is the answer.
const REDIRECTS_MAX: usize = 3;

/// How long a connection is kept for the next call: less than servers keep theirs, or calls would meet
/// connections that are just being closed.
const IDLE: Duration = Duration::from_secs(1);

/// Carries calls to handlers.
#[derive(Debug)]
pub(crate) struct HttpClient {
    clock: Clock,
    connector: Connector,
    plain: Client<Connector, Full<Bytes>>,
    /// Made when first needed: reading the machine's certificates takes a while.
    secure: OnceLock<Result<Secure, String>>,
}

/// For https.
#[derive(Debug)]
struct Secure {
    connector: HttpsConnector<Connector>,
    client: Client<HttpsConnector<Connector>, Full<Bytes>>,
}

/// One request to a handler.
#[derive(Clone, Debug)]
pub(crate) struct OutgoingRequest {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// After this long, by the broker's clock, the connection is cut.
    pub(crate) deadline: Duration,
    pub(crate) redirects: Redirects,
    /// Break the connection after so many bytes of the body.
    pub(crate) cut: Option<usize>,
}

/// What is done about a 3xx with a usable Location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Redirects {
    /// It is followed, each one checked like the first; a POST becomes a GET.
    Follow,
    /// It is the answer.
    Answer,
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The handler's last status, and its wish for a pause.
    Status {
        code: u16,
        retry_after: Option<Duration>,
    },
    /// The deadline passed first.
    TimedOut,
    /// Nobody was reached, the address is not allowed, or the connection broke.
    Unreachable(String),
    /// Broken on purpose.
    Cut,
}

// === impl HttpClient ===

impl HttpClient {
    pub(crate) fn new(clock: Clock) -> Self {
        Self::on(Connector::default(), clock)
    }

    fn on(connector: Connector, clock: Clock) -> Self {
        Self {
            plain: client(connector.clone()),
            secure: OnceLock::new(),
            connector,
            clock,
        }
    }

    /// Makes the call; the answer's body is read up to a limit and thrown away.
    pub(crate) async fn deliver(&self, call: OutgoingRequest) -> Answer {
        let deadline = self.clock.sleep(call.deadline);
        let answer = async {
            match call.cut {
                Some(bytes) => self.cut(&SingleRequest::first(call), bytes).await,
                None => self.carry(call).await,
            }
        };
        tokio::select! {
            biased;
            answer = answer => answer.unwrap_or_else(Answer::Unreachable),
            () = deadline => Answer::TimedOut,
        }
    }

    async fn carry(&self, call: OutgoingRequest) -> Result<Answer, String> {
        let redirects = call.redirects;
        let mut request = SingleRequest::first(call);
        let mut followed = 0;
        loop {
            let (status, headers) = self.send(&request).await?;
            let next = match redirects {
                Redirects::Follow if followed < REDIRECTS_MAX => {
                    request.redirected(status, &headers)
                }
                Redirects::Follow | Redirects::Answer => None,
            };
            match next {
                Some(next) => request = next,
                None => return Ok(self.answer(status, &headers)),
            }
            followed += 1;
        }
    }

    /// Sends one request and reads the answer to its end, or to the limit.
    async fn send(&self, request: &SingleRequest) -> Result<(StatusCode, HeaderMap), String> {
        let sent = request.to_http()?;
        let answer = match request.url.scheme() {
            "https" => self.secure()?.client.request(sent),
            _ => self.plain.request(sent),
        };
        let answer = answer.await.map_err(|error| why(request, &error))?;
        let (parts, body) = answer.into_parts();
        drain(body).await.map_err(|error| why(request, &error))?;
        Ok((parts.status, parts.headers))
    }

    /// Sends the beginning of a request on a connection of its own, and breaks that.
    async fn cut(&self, request: &SingleRequest, bytes: usize) -> Result<Answer, String> {
        let uri = request.uri()?;
        match request.url.scheme() {
            "https" => {
                let connector = self.secure()?.connector.clone().oneshot(uri).await;
                let stream = connector.map_err(|error| why(request, &*error))?;
                send_part(TokioIo::new(stream), request, bytes).await
            }
            _ => {
                let connector = self.connector.clone().oneshot(uri).await;
                let stream = connector.map_err(|error| why(request, &error))?;
                send_part(stream.into_inner(), request, bytes).await
            }
        }
    }

    fn secure(&self) -> Result<&Secure, String> {
        let secure = self
            .secure
            .get_or_init(|| Secure::new(self.connector.clone()));
        secure.as_ref().map_err(Clone::clone)
    }

    fn answer(&self, status: StatusCode, headers: &HeaderMap) -> Answer {
        let wish = headers.get(RETRY_AFTER).and_then(|it| it.to_str().ok());
        Answer::Status {
            code: status.as_u16(),
            retry_after: wish.and_then(|wish| self.pause(wish)),
        }
    }

    /// A pause in seconds, or until a time of day: the handler's, who knows the machine's clock only.
    fn pause(&self, wish: &str) -> Option<Duration> {
        if let Ok(seconds) = wish.parse() {
            return Some(Duration::from_secs(seconds));
        }
        let until = jiff::fmt::rfc2822::parse(wish).ok()?.timestamp();
        let left = until.as_microsecond().saturating_sub(self.clock.wall().0);
        Some(Duration::from_micros(u64::try_from(left).unwrap_or(0)))
    }
}

// === impl Secure ===

impl Secure {
    fn new(connector: Connector) -> Result<Self, String> {
        let ring = rustls::crypto::ring::default_provider();
        let builder = HttpsConnectorBuilder::new()
            .with_provider_and_native_roots(ring)
            .map_err(|error| format!("no https without the machine's certificates: {error}"))?;
        let connector = builder
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        Ok(Self {
            client: client(connector.clone()),
            connector,
        })
    }
}

fn client<R>(connector: R) -> Client<R, Full<Bytes>>
where
    R: hyper_util::client::legacy::connect::Connect + Clone,
{
    Client::builder(TokioExecutor::new())
        // A request is sent once: whether it is sent again is for the queue to say.
        .retry_canceled_requests(false)
        .pool_idle_timeout(IDLE)
        .pool_timer(TokioTimer::new())
        .build(connector)
}

async fn drain(mut body: Incoming) -> Result<(), hyper::Error> {
    let mut read = 0;
    while let Some(frame) = body.frame().await {
        read += frame?.data_ref().map_or(0, Bytes::len);
        if read > ANSWER_BYTES_MAX {
            break;
        }
    }
    Ok(())
}

async fn send_part(
    mut stream: impl AsyncWrite + Unpin,
    request: &SingleRequest,
    bytes: usize,
) -> Result<Answer, String> {
    let mut part = request.head();
    part.extend_from_slice(request.body.get(..bytes).unwrap_or(&request.body));
    let sent = stream.write_all(&part).await;
    sent.map_err(|error| why(request, &error))?;
    stream.flush().await.map_err(|error| why(request, &error))?;
    Ok(Answer::Cut)
}

/// Where it went wrong, and the innermost reason.
fn why(request: &SingleRequest, error: &(dyn Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let place = request.url.origin().ascii_serialization();
    format!("{place}: {innermost}")
}

#[cfg(test)]
mod tests;
