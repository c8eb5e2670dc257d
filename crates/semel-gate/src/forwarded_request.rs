//! What crosses to the handler: the delivery's own request, less what belongs to one connection,
//! with the names that let the handler take part.

use crate::arrival::Arrival;
use crate::headers::HeaderRules;
use crate::naming::Identity;
use crate::settings::Source;
use crate::trace::context::TraceContext;
use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Request};
use jiff::Timestamp;
use semel::Key;
use semel::protocol::Lease;
use semel_landing::written;

pub(crate) const SEMEL_KEY: HeaderName = HeaderName::from_static("semel-key");
pub(crate) const SEMEL_FENCE: HeaderName = HeaderName::from_static("semel-fence");
pub(crate) const SEMEL_ATTEMPT: HeaderName = HeaderName::from_static("semel-attempt");
pub(crate) const SEMEL_SOURCE: HeaderName = HeaderName::from_static("semel-source");
pub(crate) const SEMEL_DEADLINE: HeaderName = HeaderName::from_static("semel-deadline");
pub(crate) const SEMEL_STEPS: HeaderName = HeaderName::from_static("semel-steps");
pub(crate) const SEMEL_FINGERPRINT: HeaderName = HeaderName::from_static("semel-fingerprint");
pub(crate) const SEMEL_MESSAGE_ID: HeaderName = HeaderName::from_static("semel-message-id");
pub(crate) const SEMEL_PUBLISHED_AT: HeaderName = HeaderName::from_static("semel-published-at");
pub(crate) const SEMEL_RECEIVED_AT: HeaderName = HeaderName::from_static("semel-received-at");
pub(crate) const SEMEL_DELIVERY: HeaderName = HeaderName::from_static("semel-delivery");
pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
pub(crate) const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The run that a request crosses for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RunContext<'a> {
    /// One that is recorded, under this lease.
    Leased(&'a Lease),
    /// One that is not: the handler is told what is known of the delivery.
    Stateless(&'a Identity, &'a Arrival),
}

/// A request that crosses to the handler.
#[derive(Debug)]
pub(crate) struct ForwardedRequest<'a> {
    pub(crate) run: RunContext<'a>,
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
        let key = self.run.key().to_string();
        set(headers, IDEMPOTENCY_KEY, &key);
        set(headers, SEMEL_KEY, &key);
        self.run.name_in(headers);
        if let (RunContext::Leased(lease), Some(base)) = (self.run, self.steps_url) {
            let url = format!("{base}/steps/{}", lease.owner);
            set(headers, SEMEL_STEPS, &url);
        }
        set(headers, SEMEL_SOURCE, self.source.word());
        set(headers, SEMEL_DEADLINE, &format!("{:.3}", self.deadline));
        set(headers, TRACEPARENT, &self.trace.to_string());
        // What is beside another trace says nothing of this one.
        headers.remove(TRACESTATE);
        if let Some(state) = &self.trace.state {
            set(headers, TRACESTATE, state);
        }
        request
    }
}

// === impl RunContext ===

impl RunContext<'_> {
    pub(crate) const fn key(&self) -> &Key {
        match self {
            Self::Leased(lease) => &lease.key,
            Self::Stateless(identity, _) => &identity.key,
        }
    }

    pub(crate) fn fence(&self) -> Option<u64> {
        match self {
            Self::Leased(lease) => Some(lease.fence.0),
            Self::Stateless(..) => None,
        }
    }

    /// Which attempt it is: of the gate's own where it counts them, otherwise of the sender's.
    pub(crate) fn attempt(&self) -> Option<u64> {
        match self {
            Self::Leased(lease) => Some(u64::from(lease.attempt)),
            Self::Stateless(_, arrival) => arrival.attempt,
        }
    }

    /// What a handler gets beside the key.
    fn name_in(&self, headers: &mut HeaderMap) {
        if let Some(attempt) = self.attempt() {
            set(headers, SEMEL_ATTEMPT, &attempt.to_string());
        }
        match self {
            Self::Leased(lease) => set(headers, SEMEL_FENCE, &lease.fence.to_string()),
            Self::Stateless(identity, arrival) => {
                set(
                    headers,
                    SEMEL_FINGERPRINT,
                    &identity.fingerprint.to_string(),
                );
                set(headers, SEMEL_PUBLISHED_AT, &written(arrival.published_at));
                set(headers, SEMEL_RECEIVED_AT, &written(arrival.received_at));
                set(headers, SEMEL_DELIVERY, &arrival.delivery_id);
                // An id is the sender's own text, and some text is no header.
                let id = arrival.message_id.as_deref().map(HeaderValue::from_str);
                if let Some(Ok(id)) = id {
                    headers.insert(SEMEL_MESSAGE_ID, id);
                }
            }
        }
    }
}

fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    let value = HeaderValue::from_str(value).expect("our own values are visible ASCII");
    headers.insert(name, value);
}
