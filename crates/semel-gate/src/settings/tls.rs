//! TLS towards senders.

pub use semel_tls::IdentityFiles;

use super::Upstream;
use rustls::pki_types::UnixTime;
use semel_tls::{FileError, Roots, ServerIdentity, Verify, client_config};
use std::time::Duration;

/// How often the files of a certificate are looked at: renewals come hours before the old one ends, and
/// whoever replaces one by hand sees it within seconds.
pub const CERTIFICATE_RELOAD_EVERY: Duration = Duration::from_secs(10);

/// What the address for deliveries shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerTls {
    /// The certificate and its key.
    pub identity: IdentityFiles,
    /// How often the files are looked at.
    pub reload_every: Duration,
}

// === impl ListenerTls ===

impl ListenerTls {
    /// Whether the files can be used, as the gate would find when it starts.
    ///
    /// # Errors
    /// What is wrong with which file.
    pub fn validate(&self) -> Result<(), FileError> {
        ServerIdentity::read(self.identity.clone()).map(drop)
    }

    /// Why senders refuse the certificate now, if it is past or before its time.
    #[must_use]
    pub fn out_of_time(&self) -> Option<String> {
        let identity = ServerIdentity::read(self.identity.clone()).ok()?;
        identity.out_of_time(UnixTime::now())
    }
}

// === impl Upstream ===

impl Upstream {
    /// Whether the handler is reached with TLS.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.base.scheme() == Some(&http::uri::Scheme::HTTPS)
    }

    /// Whether the roots for the handler can be used, as the gate would find when it starts.
    ///
    /// # Errors
    /// What is wrong with which file.
    pub fn validate(&self) -> Result<(), FileError> {
        if !self.is_https() {
            return Ok(());
        }
        client_config(&self.verify(), None).map(drop)
    }

    /// What is checked of the handler's certificate.
    pub(crate) fn verify(&self) -> Verify {
        Verify::Full(self.ca.clone().map_or(Roots::System, Roots::File))
    }
}
