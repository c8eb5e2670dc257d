//! Sending spans by the OpenTelemetry protocol, over gRPC or HTTP. The only file that knows its crates.

use super::context::TraceContext;
use super::exporting::Stop;
use super::span::{Attributes, Span, SpanKind, Value};
use super::tracer::{LostSpans, Tracer};
use crate::metrics::spans::{LostReason, SpanMetrics};
use crate::settings::{Otlp, OtlpProtocol};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use jiff::Timestamp;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value as ProtoValue;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{self as proto, ResourceSpans, ScopeSpans, span};
use prost::Message;
use semel_tls::{FileError, client_config};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tonic::metadata::MetadataMap;

/// The semantic conventions that the attributes follow.
const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.44.0";

/// The pause before a batch is sent again; it doubles with each try.
const PAUSE_FIRST: Duration = Duration::from_secs(1);

/// What a receiver says is a few bytes.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// A parent that is known to be another process's.
const FLAG_HAS_REMOTE: u32 = 0x100;
const FLAG_IS_REMOTE: u32 = 0x200;

/// Sends spans in batches.
#[derive(Debug)]
pub(crate) struct Exporter {
    settings: Otlp,
    client: OtlpClient,
    resource: Resource,
    spans: mpsc::Receiver<Span>,
    lost: LostSpans,
}

#[derive(Debug)]
enum OtlpClient {
    Grpc(TraceServiceClient<HttpClient<tonic::body::Body>>),
    Http(HttpClient<Full<Bytes>>),
}

type HttpClient<B> = Client<HttpsConnector<HttpConnector>, B>;

/// Why a batch was not taken.
#[derive(Debug)]
struct NotTaken {
    why: String,
    /// Whether it may be sent again, and when at the earliest.
    again: Option<Duration>,
}

/// Begins to take spans for this receiver. A certificate that cannot be read keeps no gate from starting.
pub(crate) fn begin(settings: &Otlp, metrics: &SpanMetrics) -> Option<(Tracer, Exporter)> {
    let (tracer, spans) = Tracer::new(settings, metrics.clone());
    match Exporter::new(settings, spans, tracer.lost().clone()) {
        Ok(exporter) => Some((tracer, exporter)),
        Err(error) => {
            tracing::warn!(%error, "no spans are sent");
            None
        }
    }
}

// === impl Exporter ===

impl Exporter {
    fn new(
        settings: &Otlp,
        spans: mpsc::Receiver<Span>,
        lost: LostSpans,
    ) -> Result<Self, FileError> {
        let tls = client_config(&settings.verify(), settings.identity.as_ref())?;
        let builder = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http();
        let mut http = Client::builder(TokioExecutor::new());
        let client = match settings.protocol {
            OtlpProtocol::Grpc => {
                let connector = builder.enable_http2().build();
                let client = http.http2_only(true).build(connector);
                let endpoint = settings.endpoint.clone();
                OtlpClient::Grpc(TraceServiceClient::with_origin(client, endpoint))
            }
            OtlpProtocol::HttpProtobuf => {
                OtlpClient::Http(http.build(builder.enable_http1().build()))
            }
        };
        let pairs = settings.resource.iter();
        let attributes =
            pairs.map(|(name, text)| pair(name, ProtoValue::StringValue(text.clone())));
        let resource = Resource {
            attributes: attributes.collect(),
            ..Resource::default()
        };
        Ok(Self {
            settings: settings.clone(),
            client,
            resource,
            spans,
            lost,
        })
    }

    /// Sends until it is told to stop.
    pub(crate) async fn run(mut self, stop: Stop) {
        while let Some(batch) = self.gather(&stop).await {
            let count = batch.len();
            tokio::select! {
                sent = self.send_within(batch, &stop) => self.count(count, sent),
                () = stop.now.cancelled() => {
                    let left = count + self.spans.len();
                    return self.lost.add(left, LostReason::Stopped, "the gate's grace was over");
                }
            }
        }
    }

    fn count(&self, count: usize, sent: Result<usize, NotTaken>) {
        match sent {
            Ok(rejected) => {
                self.lost.sent(count.saturating_sub(rejected));
                if rejected > 0 {
                    let why = "the receiver says that it rejected them";
                    self.lost.add(rejected, LostReason::NotTaken, why);
                }
            }
            Err(not_taken) => self.lost.add(count, LostReason::NotTaken, &not_taken.why),
        }
    }

