//! Our side of connections that others make: a certificate that can be replaced while we serve.

use crate::failure::is_out_of_time;
use crate::files::{self, FileError, IdentityFiles};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::ring;
use rustls::pki_types::{ServerName, UnixTime};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, Error, InconsistentKeys, RootCertStore, ServerConfig};
use std::sync::{Arc, PoisonError, RwLock};

/// Which versions of HTTP a listener offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alpn {
    /// HTTP/2 and HTTP/1.1.
    Http2,
    /// HTTP/1.1 alone.
    Http1,
}

/// A certificate and its key, read again when the files change.
#[derive(Debug)]
pub struct ServerIdentity {
    files: IdentityFiles,
    current: RwLock<Arc<CertifiedKey>>,
    /// What was last read, good or not.
    seen: RwLock<Vec<u8>>,
}

// === impl IdentityFiles ===

impl IdentityFiles {
    /// Both files, read and found to belong together.
    pub(crate) fn certified(&self) -> Result<CertifiedKey, FileError> {
        let (certificate, key) = (files::read(&self.certificate)?, files::read(&self.key)?);
        self.certified_of(&certificate, &key)
    }

    fn certified_of(&self, certificate: &[u8], key: &[u8]) -> Result<CertifiedKey, FileError> {
        let chain = files::parse_certificates(&self.certificate, certificate)?;
        let key = files::parse_key(&self.key, key)?;
        let signing = ring::default_provider().key_provider.load_private_key(key);
        let signing = signing.map_err(|error| FileError::Unusable {
            path: self.key.clone(),
            error,
        })?;
        let certified = CertifiedKey::new(chain, signing);
        match certified.keys_match() {
            Err(Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
                Err(FileError::Mismatched {
                    certificate: self.certificate.clone(),
                    key: self.key.clone(),
                })
            }
            Err(error @ Error::InvalidCertificate(CertificateError::BadEncoding)) => {
                Err(FileError::Unusable {
                    path: self.certificate.clone(),
                    error,
                })
            }
            // Certificates of clients are often of version 1, which only their servers can read.
            Ok(()) | Err(_) => Ok(certified),
        }
    }
}

// === impl ServerIdentity ===

impl ServerIdentity {
    /// Reads the files.
    ///
    /// # Errors
    /// When they cannot be used; the message names which.
    pub fn read(files: IdentityFiles) -> Result<Self, FileError> {
        let (certificate, key) = (files::read(&files.certificate)?, files::read(&files.key)?);
        let certified = files.certified_of(&certificate, &key)?;
        Ok(Self {
            files,
            current: RwLock::new(Arc::new(certified)),
            seen: RwLock::new([certificate, key].concat()),
        })
    }

    /// Looks at the files again; whether there was a new certificate. Connections stay as they are,
    /// new ones get what was read last.
    ///
    /// # Errors
    /// When there is something new and it cannot be used: the old certificate stays. The same files are
    /// not complained of twice.
    pub fn reload(&self) -> Result<bool, FileError> {
        let read = files::read(&self.files.certificate)
            .and_then(|certificate| Ok((certificate, files::read(&self.files.key)?)));
        let (certificate, key) = match read {
            Ok(read) => read,
            // Files that cannot be read look the same as long as they cannot.
            Err(error) => {
                return if self.is_new(Vec::new()) {
                    Err(error)
                } else {
                    Ok(false)
                };
            }
        };
        if !self.is_new([certificate.as_slice(), &key].concat()) {
            return Ok(false);
        }
        let certified = Arc::new(self.files.certified_of(&certificate, &key)?);
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let changed = current.cert != certified.cert;
        *current = certified;
        Ok(changed)
    }

    /// Why clients refuse the certificate at this time, if it is past or before its own.
    #[must_use]
    pub fn out_of_time(&self, now: UnixTime) -> Option<String> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        let certificate = current.cert.first()?.clone();
        drop(current);
        // Its time is looked at before its issuer, so any root will do.
        let mut roots = RootCertStore::empty();
        roots.add(certificate.clone()).ok()?;
        let provider = Arc::new(ring::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        let name = ServerName::try_from("localhost").ok()?;
        let verified = verifier.build().ok()?;
        let error = verified
            .verify_server_cert(&certificate, &[], &name, &[], now)
            .err()?;
        is_out_of_time(&error).then(|| {
            let path = self.files.certificate.display();
            format!("the certificate in {path} is out of its time: {error}")
        })
    }

    /// The configuration of a listener that shows this certificate.
    #[must_use]
    pub fn server_config(self: &Arc<Self>, alpn: Alpn) -> ServerConfig {
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring has suites for all versions")
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(self) as _);
        config.alpn_protocols = match alpn {
            Alpn::Http2 => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            Alpn::Http1 => vec![b"http/1.1".to_vec()],
        };
        config
    }

    fn is_new(&self, read: Vec<u8>) -> bool {
        let mut seen = self.seen.write().unwrap_or_else(PoisonError::into_inner);
        if *seen == read {
            return false;
        }
        *seen = read;
        true
    }
}

impl ResolvesServerCert for ServerIdentity {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Some(Arc::clone(&current))
    }
}
