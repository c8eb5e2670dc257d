//! TLS on both sides: handlers with `https`, and senders that are shown a certificate.

mod handlers;
mod senders;

use crate::support::here;
use semel_gate::settings::IdentityFiles;
use semel_tls::{Alpn, ServerIdentity};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use testbed::Certificate;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// What shakes hands before a handler and hands everything on.
pub(crate) struct TlsFront {
    address: SocketAddr,
    /// The names by which it was asked for.
    names: Arc<Mutex<Vec<Option<String>>>>,
}

// === impl TlsFront ===

impl TlsFront {
    async fn start(handler: SocketAddr, certificate: &Certificate) -> Self {
        let identity = Arc::new(ServerIdentity::read(identity(certificate)).unwrap());
        let config = identity.server_config(Alpn::Http1);
        Self::with(handler, config).await
    }

    pub(crate) async fn with(handler: SocketAddr, config: rustls::ServerConfig) -> Self {
        let listener = TcpListener::bind(here()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let names = Arc::new(Mutex::new(Vec::new()));
        let (acceptor, seen) = (TlsAcceptor::from(Arc::new(config)), Arc::clone(&names));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, seen) = (acceptor.clone(), Arc::clone(&seen));
                tokio::spawn(async move {
                    let Ok(mut stream) = acceptor.accept(stream).await else {
                        return;
                    };
                    let name = stream.get_ref().1.server_name().map(Into::into);
                    seen.lock().unwrap().push(name);
                    let mut behind = TcpStream::connect(handler).await.unwrap();
                    drop(copy_bidirectional(&mut stream, &mut behind).await);
                });
            }
        });
        Self { address, names }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Its URL by this name for 127.0.0.1.
    fn url(&self, host: &str) -> http::Uri {
        format!("https://{host}:{}", self.port()).parse().unwrap()
    }

    fn names(&self) -> Vec<Option<String>> {
        self.names.lock().unwrap().clone()
    }
}

pub(crate) fn identity(certificate: &Certificate) -> IdentityFiles {
    IdentityFiles {
        certificate: certificate.certificate.clone(),
        key: certificate.key.clone(),
    }
}
