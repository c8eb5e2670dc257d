//! Accepting connections, and coming to an orderly end.

use super::browser;
use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::response::Response;
use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

/// How long a client may take to send the head of a request.
const HEAD_WITHIN: Duration = Duration::from_secs(10);

/// A pause after `accept` failed, mostly for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How many calls one connection may have open; Google's clients share one for all.
const STREAMS_MAX: u32 = 1024;

/// How much may be on its way to us before it is read, by call and by connection.
const STREAM_WINDOW_BYTES: u32 = 1024 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 8 * 1024 * 1024;

/// Those who are connected.
#[derive(Debug, Default)]
struct Connected {
    tasks: TaskTracker,
    /// Cuts everybody off.
    over: CancellationToken,
    /// Nobody else can connect than this machine.
    loopback_only: bool,
}

/// Serves until `stop` resolves; then everybody has `grace` to finish.
pub(super) async fn serve(
    listener: TcpListener,
    router: Router,
    stop: impl Future<Output = ()>,
    grace: Duration,
) {
    let address = listener.local_addr();
    let connected = Connected {
        loopback_only: address.is_ok_and(|it| it.ip().to_canonical().is_loopback()),
        ..Connected::default()
    };
    let graceful = GracefulShutdown::new();
    tokio::select! {
        () = accept(&listener, &router, &connected, &graceful) => {}
        () = stop => {}
    }
    drop(listener);
    if tokio::time::timeout(grace, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::info!("requests and streams were cut off");
    }
    connected.over.cancel();
    connected.tasks.close();
    connected.tasks.wait().await;
}

async fn accept(
    listener: &TcpListener,
    router: &Router,
    connected: &Connected,
    graceful: &GracefulShutdown,
) {
    let builder = builder();
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let router = router.clone();
                spawn(&builder, stream, peer, router, connected, graceful);
            }
            Err(error) => {
                tracing::warn!(%error, "a connection was not accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES);
    builder
}

fn spawn(
    builder: &Builder<TokioExecutor>,
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    connected: &Connected,
    graceful: &GracefulShutdown,
) {
    // A small answer must not wait for the next one.
    drop(stream.set_nodelay(true));
    let loopback_only = connected.loopback_only;
    let service = service_fn(move |mut request: Request<Incoming>| {
        // The page tells people apart by where they sit.
        request.extensions_mut().insert(ConnectInfo(peer));
        answer(router.clone(), loopback_only, request)
    });
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    let watched = graceful.watch(connection.into_owned());
    let over = connected.over.clone();
    connected.tasks.spawn(async move {
        let ended = tokio::select! {
            ended = watched => ended,
            () = over.cancelled() => Ok(()),
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection ended early");
        }
    });
}

async fn answer(
    router: Router,
    loopback_only: bool,
    request: Request<Incoming>,
) -> Result<Response, Infallible> {
    if let Some(refused) = browser::refused(&request, loopback_only) {
        return Ok(refused);
    }
    router.oneshot(request.map(Body::new)).await
}
