//! A receiver of spans: decodes the official protobuf, over gRPC and over HTTP on one port, and shows what came.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "the command's tests use a part, and a test may fail where it stands"
)]

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tonic::body::Body;
use tonic::codegen::Service;

/// How long a span may be on its way.
const PATIENCE: Duration = Duration::from_secs(15);

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    state: Arc<ReceiverState>,
}

#[derive(Debug)]
struct ReceiverState {
    spans: watch::Sender<Vec<Received>>,
    /// How many requests came.
    asked: watch::Sender<usize>,
    moods: Mutex<Vec<Mood>>,
}

/// What it does with a request, if it does not take it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mood {
    /// Answers that it is overloaded.
    Overloaded,
    /// Answers that the request is wrong.
    Refuses,
    /// Never answers.
    Hangs,
}

/// A span, and what came with it.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) span: Span,
    pub(crate) resource: BTreeMap<String, String>,
    pub(crate) headers: HeaderMap,
}

// === impl Receiver ===

impl Receiver {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let receiver = Self {
            address: listener.local_addr().unwrap(),
            state: Arc::new(ReceiverState {
                spans: watch::Sender::default(),
                asked: watch::Sender::default(),
                moods: Mutex::default(),
            }),
        };
        tokio::spawn(accept(receiver.clone(), listener));
        receiver
    }

    /// Does this with the next request, and takes the ones after it.
    pub(crate) fn will(&self, mood: Mood) {
        self.state.moods.lock().unwrap().push(mood);
    }

    /// Waits until it was asked so often.
    pub(crate) async fn asked(&self, count: usize) {
        let mut asked = self.state.asked.subscribe();
        let often = asked.wait_for(|asked| *asked >= count);
        assert!(
            tokio::time::timeout(PATIENCE, often).await.is_ok(),
            "{count}"
        );
    }

    /// Waits for so many spans; all there are then.
    pub(crate) async fn spans(&self, count: usize) -> Vec<Received> {
        let mut spans = self.state.spans.subscribe();
        let there = spans.wait_for(|spans| spans.len() >= count);
        let waited = tokio::time::timeout(PATIENCE, there).await;
        let so_far = self.state.spans.borrow().len();
        assert!(waited.is_ok(), "only {so_far} of {count} spans came");
        self.state.spans.borrow().clone()
    }

    /// Those that are there now.
    pub(crate) fn so_far(&self) -> Vec<Received> {
        self.state.spans.borrow().clone()
    }

    fn takes(&self, request: ExportTraceServiceRequest, headers: &HeaderMap) {
        for group in request.resource_spans {
            let resource = attributes(&group.resource.unwrap().attributes);
            for scope in group.scope_spans {
                assert_eq!(scope.scope.unwrap().name, "semel-gate");
                let received = scope.spans.into_iter().map(|span| Received {
                    span,
                    resource: resource.clone(),
                    headers: headers.clone(),
                });
                self.state.spans.send_modify(|spans| spans.extend(received));
            }
        }
    }

    async fn answer(self, request: Request<Incoming>) -> Response<Body> {
        let mood = self.state.moods.lock().unwrap().pop();
        self.state.asked.send_modify(|asked| *asked += 1);
        let is_grpc = request.headers()["content-type"] == "application/grpc";
        match mood {
            Some(Mood::Hangs) => std::future::pending().await,
            Some(Mood::Overloaded) if is_grpc => tonic::Status::unavailable("busy").into_http(),
            Some(Mood::Refuses) if is_grpc => tonic::Status::invalid_argument("no").into_http(),
            Some(Mood::Overloaded) => empty(StatusCode::SERVICE_UNAVAILABLE),
            Some(Mood::Refuses) => empty(StatusCode::BAD_REQUEST),
            None if is_grpc => {
                let mut service = TraceServiceServer::new(self);
                service.call(request.map(Body::new)).await.unwrap()
            }
            None => self.posted(request).await,
        }
    }

    async fn posted(&self, request: Request<Incoming>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        if parts.uri.path() != "/v1/traces" {
            return empty(StatusCode::NOT_FOUND);
        }
        assert_eq!(parts.headers["content-type"], "application/x-protobuf");
        let body = body.collect().await.unwrap().to_bytes();
        let request = ExportTraceServiceRequest::decode(body).unwrap();
        self.takes(request, &parts.headers);
        let said = ExportTraceServiceResponse::default().encode_to_vec();
        Response::new(Body::new(Full::new(Bytes::from(said))))
    }
}

#[tonic::async_trait]
impl TraceService for Receiver {
    async fn export(
        &self,
        request: tonic::Request<ExportTraceServiceRequest>,
    ) -> Result<tonic::Response<ExportTraceServiceResponse>, tonic::Status> {
        let (metadata, _, request) = request.into_parts();
        self.takes(request, &metadata.into_headers());
        Ok(tonic::Response::new(ExportTraceServiceResponse::default()))
    }
}

fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

async fn accept(receiver: Receiver, listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        let receiver = receiver.clone();
        tokio::spawn(async move {
            let answers = service_fn(move |request| {
                let receiver = receiver.clone();
                async move { Ok::<_, Infallible>(receiver.answer(request).await) }
            });
            let server = auto::Builder::new(TokioExecutor::new());
            // A gate that went away is not a failure of the receiver.
            drop(server.serve_connection(TokioIo::new(stream), answers).await);
        });
    }
}

// === impl Received ===

impl Received {
    pub(crate) fn attributes(&self) -> BTreeMap<String, String> {
        attributes(&self.span.attributes)
    }

    /// It has these attributes.
    pub(crate) fn has(&self, expected: &[(&str, &str)]) -> &Self {
        let attributes = self.attributes();
        for (name, value) in expected {
            let found = attributes.get(*name).map(String::as_str);
            assert_eq!(found, Some(*value), "{name} in {attributes:#?}");
        }
        self
    }

    /// What went wrong, by its status and its attribute alike.
    pub(crate) fn error(&self) -> Option<String> {
        let error = self.attributes().remove("error.type");
        let is_error = self
            .span
            .status
            .as_ref()
            .is_some_and(|status| status.code == 2);
        assert_eq!(is_error, error.is_some(), "{:?}", self.span);
        error
    }

    /// Its context, as `traceparent` has it.
    pub(crate) fn context(&self) -> String {
        let flags = self.span.flags & 0xff;
        context(&self.span.trace_id, &self.span.span_id, flags)
    }

    /// Those that it links to.
    pub(crate) fn links(&self) -> Vec<String> {
        let links = self.span.links.iter();
        links
            .map(|link| context(&link.trace_id, &link.span_id, link.flags & 0xff))
            .collect()
    }
}

fn context(trace: &[u8], span: &[u8], flags: u32) -> String {
    format!(
        "00-{}-{}-{flags:02x}",
        hex::encode(trace),
        hex::encode(span)
    )
}

fn attributes(pairs: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |pair: &KeyValue| {
        let value = pair.value.clone().unwrap().value.unwrap();
        if let Value::IntValue(count) = value {
            return count.to_string();
        }
        let Value::StringValue(text) = value else {
            panic!("{value:?}")
        };
        text
    };
    pairs
        .iter()
        .map(|pair| (pair.key.clone(), text(pair)))
        .collect()
}
