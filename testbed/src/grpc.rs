//! gRPC without its messages: what stands between a client and a server of it, and hands on, refuses or loses calls.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;

use anyhow::Context;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{HeaderMap, HeaderValue};
use hyper::{Request, Response};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_stream::{Stream, StreamExt};

type Frames = dyn Stream<Item = Result<Frame<Bytes>, Infallible>> + Send;

type Body = StreamBody<Pin<Box<Frames>>>;

/// A call with all of its messages.
#[derive(Clone, Debug)]
pub struct GrpcCall {
    /// `/package.Service/Method`
    pub path: String,
    /// What came with it.
    pub headers: HeaderMap,
    /// Its messages, each in its frame.
    pub body: Bytes,
}

/// An answer with its trailers, where gRPC has its status.
#[derive(Clone, Debug)]
pub struct GrpcAnswer {
    /// What comes first.
    pub headers: HeaderMap,
    /// Its messages, each in its frame.
    pub body: Bytes,
    /// What comes last; none where the answer never ends.
    pub trailers: Option<HeaderMap>,
}

/// Hands calls on to a server without TLS.
#[derive(Debug)]
pub struct GrpcForwarder {
    server: String,
    client: Client<HttpConnector, Full<Bytes>>,
}

/// Answers the calls of one connection until its client closes it.
///
/// # Errors
/// When the connection breaks.
pub async fn serve_grpc<S, F>(
    stream: S,
    answer: impl Fn(GrpcCall) -> F + Clone + Send + Sync + 'static,
) -> anyhow::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    F: Future<Output = anyhow::Result<GrpcAnswer>> + Send + 'static,
{
    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
        let answer = answer.clone();
        async move { answer(GrpcCall::read(request).await?).await?.response() }
    });
    hyper::server::conn::http2::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), service)
        .await?;
    Ok(())
}

// === impl GrpcCall ===

impl GrpcCall {
    async fn read(request: Request<Incoming>) -> anyhow::Result<Self> {
        let (parts, body) = request.into_parts();
        Ok(Self {
            path: parts.uri.path().to_owned(),
            headers: parts.headers,
            body: body.collect().await?.to_bytes(),
        })
    }
}

// === impl GrpcAnswer ===

impl GrpcAnswer {
    /// An answer without a message: a status, by its number, and what is said of it in ASCII.
    ///
    /// # Errors
    /// When the words can be in no header.
    pub fn status(code: u32, says: &str) -> anyhow::Result<Self> {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/grpc"));
        headers.insert("grpc-status", code.into());
        headers.insert("grpc-message", says.replace('%', "%25").parse()?);
        Ok(Self {
            headers,
            body: Bytes::new(),
            trailers: Some(HeaderMap::new()),
        })
    }

    /// Whether its status is not OK.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        let last = self.trailers.as_ref();
        let status = self
            .headers
            .get("grpc-status")
            .or_else(|| last?.get("grpc-status"));
        status.is_some_and(|status| status != "0")
    }

    fn response(self) -> anyhow::Result<Response<Body>> {
        let mut frames = Vec::new();
        if !self.body.is_empty() {
            frames.push(Ok(Frame::data(self.body)));
        }
        let never_ends = self.trailers.is_none();
        if let Some(trailers) = self.trailers.filter(|it| !it.is_empty()) {
            frames.push(Ok(Frame::trailers(trailers)));
        }
        let frames = tokio_stream::iter(frames);
        let body: Body = match never_ends {
            true => StreamBody::new(Box::pin(frames.chain(tokio_stream::pending()))),
            false => StreamBody::new(Box::pin(frames)),
        };
        let mut response = Response::new(body);
        *response.headers_mut() = self.headers;
        Ok(response)
    }
}

// === impl GrpcForwarder ===

impl GrpcForwarder {
    /// To `host:port`.
    #[must_use]
    pub fn to(server: &str) -> Self {
        Self {
            server: server.to_owned(),
            client: Client::builder(TokioExecutor::new())
                .http2_only(true)
                .retry_canceled_requests(false)
                .build_http(),
        }
    }

    /// Makes this call once.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn forward(&self, call: GrpcCall) -> anyhow::Result<GrpcAnswer> {
        let mut request = Request::post(format!("http://{}{}", self.server, call.path));
        if let Some(headers) = request.headers_mut() {
            *headers = call.headers;
        }
        let answered = self.client.request(request.body(Full::new(call.body))?);
        let (parts, body) = answered
            .await
            .with_context(|| format!("{} does not answer", self.server))?
            .into_parts();
        let body = body.collect().await?;
        let trailers = body.trailers().cloned().unwrap_or_default();
        Ok(GrpcAnswer {
            headers: parts.headers,
            body: body.to_bytes(),
            trailers: Some(trailers),
        })
    }
}
