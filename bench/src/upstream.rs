//! The handler that everybody stands before: a process of its own that reads a request, counts it, and answers.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use crate::disk;
use crate::running::{Ready, Running, ask};

/// Where the handler listens.
#[derive(Debug, clap::Args)]
pub(crate) struct UpstreamArgs {
    /// A port of 127.0.0.1.
    #[arg(long)]
    port: u16,
}

/// The handler, running.
#[derive(Debug)]
pub(crate) struct Upstream(Running);

const ANSWER: &str = r#"{"order":"ord_20261116_000042","status":"paid"}"#;

/// How many requests were answered; asking is not counted.
const COUNT_PATH: &str = "/count";

// === impl Upstream ===

impl Upstream {
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let port = testbed::free_port()?;
        let program = std::env::current_exe().context("cannot tell where this program is")?;
        let mut command = Command::new(program);
        command
            .env_clear()
            .args(["upstream", "--port"])
            .arg(port.to_string());
        let (dir, ready) = (disk::directory()?, ready_through(port));
        let running = Running::start("the handler", dir, &mut command, port, ready).await?;
        Ok(Self(running))
    }

    pub(crate) const fn port(&self) -> u16 {
        self.0.port
    }

    /// How many requests it has answered so far.
    pub(crate) async fn count(&self) -> anyhow::Result<u64> {
        let count = ask(ready_through(self.port())).await?;
        count.parse().context("the handler told no number")
    }
}

/// The handler is ready when it tells its count through this port.
pub(crate) fn ready_through(port: u16) -> Ready {
    Ready {
        port,
        path: COUNT_PATH,
    }
}

/// Answers until it is ended.
pub(crate) async fn serve(args: &UpstreamArgs) -> anyhow::Result<String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
    let listener = TcpListener::bind(address).await.context("cannot listen")?;
    let count = Arc::new(AtomicU64::new(0));
    loop {
        let (stream, _) = listener.accept().await.context("cannot accept")?;
        stream.set_nodelay(true)?;
        let count = Arc::clone(&count);
        let service = service_fn(move |request| answer(Arc::clone(&count), request));
        tokio::spawn(async move {
            let served = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            // A client that hangs up does not concern us.
            served.await.ok();
        });
    }
}

async fn answer(
    count: Arc<AtomicU64>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.method() == Method::GET {
        let told = count.load(Ordering::Relaxed).to_string();
        return Ok(Response::new(Full::from(told)));
    }
    // A body that broke off is answered to nobody.
    request.into_body().collect().await.ok();
    count.fetch_add(1, Ordering::Relaxed);
    let mut response = Response::new(Full::from(ANSWER));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    Ok(response)
}