    /// The next batch, when it is full or one of its spans has waited long enough; `None` at the end.
    async fn gather(&mut self, stop: &Stop) -> Option<Vec<Span>> {
        let mut batch = Vec::new();
        let mut due = None;
        while batch.len() < self.settings.batch.batch_max {
            let overdue = async {
                match due {
                    Some(due) => sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                span = self.spans.recv() => match span {
                    Some(span) => {
                        batch.push(span);
                        due.get_or_insert_with(|| Instant::now() + self.settings.batch.delay);
                    }
                    None => break,
                },
                () = overdue => break,
                // What is queued is still to be had.
                () = stop.soon.cancelled(), if !self.spans.is_closed() => self.spans.close(),
            }
        }
        (!batch.is_empty()).then_some(batch)
    }

    /// Sends a batch in the time it has; how many spans were rejected.
    async fn send_within(&self, batch: Vec<Span>, stop: &Stop) -> Result<usize, NotTaken> {
        let within = self.settings.batch.send_within;
        let late = |_| NotTaken::for_now(format!("not sent within {within:?}"));
        let ends = Instant::now() + within;
        let sent = timeout_at(ends, self.send(self.request(batch), ends, stop));
        sent.await.map_err(late)?
    }

    /// Sends a batch, again and again if the receiver allows it and there is time.
    async fn send(
        &self,
        request: ExportTraceServiceRequest,
        ends: Instant,
        stop: &Stop,
    ) -> Result<usize, NotTaken> {
        let mut pause = PAUSE_FIRST;
        loop {
            let tried = timeout(
                self.settings.timeout,
                self.client.send(&self.settings, &request),
            );
            let not_taken = match tried.await {
                Ok(Ok(response)) => return Ok(rejected(&response)),
                Ok(Err(not_taken)) => not_taken,
                Err(_) => {
                    NotTaken::for_now(format!("no answer within {:?}", self.settings.timeout))
                }
            };
            let Some(at_least) = not_taken.again.filter(|_| !stop.soon.is_cancelled()) else {
                return Err(not_taken);
            };
            let next = Instant::now() + pause.max(at_least);
            if next >= ends {
                return Err(not_taken);
            }
            tokio::select! {
                () = sleep_until(next) => pause *= 2,
                () = stop.soon.cancelled() => {}
            }
        }
    }

    fn request(&self, batch: Vec<Span>) -> ExportTraceServiceRequest {
        let scope_spans = ScopeSpans {
            scope: Some(InstrumentationScope {
                name: env!("CARGO_PKG_NAME").into(),
                version: env!("CARGO_PKG_VERSION").into(),
                ..InstrumentationScope::default()
            }),
            spans: batch.into_iter().map(proto_span).collect(),
            schema_url: SCHEMA_URL.into(),
        };
        ExportTraceServiceRequest {
            resource_spans: vec![ResourceSpans {
                resource: Some(self.resource.clone()),
                scope_spans: vec![scope_spans],
                schema_url: SCHEMA_URL.into(),
            }],
        }
    }
}

// === impl OtlpClient ===

impl OtlpClient {
    async fn send(
        &self,
        settings: &Otlp,
        request: &ExportTraceServiceRequest,
    ) -> Result<ExportTraceServiceResponse, NotTaken> {
        match self {
            Self::Grpc(client) => {
                let mut request = tonic::Request::new(request.clone());
                *request.metadata_mut() = MetadataMap::from_headers(settings.headers.clone());
                let answer = client.clone().export(request).await;
                Ok(answer.map_err(|status| NotTaken::by(&status))?.into_inner())
            }
            Self::Http(client) => post(client, settings, request.encode_to_vec().into()).await,
        }
    }
}

async fn post(
    client: &HttpClient<Full<Bytes>>,
    settings: &Otlp,
    body: Bytes,
) -> Result<ExportTraceServiceResponse, NotTaken> {
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = http::Method::POST;
    *request.uri_mut() = settings.endpoint.clone();
    let headers = request.headers_mut();
    headers.insert(USER_AGENT, HeaderValue::from_static("semel"));
    headers.extend(settings.headers.clone());
    let protobuf = HeaderValue::from_static("application/x-protobuf");
    headers.insert(CONTENT_TYPE, protobuf);
    let answer = client.request(request).await;
    let answer = answer.map_err(|error| NotTaken::for_now(told(&error)))?;
    let (parts, body) = answer.into_parts();
    let again = match parts.status {
        status if status.is_success() => {
            let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
            let body = body
                .map(http_body_util::Collected::to_bytes)
                .unwrap_or_default();
            return Ok(ExportTraceServiceResponse::decode(body).unwrap_or_default());
        }
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => Some(retry_after(&parts.headers)),
        _ => None,
    };
    let why = format!("the receiver answered {}", parts.status);
    Err(NotTaken { why, again })
}

fn retry_after(headers: &HeaderMap) -> Duration {
    let seconds = headers
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok());
    let seconds = seconds.and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(seconds.unwrap_or_default())
}

