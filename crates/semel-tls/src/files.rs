//! Certificates and keys in PEM files.

use rustls::RootCertStore;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::io;
use std::path::{Path, PathBuf};

/// Who we are: a certificate with those that lead to its root, and its key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IdentityFiles {
    /// The certificate, and the intermediate ones after it.
    pub certificate: PathBuf,
    /// Its private key: PKCS#8, PKCS#1 or SEC1, not encrypted.
    pub key: PathBuf,
}

/// Why a file is of no use. It never repeats what is in the file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It is not there, or not for us.
    #[error("{} cannot be read: {error}; fix the path or its permissions", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is not PEM.
    #[error("{} is not PEM: {}; write the file again", path.display(), without_content(error))]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// What its reader said.
        error: pem::Error,
    },
    /// It has something else in it.
    #[error("{} holds no {what}", path.display())]
    Missing {
        /// Which file.
        path: PathBuf,
        /// What was looked for.
        what: &'static str,
    },
    /// There is one, but TLS cannot use it.
    #[error("{} cannot be used: {error}", path.display())]
    Unusable {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: rustls::Error,
    },
    /// The key is of another certificate.
    #[error("the key in {} does not belong to the certificate in {}", key.display(), certificate.display())]
    Mismatched {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
    },
    /// The machine has no roots.
    #[error(
        "this machine has no root certificates ({0}): install ca-certificates, or name a file of roots"
    )]
    NoSystemRoots(String),
}

/// All certificates of a file; at least one.
pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, FileError> {
    parse_certificates(path, &read(path)?)
}

/// All certificates of a file that was read; at least one.
pub(crate) fn parse_certificates(
    path: &Path,
    text: &[u8],
) -> Result<Vec<CertificateDer<'static>>, FileError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let all = all.map_err(|error| malformed(path, error))?;
    if all.is_empty() {
        return Err(FileError::Missing {
            path: path.into(),
            what: "certificate (BEGIN CERTIFICATE)",
        });
    }
    Ok(all)
}

/// The key of a file that was read.
pub(crate) fn parse_key(path: &Path, text: &[u8]) -> Result<PrivateKeyDer<'static>, FileError> {
    match PrivateKeyDer::from_pem_slice(text) {
        Ok(key) => Ok(key),
        Err(pem::Error::NoItemsFound) => Err(FileError::Missing {
            path: path.into(),
            what: "private key that is not encrypted (BEGIN PRIVATE KEY)",
        }),
        Err(error) => Err(malformed(path, error)),
    }
}

/// The certificates of a file, each to be believed.
pub(crate) fn roots(path: &Path) -> Result<RootCertStore, FileError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        let added = roots.add(certificate);
        added.map_err(|error| FileError::Unusable {
            path: path.into(),
            error,
        })?;
    }
    Ok(roots)
}

/// What this machine believes. A single certificate that cannot be read does not spoil the others.
pub(crate) fn system_roots() -> Result<RootCertStore, FileError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why = found.errors.first();
        let why = why.map_or_else(|| "none found".into(), ToString::to_string);
        return Err(FileError::NoSystemRoots(why));
    }
    Ok(roots)
}

/// Reads a file, and nothing that could keep its reader waiting for a writer, as a pipe does.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    let read = || {
        if !std::fs::metadata(path)?.is_file() {
            return Err(io::Error::other("it is not a file"));
        }
        std::fs::read(path)
    };
    read().map_err(|error| FileError::Unreadable {
        path: path.into(),
        error,
    })
}

/// What its reader said, without the lines that it repeats byte by byte.
fn without_content(error: &pem::Error) -> String {
    if let pem::Error::MissingSectionEnd { .. } = error {
        "a section has no end".into()
    } else if let pem::Error::IllegalSectionStart { .. } = error {
        "a section begins as none of PEM does".into()
    } else {
        error.to_string()
    }
}

fn malformed(path: &Path, error: pem::Error) -> FileError {
    FileError::Malformed {
        path: path.into(),
        error,
    }
}
