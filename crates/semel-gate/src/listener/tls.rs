//! TLS towards senders: the handshake, and a certificate that is replaced while the gate serves.

use crate::settings::ListenerTls;
use rustls::pki_types::UnixTime;
use semel_tls::{Alpn, FileError, ServerIdentity};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// How long the files of a certificate may take before somebody is told.
const READ_WITHIN: Duration = Duration::from_secs(10);

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
        tell_out_of_time(&identity);
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
            let Some(reloaded) = self.reload().await else {
                return;
            };
            match reloaded {
                Ok(true) => {
                    tracing::info!("new connections get the new certificate");
                    tell_out_of_time(&self.identity);
                }
                Ok(false) => {}
                Err(error) => tracing::error!(
                    %error,
                    "the new certificate cannot be used: the old one stays until the files are good"
                ),
            }
        }
    }
}

impl Acceptor {
    /// Looks at the files once, in a thread that the end of the gate does not wait for: a file system may never answer.
    async fn reload(&self) -> Option<Result<bool, FileError>> {
        let (tell, mut told) = oneshot::channel();
        let identity = Arc::clone(&self.identity);
        // Nobody listens any more when the gate has ended.
        std::thread::spawn(move || tell.send(identity.reload()).ok());
        if let Ok(reloaded) = timeout(READ_WITHIN, &mut told).await {
            return reloaded.ok();
        }
        tracing::error!(
            "the files of the certificate cannot be read: no answer within {READ_WITHIN:?}; the old certificate stays"
        );
        told.await.ok()
    }
}

/// Clients refuse such a certificate; whoever put it there should know.
fn tell_out_of_time(identity: &ServerIdentity) {
    if let Some(why) = identity.out_of_time(UnixTime::now()) {
        tracing::warn!(
            why,
            "senders refuse the certificate: renew it, or look at the clock"
        );
    }
}

impl std::fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Acceptor").finish_non_exhaustive()
    }
}
