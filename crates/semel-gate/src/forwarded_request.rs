//! What crosses to the handler: the delivery's own request, less what belongs to one connection,
//! with the names that let the handler take part.

use crate::delivery::Transport;
use crate::headers::HeaderRules;
use crate::settings::Source;
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

/// The run that a request crosses for.
#[derive(Debug)]
pub(crate) struct ForwardedRequest<'a> {
    pub(crate) lease: &'a Lease,
    pub(crate) source: Source,
    pub(crate) deadline: Timestamp,
    pub(crate) traceparent: &'a str,
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
        set(headers, TRACEPARENT, self.traceparent);
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

/// The trace of a delivery: its own, or a new one. What has not the form of a trace context may be
/// anything, and is not handed on.
pub(crate) fn traceparent(transport: &Transport) -> String {
    let own = transport.traceparent.as_deref();
    own.filter(|text| is_traceparent(text))
        .map_or_else(new_traceparent, str::to_owned)
}

/// `00-` trace id `-` span id `-` flags, in lower-case hex digits.
fn is_traceparent(text: &str) -> bool {
    let hex = |part: &str| part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let parts: Vec<_> = text.split('-').collect();
    let lengths: Vec<_> = parts.iter().map(|part| part.len()).collect();
    lengths == [2, 32, 16, 2] && parts.into_iter().all(hex)
}

#[allow(clippy::disallowed_methods, reason = "a new trace has a random id")]
fn new_traceparent() -> String {
    let (trace, span): (u128, u64) = (rand::random(), rand::random());
    format!("00-{:032x}-{:016x}-01", trace.max(1), span.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_handed_on_only_if_it_is_one() {
        let of = |text: &str| {
            traceparent(&Transport {
                traceparent: Some(text.into()),
                ..Transport::default()
            })
        };
        let own = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert_eq!(of(own), own);
        for bad in ["", "00-abc", "00-\u{e9}", &own.replace('a', "\n")] {
            let new = of(bad);
            assert!(is_traceparent(&new) && new != bad, "{bad:?} {new}");
        }
    }
}
