//! The smallest HTTP client: one request, one connection, nothing kept and nothing sent twice.

use bytes::Bytes;
use http::{HeaderMap, Method};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// No answer is awaited longer, unless a request says so: longer than any gate lets a client wait.
const ANSWER_WITHIN: Duration = Duration::from_secs(40);

/// A request to a port of 127.0.0.1.
#[derive(Clone, Debug)]
pub struct Request {
    method: Method,
    path: String,
    headers: Vec<(String, String)>,
    /// Its body.
    pub body: Bytes,
    within: Duration,
}

/// An answer, read whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its status code.
    pub status: u16,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body as text; bytes that are not UTF-8 are replaced.
    pub body: String,
}

/// The head of an answer; its body comes with the connection it is read from, which is closed when this is dropped.
#[derive(Debug)]
pub struct Head {
    /// Its status code.
    pub status: u16,
    response: http::Response<Incoming>,
    driver: Driver,
}

/// Why no answer came.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// Nobody listened: nothing was sent.
    #[error("nobody listened")]
    Refused,
    /// The request may or may not have been heard.
    #[error("no whole answer: {0}")]
    Broken(String),
}

/// Drives a connection; dropped, it closes it.
#[derive(Debug)]
struct Driver(JoinHandle<()>);

// === impl Request ===

impl Request {
    /// A GET of this path.
    pub fn get(path: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            path: path.into(),
            headers: Vec::new(),
            body: Bytes::new(),
            within: ANSWER_WITHIN,
        }
    }

    /// A POST of this body.
    pub fn post(path: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self {
            method: Method::POST,
            body: body.into(),
            ..Self::get(path)
        }
    }

    /// A POST of JSON.
    pub fn post_json(path: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self::post(path, body).header("content-type", "application/json")
    }

    /// The same with another method.
    #[must_use]
    pub fn method(self, method: Method) -> Self {
        Self { method, ..self }
    }

    /// The same to another path.
    #[must_use]
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    /// The same with one more header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The same, with this much time for the whole answer.
    #[must_use]
    pub fn within(self, within: Duration) -> Self {
        Self { within, ..self }
    }

    /// Sends it once, and reads the whole answer.
    ///
    /// # Errors
    /// When no whole answer came in time.
    pub async fn send(&self, port: u16) -> Result<Answer, NoAnswer> {
        let whole = async { send(loopback(port), self.build(port)?).await?.whole().await };
        timeout(self.within, whole).await.map_err(broken)?
    }

    /// The same, for a thread that has no runtime.
    ///
    /// # Errors
    /// When no whole answer came in time.
    pub fn send_blocking(&self, port: u16) -> Result<Answer, NoAnswer> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(broken)?;
        runtime.block_on(self.send(port))
    }

    fn build(&self, port: u16) -> Result<http::Request<Full<Bytes>>, NoAnswer> {
        let mut request = http::Request::builder()
            .method(self.method.clone())
            .uri(&self.path)
            .header("host", loopback(port).to_string())
            .header("connection", "close");
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let body = Full::new(self.body.clone());
        request.body(body).map_err(broken)
    }
}

// === impl Answer ===

impl Answer {
    /// The value of a header, if there is one and it is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

// === impl Head ===

impl Head {
    /// The whole body.
    ///
    /// # Errors
    /// When the connection breaks before.
    pub async fn body(self) -> Result<Bytes, NoAnswer> {
        let body = self.response.into_body().collect().await;
        drop(self.driver);
        Ok(body.map_err(broken)?.to_bytes())
    }

    async fn whole(self) -> Result<Answer, NoAnswer> {
        let (status, headers) = (self.status, self.response.headers().clone());
        let body = self.body().await?;
        Ok(Answer {
            status,
            headers,
            body: String::from_utf8_lossy(&body).into_owned(),
        })
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Sends a request as it is, and waits for the head of its answer.
///
/// # Errors
/// When nobody listens, or the connection breaks first.
pub async fn send(to: SocketAddr, request: http::Request<Full<Bytes>>) -> Result<Head, NoAnswer> {
    let connected = TcpStream::connect(to).await;
    let stream = connected.map_err(|_| NoAnswer::Refused)?;
    let shaken = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = shaken.map_err(broken)?;
    let driver = Driver(tokio::spawn(async move {
        // Its error is the sender's, too.
        connection.await.ok();
    }));
    let response = sender.send_request(request).await.map_err(broken)?;
    Ok(Head {
        status: response.status().as_u16(),
        response,
        driver,
    })
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

fn broken(why: impl std::fmt::Display) -> NoAnswer {
    NoAnswer::Broken(why.to_string())
}
