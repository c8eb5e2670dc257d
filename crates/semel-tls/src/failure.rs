//! Why there is no TLS, in plain words: which check, of which host, and what to set.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the enums of rustls grow: what has no sentence of ours is told in its own words"
)]

use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError, Error, PeerIncompatible};
use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::sync::Arc;

/// What the settings are called where they are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remedies {
    /// The one for roots.
    pub roots: &'static str,
    /// Those for our own certificate and key.
    pub identity: &'static str,
}

/// A handshake that failed.
#[derive(Debug)]
pub struct HandshakeError {
    host: String,
    remedies: Remedies,
    error: io::Error,
}

// === impl HandshakeError ===

impl HandshakeError {
    /// What became of the handshake with `host`.
    #[must_use]
    pub fn new(host: &str, remedies: Remedies, error: io::Error) -> Self {
        Self {
            host: host.into(),
            remedies,
            error,
        }
    }
}

impl fmt::Display for HandshakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, error, .. } = self;
        match find(error) {
            Some(error) => f.write_str(&explain(error, host, self.remedies)),
            None if error.kind() == io::ErrorKind::UnexpectedEof => write!(
                f,
                "{host} closed the connection during the TLS handshake: look whether it speaks TLS on this port"
            ),
            None => write!(f, "the TLS handshake with {host} failed: {error}"),
        }
    }
}

impl StdError for HandshakeError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        find(&self.error).map(|error| error as _)
    }
}

/// What TLS said, somewhere among the causes of an error.
#[must_use]
pub fn find<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a Error> {
    find_cause(error)
}

/// A cause of this type, or the error itself if it is of it.
#[must_use]
pub fn find_cause<'a, T: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a T> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        cause = inside(error).or_else(|| error.source());
    }
    None
}

/// What is wrapped in something that passes its content's cause for its own.
fn inside<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a (dyn StdError + 'static)> {
    if let Some(shared) = error.downcast_ref::<Arc<dyn StdError + Send + Sync>>() {
        return Some(shared.as_ref());
    }
    let wrapped = error.downcast_ref::<io::Error>()?.get_ref()?;
    Some(wrapped)
}

/// What the other side complained of; after a handshake of TLS 1.3 that can be our certificate.
#[must_use]
pub fn alert(error: &(dyn StdError + 'static)) -> Option<AlertDescription> {
    match find(error) {
        Some(Error::AlertReceived(alert)) => Some(*alert),
        Some(_) | None => None,
    }
}

/// Whether a certificate is past or before its time. That passes: a renewal is late, or a clock is not set yet.
#[must_use]
pub fn is_out_of_time(error: &(dyn StdError + 'static)) -> bool {
    let Some(Error::InvalidCertificate(why)) = find(error) else {
        return false;
    };
    matches!(
        why,
        CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. }
    )
}

/// One sentence: which check failed, of which host, what to do.
#[must_use]
pub fn explain(error: &Error, host: &str, remedies: Remedies) -> String {
    let Remedies { roots, identity } = remedies;
    match error {
        Error::InvalidCertificate(why) => certificate(why, host, roots),
        Error::AlertReceived(alert) => alerted(*alert, host, identity),
        Error::PeerIncompatible(PeerIncompatible::ServerDoesNotSupportTls12Or13)
        | Error::PeerIncompatible(PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig) => {
            format!("{host} speaks neither TLS 1.2 nor 1.3: switch one of them on there")
        }
        Error::InvalidMessage(_) => {
            format!("{host} does not speak TLS on this port ({error}): fix host or port")
        }
        _ => format!("the TLS handshake with {host} failed: {error}"),
    }
}

fn certificate(why: &CertificateError, host: &str, roots: &str) -> String {
    let its = format!("the certificate of {host}");
    match why {
        CertificateError::UnknownIssuer => format!(
            "{its} was issued by none of the trusted roots: set {roots} to the file of the CA that issued it"
        ),
        CertificateError::NotValidForNameContext { presented, .. } if presented.is_empty() => {
            format!("{its} names no host (no subjectAltName): issue one for {host}")
        }
        CertificateError::NotValidForNameContext { presented, .. } => format!(
            "{its} is for another host ({}): connect by a name of it, or issue one for {host}",
            presented
                .iter()
                .map(|name| bare(name))
                .collect::<Vec<_>>()
                .join(", ")
        ),
        CertificateError::NotValidForName => {
            format!("{its} is for another host: connect by a name of it, or issue one for {host}")
        }
        CertificateError::ExpiredContext { not_after, .. } => {
            format!("{its} has expired, at {}: renew it there", time(*not_after))
        }
        CertificateError::Expired => format!("{its} has expired: renew it there"),
        CertificateError::NotValidYetContext { not_before, .. } => format!(
            "{its} is not valid before {}: look at the clocks of both machines",
            time(*not_before)
        ),
        CertificateError::NotValidYet => {
            format!("{its} is not valid yet: look at the clocks of both machines")
        }
        CertificateError::BadSignature => format!(
            "{its} has a signature that is not its issuer's: set {roots} to the file of the CA that issued it"
        ),
        CertificateError::InvalidPurposeContext { .. } | CertificateError::InvalidPurpose => {
            format!("{its} is not for servers (extendedKeyUsage): issue one with serverAuth")
        }
        other => by_words(other, &its),
    }
}

/// A name without what it is a name of: `DnsName("localhost")`.
fn bare(presented: &str) -> &str {
    let inside = presented.split_once('(').map(|(_, inside)| inside);
    let inside = inside.and_then(|inside| inside.strip_suffix(')'));
    inside.unwrap_or(presented).trim_matches('"')
}

/// What rustls has no word for comes with that of webpki.
fn by_words(why: &CertificateError, its: &str) -> String {
    let words = format!("{why:?}");
    if words.contains("CaUsedAsEndEntity") {
        return format!(
            "{its} is a CA's own (basicConstraints CA:TRUE): issue one for the server, with CA:FALSE"
        );
    }
    if words.contains("UnsupportedCertVersion") {
        return format!("{its} is not version 3 of X.509: issue a new one, with a subjectAltName");
    }
    format!("{its} cannot be checked: {why}: issue a new one")
}

fn alerted(alert: AlertDescription, host: &str, identity: &str) -> String {
    match alert {
        AlertDescription::CertificateRequired => {
            format!("{host} asks for a client certificate: set {identity}")
        }
        AlertDescription::UnknownCA
        | AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateUnknown
        | AlertDescription::AccessDenied => format!(
            "{host} does not accept our client certificate ({alert:?}): set {identity} to one that it accepts"
        ),
        AlertDescription::ProtocolVersion | AlertDescription::HandshakeFailure => format!(
            "{host} has no TLS version, cipher or certificate in common with us ({alert:?}): allow TLS 1.2 or 1.3 \
             there, and set {identity} if it asks for a client certificate"
        ),
        AlertDescription::UnrecognisedName => {
            format!("{host} has no certificate for that name: connect by a name that it knows")
        }
        other => format!("{host} ended the TLS handshake: {other:?}"),
    }
}

fn time(moment: UnixTime) -> String {
    let seconds = i64::try_from(moment.as_secs()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(seconds)
        .map_or_else(|_| format!("second {seconds}"), |time| time.to_string())
}
