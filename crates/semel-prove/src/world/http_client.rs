//! The smallest HTTP client: one request, one connection, nothing kept and nothing retried.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use std::net::SocketAddr;
use tokio::net::TcpStream;

/// Why no answer came.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// Nobody listened.
    Refused,
    /// The connection broke before the answer was whole.
    Broken,
}

/// The head of an answer; its body comes with the connection it is read from.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    response: http::Response<Incoming>,
    driver: Driver,
}

/// Sends a request and waits for the head of its answer.
pub(crate) async fn send(to: SocketAddr, request: Request<Full<Bytes>>) -> Result<Head, NoAnswer> {
    let stream = TcpStream::connect(to)
        .await
        .map_err(|_| NoAnswer::Refused)?;
    let broken = |_| NoAnswer::Broken;
    let io = TokioIo::new(stream);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(io)
        .await
        .map_err(broken)?;
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

/// The status that a path answers with.
pub(crate) async fn get(to: SocketAddr, path: &str) -> Result<u16, NoAnswer> {
    let request = Request::get(path)
        .header("host", to.to_string())
        .header("connection", "close")
        .body(Full::default())
        .map_err(|_| NoAnswer::Broken)?;
    let head = send(to, request).await?;
    let status = head.status;
    head.hang_up();
    Ok(status)
}

// === impl Head ===

impl Head {
    /// The whole body.
    pub(crate) async fn body(self) -> Result<Bytes, NoAnswer> {
        let body = self.response.into_body().collect().await;
        drop(self.driver);
        body.map(http_body_util::Collected::to_bytes)
            .map_err(|_| NoAnswer::Broken)
    }

    /// Closes the connection without reading on.
    pub(crate) fn hang_up(self) {
        drop(self);
    }
}

/// Drives a connection; dropped, it closes it.
#[derive(Debug)]
struct Driver(tokio::task::JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}
