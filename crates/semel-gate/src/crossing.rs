//! What crosses to the handler: the delivery's own request, less what belongs to one connection,
//! with the names that let the handler take part.

use crate::delivery::{Arrived, Delivery, Transport};
use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, Request};
use jiff::Timestamp;
use semel::record::Lease;

pub(crate) const SEMEL_KEY: HeaderName = HeaderName::from_static("semel-key");
pub(crate) const SEMEL_FENCE: HeaderName = HeaderName::from_static("semel-fence");
pub(crate) const SEMEL_ATTEMPT: HeaderName = HeaderName::from_static("semel-attempt");
pub(crate) const SEMEL_SOURCE: HeaderName = HeaderName::from_static("semel-source");
pub(crate) const SEMEL_DEADLINE: HeaderName = HeaderName::from_static("semel-deadline");
pub(crate) const SEMEL_STEPS: HeaderName = HeaderName::from_static("semel-steps");
pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Headers that belong to one connection, or to how a body was framed on it.
const HOP_BY_HOP: [HeaderName; 11] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::EXPECT,
    header::CONTENT_LENGTH,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// The run that a request crosses for.
#[derive(Debug)]
pub(crate) struct Crossing<'a> {
    pub(crate) lease: &'a Lease,
    pub(crate) delivery: &'a Delivery,
    pub(crate) deadline: Timestamp,
    pub(crate) traceparent: &'a str,
    pub(crate) steps_url: Option<&'a str>,
}

// === impl Crossing ===

impl Crossing<'_> {
    /// The request that the handler gets.
    pub(crate) fn request<B>(&self, arrived: &Arrived, body: B) -> Request<B> {
        let mut request = Request::new(body);
        *request.method_mut() = arrived.method.clone();
        *request.uri_mut() = arrived.uri.clone();
        *request.headers_mut() = end_to_end(&arrived.headers);
        let headers = request.headers_mut();
        let key = self.lease.key.to_string();
        set(headers, IDEMPOTENCY_KEY, &key);
        set(headers, SEMEL_KEY, &key);
        set(headers, SEMEL_FENCE, &self.lease.fence.to_string());
        set(headers, SEMEL_ATTEMPT, &self.lease.attempt.to_string());
        set(headers, SEMEL_SOURCE, self.delivery.source.word());
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

/// The headers of a message that are meant for its far end; ours are set by nobody but us.
pub(crate) fn end_to_end(headers: &HeaderMap) -> HeaderMap {
    let listed = named_by_connection(headers);
    let mut kept = HeaderMap::with_capacity(headers.len() + 8);
    for (name, value) in headers {
        let dropped = HOP_BY_HOP.contains(name)
            || name.as_str().starts_with("semel-")
            || listed.contains(name);
        if !dropped {
            kept.append(name.clone(), value.clone());
        }
    }
    kept
}

/// `Connection: close, X-Secret` makes `X-Secret` hop-by-hop, too.
fn named_by_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect()
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

fn new_traceparent() -> String {
    let (trace, span): (u128, u64) = (rand::random(), rand::random());
    format!("00-{:032x}-{:016x}-01", trace.max(1), span.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_meant_for_the_far_end_crosses() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Secret"),
            ("x-secret", "1"),
            ("transfer-encoding", "chunked"),
            ("content-length", "3"),
            ("semel-fence", "99"),
            ("upgrade", "h2c"),
            ("x-order", "7"),
            ("x-order", "8"),
            ("authorization", "Bearer t"),
        ] {
            headers.append(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            );
        }
        let kept = end_to_end(&headers);
        let names: Vec<_> = kept.keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["x-order", "authorization"]);
        assert_eq!(kept.get_all("x-order").iter().count(), 2);
    }

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
