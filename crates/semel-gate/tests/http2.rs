//! The other ends of HTTP/2 connections: handlers, and clients that hold one.

use crate::support::prelude::*;
use http_body::Body;
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::future::Future;

/// Starts a handler that speaks HTTP/2 only, and answers so; where it listens.
pub(crate) async fn handler<A, F, B>(answer: A) -> SocketAddr
where
    A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
{
    let listener = TcpListener::bind(here()).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let answer = answer.clone();
            let service = service_fn(move |request| {
                let answer = answer(request);
                async { Ok::<_, Infallible>(answer.await) }
            });
            let serve = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service);
            tokio::spawn(serve);
        }
    });
    address
}

/// One connection of a client that lets in `window` bytes of each answer.
pub(crate) async fn connect<B>(
    gate: SocketAddr,
    window: u32,
) -> (SendRequest<B>, JoinHandle<hyper::Result<()>>)
where
    B: Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Unpin,
    B: Send + 'static,
{
    let stream = TcpStream::connect(gate).await.unwrap();
    let (sender, connection) = Builder::new(TokioExecutor::new())
        .initial_stream_window_size(window)
        .handshake(TokioIo::new(stream))
        .await
        .unwrap();
    (sender, tokio::spawn(connection))
}
