//! The handler that everybody stands before: a process of its own that reads a request, counts it, and answers.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
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
use semel_tls::{Alpn, IdentityFiles, ServerIdentity};
use testbed::Certificate;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::disk;
use crate::running::{Ready, Running, ask};

/// Where the handler listens.
#[derive(Debug, clap::Args)]
pub(crate) struct UpstreamArgs {
    /// A port of 127.0.0.1.
    #[arg(long)]
    port: u16,
    /// Another port of 127.0.0.1, where it speaks TLS.
    #[arg(long, requires = "certificate")]
    tls_port: Option<u16>,
    /// The certificate that it shows there.
    #[arg(long, value_name = "PATH", requires = "key")]
    certificate: Option<PathBuf>,
    /// Its key.
    #[arg(long, value_name = "PATH")]
    key: Option<PathBuf>,
}

/// The handler, running.
#[derive(Debug)]
pub(crate) struct Upstream {
    running: Running,
    tls: Option<TlsPort>,
}

/// Where the handler speaks TLS, and whom to believe that it is the handler.
#[derive(Debug)]
struct TlsPort {
    port: u16,
    root: PathBuf,
}

const ANSWER: &str = r#"{"order":"ord_20261116_000042","status":"paid"}"#;

/// How many requests were answered; asking is not counted.
const COUNT_PATH: &str = "/count";

// === impl Upstream ===

impl Upstream {
    pub(crate) async fn start() -> anyhow::Result<Self> {
        Ok(Self {
            running: Self::run(&[]).await?,
            tls: None,
        })
    }

    /// The same, which speaks TLS at a second port and shows this certificate there.
    pub(crate) async fn start_with_tls(
        certificate: &Certificate,
        root: PathBuf,
    ) -> anyhow::Result<Self> {
        let port = testbed::free_port()?;
        let Certificate { certificate, key } = certificate;
        let flags = [
            format!("--tls-port={port}"),
            format!("--certificate={}", certificate.display()),
            format!("--key={}", key.display()),
        ];
        Ok(Self {
            running: Self::run(&flags).await?,
            tls: Some(TlsPort { port, root }),
        })
    }

    async fn run(flags: &[String]) -> anyhow::Result<Running> {
        let port = testbed::free_port()?;
        let program = std::env::current_exe().context("cannot tell where this program is")?;
        let mut command = Command::new(program);
        command
            .env_clear()
            .args(["upstream", "--port"])
            .arg(port.to_string())
            .args(flags);
        let (dir, ready) = (disk::directory()?, ready_through(port));
        Running::start("the handler", dir, &mut command, port, ready).await
    }

    pub(crate) const fn port(&self) -> u16 {
        self.running.port
    }

    /// The line of a gate's configuration that names it.
    pub(crate) fn base(&self) -> String {
        format!("upstream = \"http://127.0.0.1:{}\"", self.port())
    }

    /// The lines that name its port with TLS.
    pub(crate) fn base_with_tls(&self) -> anyhow::Result<String> {
        let TlsPort { port, root } = self.tls.as_ref().context("this handler has no TLS")?;
        let root = root.display();
        Ok(format!(
            "upstream = \"https://localhost:{port}\"\nupstream_ca = \"{root}\""
        ))
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
    let count = Arc::new(AtomicU64::new(0));
    if let Some((port, acceptor)) = args.tls()? {
        let (listener, count) = (listen(port).await?, Arc::clone(&count));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, count) = (acceptor.clone(), Arc::clone(&count));
                tokio::spawn(async move {
                    stream.set_nodelay(true).ok();
                    if let Ok(stream) = acceptor.accept(stream).await {
                        converse(stream, count).await;
                    }
                });
            }
        });
    }
    let listener = listen(args.port).await?;
    loop {
        let (stream, _) = listener.accept().await.context("cannot accept")?;
        stream.set_nodelay(true)?;
        tokio::spawn(converse(stream, Arc::clone(&count)));
    }
}

async fn listen(port: u16) -> anyhow::Result<TcpListener> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    TcpListener::bind(address).await.context("cannot listen")
}

async fn converse<S>(stream: S, count: Arc<AtomicU64>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request| answer(Arc::clone(&count), request));
    let served = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    // A client that hangs up does not concern us.
    served.await.ok();
}

// === impl UpstreamArgs ===

impl UpstreamArgs {
    fn tls(&self) -> anyhow::Result<Option<(u16, TlsAcceptor)>> {
        let (Some(port), Some(certificate), Some(key)) =
            (self.tls_port, self.certificate.clone(), self.key.clone())
        else {
            return Ok(None);
        };
        let identity = Arc::new(ServerIdentity::read(IdentityFiles { certificate, key })?);
        let config = identity.server_config(Alpn::Http1);
        Ok(Some((port, TlsAcceptor::from(Arc::new(config)))))
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
