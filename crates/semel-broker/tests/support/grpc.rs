//! gRPC without a client's types: what was asked is bytes.

use super::Broker;
use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

/// The code and the message of a call's status, from the head or the tail of its answer.
pub(crate) async fn by_grpc(broker: &Broker, method: &str, message: &[u8]) -> (String, String) {
    let stream = TcpStream::connect(broker.address).await.unwrap();
    let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.unwrap();
    tokio::spawn(connection);
    let mut framed = vec![0];
    framed.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
    framed.extend(message);
    let request = Request::post(format!("http://{}{method}", broker.address))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Full::<Bytes>::from(framed));
    let answer = sender.send_request(request.unwrap()).await.unwrap();
    let status = |headers: &HeaderMap| {
        let text = |name: &str| Some(headers.get(name)?.to_str().unwrap().to_owned());
        Some((
            text("grpc-status")?,
            text("grpc-message").unwrap_or_default(),
        ))
    };
    let head = status(answer.headers());
    let tail = answer.into_body().collect().await.unwrap();
    head.or_else(|| tail.trailers().and_then(status)).unwrap()
}
