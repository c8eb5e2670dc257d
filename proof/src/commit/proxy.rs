//! A proxy between a store and the emulator, which loses and delays commits.

use super::tamper::{Spoiled, frame, spoil, unframe, with_clock, with_history};
use anyhow::Context;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::HeaderMap;
use hyper::{Request, Response};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use semel_firestore::proto::CommitRequest;
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::sleep;

/// How many commits in a hundred meet each of the faults.
const FAULT_PERCENT: u32 = 4;

/// How late a commit may arrive, in ms: beyond the lease now and then.
const LATE_MS: std::ops::Range<u64> = 5..250;

/// gRPC's number of what a client may try again without knowing what became of it.
const UNAVAILABLE: &str = "14";

type Body = StreamBody<tokio_stream::Iter<std::vec::IntoIter<Result<Frame<Bytes>, Infallible>>>>;

/// A proxy with its own dice.
#[derive(Debug)]
pub(super) struct Proxy {
    emulator: String,
    spoiled: Option<Spoiled>,
    rng: Mutex<StdRng>,
    client: Client<HttpConnector, Full<Bytes>>,
    pub(super) met: Arc<Met>,
}

/// How often each fault was met.
#[derive(Debug, Default)]
pub(super) struct Met {
    pub(super) requests_lost: AtomicUsize,
    pub(super) answers_lost: AtomicUsize,
    pub(super) late: AtomicUsize,
}

/// What becomes of one commit.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Carried,
    RequestLost,
    AnswerLost,
    Late(Duration),
}

/// An answer with its trailers, where gRPC has its status.
struct Answer {
    headers: HeaderMap,
    body: Bytes,
    trailers: HeaderMap,
}

// === impl Proxy ===

impl Proxy {
    /// Starts it, and says where it listens.
    pub(super) async fn start(
        emulator: &str,
        spoiled: Option<Spoiled>,
        seed: u64,
        met: Arc<Met>,
    ) -> anyhow::Result<String> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let proxy = Arc::new(Self {
            emulator: emulator.to_owned(),
            spoiled,
            rng: Mutex::new(StdRng::seed_from_u64(seed)),
            client: Client::builder(TokioExecutor::new())
                .http2_only(true)
                .retry_canceled_requests(false)
                .build_http(),
            met,
        });
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let proxy = Arc::clone(&proxy);
                let service = hyper::service::service_fn(move |request| {
                    let proxy = Arc::clone(&proxy);
                    async move { proxy.serve(request).await }
                });
                let served = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service);
                tokio::spawn(served);
            }
        });
        Ok(address)
    }

    async fn serve(self: Arc<Self>, request: Request<Incoming>) -> anyhow::Result<Response<Body>> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let path = parts.uri.path().to_owned();
        let answer = if path.ends_with("/Commit") {
            self.commit(&path, &parts.headers, &body).await?
        } else {
            let mut answer = self.forward(&path, &parts.headers, body).await?;
            if let (true, Some(Spoiled::ClientsClock(ms))) =
                (path.ends_with("/BatchGetDocuments"), self.spoiled)
            {
                answer.body = with_clock(&answer.body, ms)?.into();
            }
            answer
        };
        answer.response()
    }

    async fn commit(
        self: &Arc<Self>,
        path: &str,
        headers: &HeaderMap,
        body: &[u8],
    ) -> anyhow::Result<Answer> {
        let (fate, id) = self.draw();
        let (commit, _) = unframe::<CommitRequest>(body)?;
        let commit = with_history(commit, id);
        let sent = Bytes::from(frame(&spoil(commit.clone(), self.spoiled)));
        match fate {
            Fate::Carried => {
                let answer = self.forward(path, headers, sent).await?;
                if answer.is_refused() && self.spoiled == Some(Spoiled::RepeatsBlindly) {
                    let blind = spoil(commit, Some(Spoiled::NoCondition));
                    return self.forward(path, headers, frame(&blind).into()).await;
                }
                Ok(answer)
            }
            Fate::RequestLost => Ok(Answer::unavailable()),
            Fate::AnswerLost => {
                self.forward(path, headers, sent).await?;
                Ok(Answer::unavailable())
            }
            Fate::Late(by) => {
                let (proxy, path, headers) = (Arc::clone(self), path.to_owned(), headers.clone());
                tokio::spawn(async move {
                    sleep(by).await;
                    proxy.forward(&path, &headers, sent).await.map(drop)
                });
                Ok(Answer::unavailable())
            }
        }
    }

    fn draw(&self) -> (Fate, u64) {
        let mut rng = self.rng.lock().expect("nobody panics with the dice");
        let fate = match rng.random_range(0..100) {
            n if n < FAULT_PERCENT => {
                self.met.requests_lost.fetch_add(1, Ordering::Relaxed);
                Fate::RequestLost
            }
            n if n < 2 * FAULT_PERCENT => {
                self.met.answers_lost.fetch_add(1, Ordering::Relaxed);
                Fate::AnswerLost
            }
            n if n < 3 * FAULT_PERCENT => {
                self.met.late.fetch_add(1, Ordering::Relaxed);
                Fate::Late(Duration::from_millis(rng.random_range(LATE_MS)))
            }
            _ => Fate::Carried,
        };
        (fate, rng.random())
    }

    async fn forward(
        &self,
        path: &str,
        headers: &HeaderMap,
        body: Bytes,
    ) -> anyhow::Result<Answer> {
        let mut request = Request::post(format!("http://{}{path}", self.emulator));
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let answered = self.client.request(request.body(Full::new(body))?).await;
        let (parts, body) = answered
            .context("the emulator does not answer")?
            .into_parts();
        let body = body.collect().await?;
        let trailers = body.trailers().cloned().unwrap_or_default();
        Ok(Answer {
            headers: parts.headers,
            body: body.to_bytes(),
            trailers,
        })
    }
}

// === impl Answer ===

impl Answer {
    fn unavailable() -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(
            "content-type",
            "application/grpc".parse().expect("a header"),
        );
        headers.insert("grpc-status", UNAVAILABLE.parse().expect("a header"));
        Self {
            headers,
            body: Bytes::new(),
            trailers: HeaderMap::new(),
        }
    }

    fn is_refused(&self) -> bool {
        let status = self
            .headers
            .get("grpc-status")
            .or_else(|| self.trailers.get("grpc-status"));
        status.is_some_and(|status| status != "0")
    }

    fn response(self) -> anyhow::Result<Response<Body>> {
        let mut frames = Vec::new();
        if !self.body.is_empty() {
            frames.push(Ok(Frame::data(self.body)));
        }
        if !self.trailers.is_empty() {
            frames.push(Ok(Frame::trailers(self.trailers)));
        }
        let mut response = Response::new(StreamBody::new(tokio_stream::iter(frames)));
        *response.headers_mut() = self.headers;
        Ok(response)
    }
}