/// The cause says more than the library's own words.
fn told(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {}", told(cause)),
        None => error.to_string(),
    }
}

// === impl NotTaken ===

impl NotTaken {
    /// What may go better the next time.
    const fn for_now(why: String) -> Self {
        Self {
            why,
            again: Some(Duration::ZERO),
        }
    }

    /// The specification says which may be sent again.
    fn by(status: &tonic::Status) -> Self {
        use tonic::Code;
        // The connection is the cause, not an answer.
        if let Some(cause) = std::error::Error::source(status) {
            return Self::for_now(told(cause));
        }
        let again = match status.code() {
            Code::Cancelled
            | Code::DeadlineExceeded
            | Code::Aborted
            | Code::OutOfRange
            | Code::Unavailable
            | Code::DataLoss => Some(Duration::ZERO),
            Code::Ok
            | Code::Unknown
            | Code::InvalidArgument
            | Code::NotFound
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::ResourceExhausted
            | Code::FailedPrecondition
            | Code::Unimplemented
            | Code::Internal
            | Code::Unauthenticated => None,
        };
        let (code, says) = (status.code(), status.message());
        Self {
            why: format!("the receiver answered {code:?}: {says}"),
            again,
        }
    }
}

fn rejected(response: &ExportTraceServiceResponse) -> usize {
    let partial = response.partial_success.as_ref();
    partial.map_or(0, |partial| partial.rejected_spans.try_into().unwrap_or(0))
}

fn proto_span(span: Span) -> proto::Span {
    let parent = span.parent;
    let remote = match parent {
        Some(parent) if parent.is_remote => FLAG_HAS_REMOTE | FLAG_IS_REMOTE,
        Some(_) => FLAG_HAS_REMOTE,
        None => 0,
    };
    let status = span.error.map(|_| proto::Status {
        code: proto::status::StatusCode::Error.into(),
        ..proto::Status::default()
    });
    proto::Span {
        trace_id: span.context.trace_id.to_be_bytes().into(),
        span_id: span.context.span_id.to_be_bytes().into(),
        trace_state: span.context.state.unwrap_or_default(),
        parent_span_id: parent.map_or_else(Vec::new, |it| it.span_id.to_be_bytes().into()),
        flags: u32::from(span.context.flags) | remote,
        name: span.name.into_owned(),
        kind: proto_kind(span.kind).into(),
        start_time_unix_nano: nanos(span.begun),
        end_time_unix_nano: nanos(span.ended),
        attributes: proto_attributes(span.attributes),
        links: span.links.into_iter().map(proto_link).collect(),
        status,
        ..proto::Span::default()
    }
}

const fn proto_kind(kind: SpanKind) -> span::SpanKind {
    match kind {
        SpanKind::Internal => span::SpanKind::Internal,
        SpanKind::Server => span::SpanKind::Server,
        SpanKind::Client => span::SpanKind::Client,
        SpanKind::Consumer => span::SpanKind::Consumer,
    }
}

fn proto_link(context: TraceContext) -> span::Link {
    span::Link {
        trace_id: context.trace_id.to_be_bytes().into(),
        span_id: context.span_id.to_be_bytes().into(),
        trace_state: context.state.unwrap_or_default(),
        flags: u32::from(context.flags),
        ..span::Link::default()
    }
}

fn proto_attributes(attributes: Attributes) -> Vec<KeyValue> {
    let proto = |value| match value {
        Value::Text(text) => ProtoValue::StringValue(text.into_owned()),
        Value::Count(count) => ProtoValue::IntValue(count),
    };
    let pairs = attributes.0.into_iter();
    pairs
        .map(|(name, value)| pair(name, proto(value)))
        .collect()
}

fn pair(name: &str, value: ProtoValue) -> KeyValue {
    KeyValue {
        key: name.into(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

fn nanos(at: Timestamp) -> u64 {
    at.as_nanosecond().try_into().unwrap_or_default()
}
