//! Handlers behind TLS: a connection is made, checked and ready, or nothing was sent.

use super::{BoxError, CONNECT_WITHIN, HttpConnector};
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use semel_tls::{FileError, HandshakeError, Remedies, Verify, client_config};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower_service::Service;

/// What the settings are called in the configuration.
const REMEDIES: Remedies = Remedies {
    roots: "upstream_ca",
    identity: "the handler not to ask for one (the gate has none)",
};

/// Connects to handlers, with TLS.
#[derive(Clone, Debug)]
pub(super) struct HttpsConnector {
    tcp: HttpConnector,
    config: Arc<ClientConfig>,
}

/// A connection with TLS.
pub(super) struct HttpsStream(TokioIo<TlsStream<TcpStream>>);

// === impl HttpsConnector ===

impl HttpsConnector {
    /// One that checks certificates so.
    pub(super) fn new(mut tcp: HttpConnector, verify: &Verify) -> Result<Self, FileError> {
        tcp.enforce_http(false);
        let mut config = client_config(verify, None)?;
        // A handler that would rather speak HTTP/2 must not.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            tcp,
            config: Arc::new(config),
        })
    }

    async fn connect(mut self, base: Uri) -> Result<HttpsStream, BoxError> {
        let host = base.host().unwrap_or_default();
        let host = host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        let failed = |error| HandshakeError::new(&host, REMEDIES, error);
        let name = ServerName::try_from(host.clone()).map_err(io::Error::other);
        let name = name.map_err(failed)?;
        let stream = self.tcp.call(base).await?.into_inner();
        let shaken = TlsConnector::from(self.config).connect(name, stream).await;
        Ok(HttpsStream(TokioIo::new(shaken.map_err(failed)?)))
    }
}

impl Service<Uri> for HttpsConnector {
    type Response = HttpsStream;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<HttpsStream, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.tcp.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, base: Uri) -> Self::Future {
        let connecting = self.clone().connect(base);
        // A handshake that stalls is as good as a connection that does: nothing was sent.
        Box::pin(async move {
            let late = |_| {
                format!(
                    "no connection with TLS within {CONNECT_WITHIN:?}: look whether the handler speaks TLS there"
                )
            };
            timeout(CONNECT_WITHIN, connecting).await.map_err(late)?
        })
    }
}

// === impl HttpsStream ===

impl Connection for HttpsStream {
    fn connected(&self) -> Connected {
        self.0.inner().get_ref().0.connected()
    }
}

impl Read for HttpsStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl Write for HttpsStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buffer)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, buffers)
    }
}
