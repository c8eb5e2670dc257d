//! TLS towards senders: the handshake, and a certificate that is replaced while the gate serves.

use crate::settings::ListenerTls;
use semel_tls::{Alpn, FileError, ServerIdentity};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// What a listener needs to speak TLS.
#[derive(Clone)]
pub(crate) struct Acceptor {
    acceptor: TlsAcceptor,
    identity: Arc<ServerIdentity>,
    reload_every: Duration,
}

// === impl Acceptor ===

impl Acceptor {
    /// Reads the files.
    pub(crate) fn new(settings: &ListenerTls) -> Result<Self, FileError> {
        let identity = Arc::new(ServerIdentity::read(settings.identity.clone())?);
        let config = identity.server_config(Alpn::Http2);
        Ok(Self {
            acceptor: TlsAcceptor::from(Arc::new(config)),
            identity,
            reload_every: settings.reload_every,
        })
    }

    /// Shakes hands within `limit`; none when the sender does not get that far.
    pub(super) async fn accept(
        &self,
        stream: TcpStream,
        limit: Duration,
    ) -> Option<TlsStream<TcpStream>> {
        match timeout(limit, self.acceptor.accept(stream)).await {
            Ok(Ok(stream)) => Some(stream),
            Ok(Err(error)) => {
                tracing::debug!(%error, "a TLS handshake failed");
                None
            }
            Err(_) => {
                tracing::debug!("a TLS handshake took too long");
                None
            }
        }
    }

    /// Looks at the files for ever. Connections stay as they are.
    pub(crate) async fn keep_current(self) {
        loop {
            sleep(self.reload_every).await;
            let identity = Arc::clone(&self.identity);
            let Ok(reloaded) = tokio::task::spawn_blocking(move || identity.reload()).await else {
                return;
            };
            match reloaded {
                Ok(true) => tracing::info!("new connections get the new certificate"),
                Ok(false) => {}
                Err(error) => tracing::error!(
                    %error,
                    "the new certificate cannot be used: the old one stays until the files are good"
                ),
            }
        }
    }
}

impl std::fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Acceptor").finish_non_exhaustive()
    }
}
