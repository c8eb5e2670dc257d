//! One port for everything: gRPC, REST, the admin API and the issuer's keys, over HTTP/1.1 and HTTP/2.

mod services;
mod connections;
mod browser;

use crate::Settings;
use axum::Router;
use services::Services;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;

/// How long requests in hand may take to end after a stop; streams are cut then.
const GRACE: Duration = Duration::from_secs(3);

/// A broker that has its address and does not serve yet.
#[derive(Debug)]
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
    router: Router,
}

/// Why a broker does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// It would serve others than this machine, and nobody said that it may.
    #[error(
        "{0} can be reached from other machines, and a broker calls whatever address it is told to: listen on \
         127.0.0.1, or allow it with --allow-remote and an --admin-token"
    )]
    Remote(SocketAddr),
    /// It may serve others, but everybody could reset it.
    #[error(
        "a broker that other machines can reach needs an --admin-token (SEMEL_BROKER_ADMIN_TOKEN)"
    )]
    NoAdminToken,
    /// Whoever may look could act, or nobody could look.
    #[error(
        "an --admin-view-token (SEMEL_BROKER_ADMIN_VIEW_TOKEN) needs an --admin-token, and is another text that is not empty"
    )]
    ViewToken,
    /// The address cannot be had.
    #[error("{address} cannot be listened on: {why}; is another broker there?")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        why: std::io::Error,
    },
    /// What was kept cannot be read.
    #[error("{0}")]
    Keep(String),
    /// Something declared could not be made so.
    #[error("{0}")]
    Declared(String),
}

// === impl Bound ===

impl Bound {
    /// Takes the address, opens what was kept, and makes what is declared. Deliveries begin.
    ///
    /// # Errors
    /// When one of these fails; the message says what to do.
    pub async fn bind(settings: Settings) -> Result<Self, StartError> {
        settings.check()?;
        let address = settings.listen;
        let failed = |why| StartError::Listen { address, why };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let services = Services::open(&settings, address)?;
        services.declare().await?;
        Ok(Self {
            listener,
            address,
            router: services.router(&settings, address),
        })
    }

    /// Where everything is served.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` resolves, then ends what is in hand within a few seconds.
    pub async fn serve(self, stop: impl Future<Output = ()>) {
        connections::serve(self.listener, self.router, stop, GRACE).await;
    }
}

// === impl Settings ===

impl Settings {
    fn check(&self) -> Result<(), StartError> {
        let is_remote = !self.listen.ip().to_canonical().is_loopback();
        let has_token = self.admin_token.as_ref().is_some_and(|it| !it.is_empty());
        if let Some(view) = &self.admin_view_token
            && (!has_token || view.is_empty() || self.admin_token.as_ref() == Some(view))
        {
            return Err(StartError::ViewToken);
        }
        match (is_remote, self.allow_remote, has_token) {
            (false, _, _) | (true, true, true) => Ok(()),
            (true, false, _) => Err(StartError::Remote(self.listen)),
            (true, true, false) => Err(StartError::NoAdminToken),
        }
    }
}

// === impl StartError ===

impl StartError {
    /// Whether a person must fix the settings; a retry fails again.
    #[must_use]
    pub fn is_mistake(&self) -> bool {
        match self {
            Self::Remote(_) | Self::NoAdminToken | Self::ViewToken => true,
            Self::Listen { .. } | Self::Keep(_) | Self::Declared(_) => false,
        }
    }
}
