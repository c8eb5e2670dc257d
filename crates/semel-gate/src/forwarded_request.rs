//! What crosses to the handler: the delivery's own request, less what belongs to one connection,
//! with the names that let the handler take part.

use crate::headers::HeaderRules;
use crate::settings::Source;
use crate::trace::context::TraceContext;
use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Request};
use jiff::Timestamp;
use semel::protocol::Lease;

pub(crate) const SEMEL_KEY: HeaderName = HeaderName::from_static("semel-key");
pub(crate) const SEMEL_FENCE: HeaderName = HeaderName::from_static("semel-fence");
pub(crate) const SEMEL_ATTEMPT: HeaderName = HeaderName::from_static("semel-attempt");
pub(crate) const SEMEL_SOURCE: HeaderName = HeaderName::from_static("semel-source");
pub(crate) const SEMEL_DEADLINE: HeaderName = HeaderName::from_static("semel-deadline");
pub(crate) const SEMEL_STEPS: HeaderName = HeaderName::from_static("semel-steps");
pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
pub(crate) const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The run that a request crosses for.
#[derive(Debug)]
pub(crate) struct ForwardedRequest<'a> {
    pub(crate) lease: &'a Lease,
    pub(crate) source: Source,
    pub(crate) deadline: Timestamp,
    pub(crate) trace: &'a TraceContext,
    pub(crate) steps_url: Option<&'a str>,
    pub(crate) header_rules: &'a HeaderRules,
}

// === impl ForwardedRequest ===

impl ForwardedRequest<'_> {
    /// The request that the handler gets.
    pub(crate) fn request<B>(&self, inbound: &Request<Bytes>, body: B) -> Request<B> {
        let mut request = Request::new(body);
        *request.method_mut() = inbound.method().clone();
        *request.uri_mut() = inbound.uri().clone();
        *request.headers_mut() = self.header_rules.toward_handler(inbound.headers());
        let headers = request.headers_mut();
        let key = self.lease.key.to_string();
        set(headers, IDEMPOTENCY_KEY, &key);
        set(headers, SEMEL_KEY, &key);
        set(headers, SEMEL_FENCE, &self.lease.fence.to_string());
        set(headers, SEMEL_ATTEMPT, &self.lease.attempt.to_string());
        set(headers, SEMEL_SOURCE, self.source.word());
        set(headers, SEMEL_DEADLINE, &format!("{:.3}", self.deadline));
        set(headers, TRACEPARENT, &self.trace.to_string());
        // What is beside another trace says nothing of this one.
        headers.remove(TRACESTATE);
        if let Some(state) = &self.trace.state {
            set(headers, TRACESTATE, state);
        }
        if let Some(base) = self.steps_url {
            set(
                headers,
                SEMEL_STEPS,
                &format!("{base}/steps/{}", self.lease.owner),
            );
        }
        request
    }
}

fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    let value = HeaderValue::from_str(value).expect("our own values are visible ASCII");
    headers.insert(name, value);
}
