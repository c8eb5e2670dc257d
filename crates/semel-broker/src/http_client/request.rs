//! One request of a call: the first, or one that a redirect asked for.

use super::OutgoingRequest;
use bytes::Bytes;
use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST,
    HeaderName, LOCATION, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use http_body_util::Full;
use url::Url;

/// A request that can be sent.
#[derive(Clone, Debug)]
pub(super) struct SingleRequest {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// Headers that belong to the connection, or say where the body ends: never taken from a caller.
const OURS: [HeaderName; 5] = [CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING, UPGRADE];

// === impl SingleRequest ===

impl SingleRequest {
    pub(super) fn first(call: OutgoingRequest) -> Self {
        let mut headers = call.headers;
        for name in OURS {
            headers.remove(name);
        }
        Self {
            method: call.method,
            url: bare(call.url),
            headers,
            body: call.body,
        }
    }

    /// The request that an answer redirects to; nothing if it is not a redirect, or names no place to
    /// go to.
    pub(super) fn redirected(&self, status: StatusCode, answer: &HeaderMap) -> Option<Self> {
        let to = self.destination(status, answer)?;
        let mut next = self.clone();
        if to.origin() != self.url.origin() {
            next.headers.remove(AUTHORIZATION);
            next.headers.remove(COOKIE);
        }
        if becomes_get(&self.method, status) {
            next.method = Method::GET;
            next.body = Bytes::new();
            next.headers.remove(CONTENT_TYPE);
            next.headers.remove(CONTENT_ENCODING);
        }
        next.url = to;
        Some(next)
    }

    fn destination(&self, status: StatusCode, answer: &HeaderMap) -> Option<Url> {
        if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
            return None;
        }
        let location = answer.get(LOCATION)?.to_str().ok()?;
        let to = self.url.join(location).ok()?;
        matches!(to.scheme(), "http" | "https").then(|| bare(to))
    }

    /// The address as HTTP writes it.
    pub(super) fn uri(&self) -> Result<Uri, String> {
        let uri = self.url.as_str().parse::<Uri>();
        match self.url.scheme() {
            "http" | "https" => uri.map_err(|error| format!("{} is not a URL: {error}", self.url)),
            scheme => Err(format!("{scheme}: only http and https URLs are called")),
        }
    }

    pub(super) fn to_http(&self) -> Result<Request<Full<Bytes>>, String> {
        let mut request = Request::new(Full::new(self.body.clone()));
        *request.uri_mut() = self.uri()?;
        *request.method_mut() = self.method.clone();
        *request.headers_mut() = self.headers.clone();
        if let Some(length) = self.content_length() {
            request.headers_mut().insert(CONTENT_LENGTH, length.into());
        }
        Ok(request)
    }

    /// Everything up to the body, for a connection that is broken by hand.
    pub(super) fn head(&self) -> Vec<u8> {
        let url = &self.url;
        let path = url.path();
        let query = url.query().map_or(String::new(), |it| format!("?{it}"));
        let host = url.host_str().unwrap_or_default();
        let port = url.port().map_or(String::new(), |it| format!(":{it}"));
        let line = format!(
            "{} {path}{query} HTTP/1.1\r\nhost: {host}{port}\r\n",
            self.method
        );
        let mut head = line.into_bytes();
        for (name, value) in &self.headers {
            head.extend_from_slice(name.as_str().as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value.as_bytes());
            head.extend_from_slice(b"\r\n");
        }
        if let Some(length) = self.content_length() {
            head.extend_from_slice(format!("content-length: {length}\r\n").as_bytes());
        }
        head.extend_from_slice(b"\r\n");
        head
    }

    fn content_length(&self) -> Option<u64> {
        let may_be_empty = matches!(self.method, Method::GET | Method::HEAD | Method::DELETE)
            || self.method == Method::OPTIONS;
        (!self.body.is_empty() || !may_be_empty).then_some(self.body.len() as u64)
    }
}

/// A name and password in a URL are not a part of the request.
fn bare(mut url: Url) -> Url {
    if !url.username().is_empty() || url.password().is_some() {
        // These fail only for URLs without a host, which are refused later.
        url.set_username("").ok();
        url.set_password(None).ok();
    }
    url
}

/// Whatever the status, a POST goes on as a GET: so it was seen of the real service.
fn becomes_get(method: &Method, status: StatusCode) -> bool {
    let stays = matches!(*method, Method::GET | Method::HEAD);
    *method == Method::POST || (status == StatusCode::SEE_OTHER && !stays)
}
