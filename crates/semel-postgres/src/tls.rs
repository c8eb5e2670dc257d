//! TLS for the driver: the handshake, and what it leaves behind.

use crate::channel_binding::server_end_point;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use semel_tls::{HandshakeError, Remedies, explain, find, find_cause};
use std::convert::Infallible;
use std::error::Error as StdError;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::timeout;
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};

/// What the settings are called in a URL.
const REMEDIES: Remedies = Remedies {
    roots: "sslrootcert",
    identity: "sslcert and sslkey",
};

/// What the driver says of a server that answers `N`.
const NOT_OFFERED: &str = "server does not support TLS";

/// Makes handshakes for one attempt to connect.
#[derive(Clone)]
pub(crate) struct TlsAttempt {
    /// None where the driver is told not to ask.
    pub(crate) config: Option<Arc<ClientConfig>>,
    pub(crate) limit: Duration,
    /// Whether the server offered TLS, and a handshake was begun.
    pub(crate) begun: Arc<AtomicBool>,
}

/// One handshake.
pub(crate) struct Handshake {
    attempt: TlsAttempt,
    host: String,
}

/// A connection with TLS.
pub(crate) struct TlsSocket(Box<tokio_rustls::client::TlsStream<Socket>>);

/// What TLS says of a connection that cannot be made, if that stays so until somebody changes something.
pub(crate) fn lasting_failure(error: &tokio_postgres::Error) -> Option<String> {
    if not_offered(error) {
        return Some(
            "it does not offer TLS: switch ssl on there, or set sslmode=prefer to connect without it".into(),
        );
    }
    if let Some(failed) = handshake(error) {
        return find(failed).is_some().then(|| failed.to_string());
    }
    // In TLS 1.3 a server that dislikes our certificate says so after the handshake.
    find(error).map(|said| explain(said, "the server", REMEDIES))
}

/// Whether the server answered that it has no TLS.
pub(crate) fn not_offered(error: &tokio_postgres::Error) -> bool {
    error
        .source()
        .is_some_and(|cause| cause.to_string() == NOT_OFFERED)
}

/// Whether it was TLS that failed.
pub(crate) fn is_handshake(error: &tokio_postgres::Error) -> bool {
    handshake(error).is_some() || find(error).is_some()
}

fn handshake(error: &tokio_postgres::Error) -> Option<&HandshakeError> {
    find_cause(error)
}

// === impl TlsAttempt ===

impl TlsAttempt {
    pub(crate) fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Relaxed)
    }
}

impl MakeTlsConnect<Socket> for TlsAttempt {
    type Stream = TlsSocket;
    type TlsConnect = Handshake;
    type Error = Infallible;

    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, Infallible> {
        Ok(Handshake {
            attempt: self.clone(),
            host: host.into(),
        })
    }
}

// === impl Handshake ===

impl Handshake {
    async fn shake(&self, socket: Socket) -> io::Result<TlsSocket> {
        let config = self.attempt.config.clone();
        let config = config.ok_or_else(|| io::Error::other("TLS is switched off"))?;
        let name = ServerName::try_from(self.host.clone());
        let name = name.map_err(|_| io::Error::other("this is not the name of a host"))?;
        let shaking = tokio_rustls::TlsConnector::from(config).connect(name, socket);
        let limit = self.attempt.limit;
        let late = |_| io::Error::other(format!("it took longer than {limit:?}"));
        let stream = timeout(limit, shaking).await.map_err(late)??;
        Ok(TlsSocket(Box::new(stream)))
    }
}

impl TlsConnect<Socket> for Handshake {
    type Stream = TlsSocket;
    type Error = HandshakeError;
    type Future = Pin<Box<dyn Future<Output = Result<TlsSocket, HandshakeError>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        self.attempt.begun.store(true, Ordering::Relaxed);
        Box::pin(async move {
            let shaken = self.shake(socket).await;
            shaken.map_err(|error| HandshakeError::new(&self.host, REMEDIES, error))
        })
    }
}

// === impl TlsSocket ===

impl TlsStream for TlsSocket {
    fn channel_binding(&self) -> ChannelBinding {
        let certificates = self.0.get_ref().1.peer_certificates();
        certificates
            .and_then(|all| server_end_point(all.first()?))
            .map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}

impl AsyncRead for TlsSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for TlsSocket {
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
}
