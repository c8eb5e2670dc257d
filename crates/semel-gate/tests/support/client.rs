//! A client: one request on a connection of its own, and its reply.

use super::prelude::*;
use http::HeaderMap;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;

/// A request to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
    pub(crate) h2c: bool,
}

/// A whole reply.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

// === impl Ask ===

impl Ask {
    pub(crate) fn post(path: &str) -> Self {
        Self {
            method: Method::POST,
            path: path.into(),
            headers: Vec::new(),
            body: Bytes::new(),
            h2c: false,
        }
    }

    pub(crate) fn get(path: &str) -> Self {
        Self::post(path).method(Method::GET)
    }

    pub(crate) fn method(self, method: Method) -> Self {
        Self { method, ..self }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers
            .retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        self
    }

    pub(crate) fn path(self, path: &str) -> Self {
        let path = path.into();
        Self { path, ..self }
    }

    pub(crate) fn body(self, body: impl Into<Bytes>) -> Self {
        let body = body.into();
        Self { body, ..self }
    }

    pub(crate) fn h2c(self) -> Self {
        Self { h2c: true, ..self }
    }

    pub(crate) fn request(&self, address: SocketAddr) -> Request<Full<Bytes>> {
        let uri = format!("http://{address}{}", self.path);
        let mut request = Request::builder().method(self.method.clone()).uri(uri);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request.body(Full::new(self.body.clone())).unwrap()
    }

    pub(crate) async fn send(self, address: SocketAddr) -> Answer {
        within("a reply", self.send_unbounded(address)).await
    }

    /// Without a limit of its own, for tests that move time.
    pub(crate) async fn send_unbounded(self, address: SocketAddr) -> Answer {
        let client = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(0)
            .retry_canceled_requests(false)
            .http2_only(self.h2c)
            .build_http();
        let response = client.request(self.request(address)).await.unwrap();
        let (parts, body) = response.into_parts();
        Answer {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: body.collect().await.unwrap().to_bytes(),
        }
    }

    /// The request as bytes on the wire.
    pub(crate) fn raw(&self) -> Vec<u8> {
        let mut raw = format!("{} {} HTTP/1.1\r\nhost: gate\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            raw.push_str(&format!("{name}: {value}\r\n"));
        }
        raw.push_str(&format!("content-length: {}\r\n\r\n", self.body.len()));
        let mut raw = raw.into_bytes();
        raw.extend_from_slice(&self.body);
        raw
    }
}

// === impl Answer ===

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// A reply with this status that is not a replay.
    #[track_caller]
    pub(crate) fn is(&self, status: u16) -> &Self {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("idempotent-replayed"), None, "{self:?}");
        self
    }

    /// A replay with this status.
    #[track_caller]
    pub(crate) fn is_replay(&self, status: u16) -> &Self {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("idempotent-replayed"), Some("true"), "{self:?}");
        self
    }

    /// With this body.
    #[track_caller]
    pub(crate) fn says(&self, body: &str) -> &Self {
        assert_eq!(self.text(), body, "{self:?}");
        self
    }

    /// With this in its body.
    #[track_caller]
    pub(crate) fn tells(&self, part: &str) -> &Self {
        assert!(self.text().contains(part), "no {part} in {self:?}");
        self
    }

    /// With this value of a header.
    #[track_caller]
    pub(crate) fn has(&self, name: &str, value: &str) -> &Self {
        assert_eq!(self.header(name), Some(value), "{name} of {self:?}");
        self
    }

    /// Without this header.
    #[track_caller]
    pub(crate) fn lacks(&self, name: &str) -> &Self {
        assert_eq!(self.header(name), None, "{name} of {self:?}");
        self
    }

    /// A problem of this kind, in the form of RFC 9457.
    #[track_caller]
    pub(crate) fn is_problem(&self, status: u16, code: &str) -> &Self {
        assert_eq!(self.status, status, "{self:?}");
        let content_type = self.header("content-type");
        assert_eq!(content_type, Some("application/problem+json"), "{self:?}");
        let problem: serde_json::Value = serde_json::from_slice(&self.body).unwrap();
        assert_eq!(problem["type"], format!("docs/errors.md#{code}"));
        assert_eq!(problem["status"], status);
        for part in ["title", "detail"] {
            assert!(problem[part].as_str().is_some_and(|text| !text.is_empty()));
        }
        self
    }

    /// A problem of this kind that asks for a pause.
    #[track_caller]
    pub(crate) fn is_pause(&self, status: u16, code: &str) {
        self.is_problem(status, code);
        self.retry_after();
    }

    /// Whole seconds, at least one.
    #[track_caller]
    pub(crate) fn retry_after(&self) -> u64 {
        let seconds = self.header("retry-after").map(str::parse::<u64>);
        let seconds = seconds.expect("a Retry-After").expect("whole seconds");
        assert!(seconds >= 1, "{self:?}");
        seconds
    }
}
