//! Our side of a connection that we make.

use crate::files::{self, FileError, IdentityFiles};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::path::PathBuf;
use std::sync::Arc;

/// Whom to believe.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Roots {
    /// Those that this machine believes.
    System,
    /// Those in this PEM file, and nobody else.
    File(PathBuf),
}

/// What is checked of a server's certificate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Verify {
    /// Nothing: nobody who only listens can read along, whoever sits in between can.
    Nothing,
    /// That a root leads to it, whatever name it has.
    Chain(Roots),
    /// That a root leads to it, and that it is for the host we ask for.
    Full(Roots),
}

/// Looks at the certificate less than [`WebPkiServerVerifier`] does. That the server has the key of its
/// certificate is checked always.
#[derive(Debug)]
struct PartialVerifier {
    roots: Option<RootCertStore>,
    provider: Arc<CryptoProvider>,
}

/// The configuration for connections that we make.
///
/// ```
/// use semel_tls::{Roots, Verify, client_config};
///
/// let missing = Verify::Full(Roots::File("no/such/ca.pem".into()));
/// let error = client_config(&missing, None).unwrap_err();
/// assert!(error.to_string().starts_with("no/such/ca.pem cannot be read"));
/// ```
///
/// # Errors
/// When a file cannot be used; the message names it.
pub fn client_config(
    verify: &Verify,
    identity: Option<&IdentityFiles>,
) -> Result<ClientConfig, FileError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("ring has suites for all versions")
        .dangerous()
        .with_custom_certificate_verifier(verifier(verify, provider)?);
    let Some(identity) = identity else {
        return Ok(builder.with_no_client_auth());
    };
    let certified = identity.certified()?;
    Ok(
        builder
            .with_client_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(certified))),
    )
}

fn verifier(
    verify: &Verify,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, FileError> {
    let roots = match verify {
        Verify::Nothing => None,
        Verify::Chain(roots) => Some(roots.load()?),
        Verify::Full(roots) => {
            let roots = Arc::new(roots.load()?);
            let whole = WebPkiServerVerifier::builder_with_provider(roots, provider).build();
            return Ok(whole.expect("there are roots, and no lists of revocations"));
        }
    };
    Ok(Arc::new(PartialVerifier { roots, provider }))
}

// === impl Roots ===

impl Roots {
    fn load(&self) -> Result<RootCertStore, FileError> {
        match self {
            Self::System => files::system_roots(),
            Self::File(path) => files::roots(path),
        }
    }
}

// === impl PartialVerifier ===

impl ServerCertVerifier for PartialVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _host: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(roots) = &self.roots {
            verify_server_cert_signed_by_trust_anchor(
                &ParsedCertificate::try_from(certificate)?,
                roots,
                intermediates,
                now,
                self.provider.signature_verification_algorithms.all,
            )?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}
