//! Certificates for servers and clients of tests: a CA of our own, and what it issues, made by `openssl`.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Context;
use tempfile::TempDir;

use crate::command::{User, run, tool};

/// How `openssl ca` keeps its books. The extensions are those of the request.
const CA_CONFIG: &str = "\
[ca]
default_ca = own
[own]
dir = .
database = ./index.txt
serial = ./serial
new_certs_dir = .
default_md = sha256
policy = any
copy_extensions = copy
unique_subject = no
[any]
commonName = supplied
";

/// The moments between which a certificate holds, as `openssl ca` takes them.
const LONG_AGO: &str = "20200101000000Z";
const AGO: &str = "20200201000000Z";
const IN_A_LONG_TIME: &str = "20490101000000Z";
const AT_THE_END: &str = "20500101000000Z";

/// A CA in a directory of its own, which is removed with it.
#[derive(Debug)]
pub struct Certificates {
    dir: TempDir,
    issued: AtomicU32,
}

/// A certificate and its key, as files.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The certificate.
    pub certificate: PathBuf,
    /// Its key; PostgreSQL may read it.
    pub key: PathBuf,
}

/// When a certificate holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    /// Now.
    Now,
    /// No more.
    Expired,
    /// Not yet.
    Later,
}

// === impl Certificates ===

impl Certificates {
    /// Makes a CA.
    ///
    /// # Errors
    /// When `openssl` is not installed.
    pub fn new() -> anyhow::Result<Self> {
        let dir = tempfile::Builder::new()
            .prefix("semel-certificates-")
            .tempdir()
            .context("cannot make a directory for certificates")?;
        // Servers run as other users.
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755))?;
        let ca = Self {
            dir,
            issued: AtomicU32::new(0),
        };
        ca.write("ca.cnf", CA_CONFIG)?;
        ca.write("index.txt", "")?;
        ca.write("serial", "01\n")?;
        // Each has a name of its own: an issuer is first looked for by name.
        let name = ca.dir.path().file_name().unwrap_or_default();
        let subject = format!("/CN=CA of {}", name.display());
        let mut make = ca.openssl(&["req", "-x509", "-days", "3650", "-subj", &subject]);
        make.args([
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
        ])
        .args(["-keyout", "ca.key", "-out", "ca.pem"])
        .args(["-addext", "keyUsage=critical,keyCertSign,cRLSign"]);
        run(&mut make).context("cannot make a CA")?;
        Ok(ca)
    }

    /// The file of the CA's own certificate.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.dir.path().join("ca.pem")
    }

    /// The CA's own certificate, for a server that shows that one.
    ///
    /// # Errors
    /// When its key cannot be given away.
    pub fn own(&self) -> anyhow::Result<Certificate> {
        self.given_away("ca")
    }

    /// Issues a certificate to a common name, for hosts like `DNS:localhost,IP:127.0.0.1`. Without hosts it is for a
    /// client, and version 1 of X.509, as `openssl` makes those.
    ///
    /// # Errors
    /// When `openssl` refuses.
    pub fn issue(
        &self,
        common_name: &str,
        hosts: &str,
        validity: Validity,
    ) -> anyhow::Result<Certificate> {
        let name = format!("issued-{}", self.issued.fetch_add(1, Ordering::Relaxed));
        let (key, request) = (format!("{name}.key"), format!("{name}.csr"));
        let mut make = self.openssl(&["req", "-subj", &format!("/CN={common_name}")]);
        make.args([
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
        ])
        .args(["-keyout", &key, "-out", &request]);
        if !hosts.is_empty() {
            make.args(["-addext", &format!("subjectAltName={hosts}")]);
        }
        run(&mut make).context("cannot ask for a certificate")?;
        let (from, until) = match validity {
            Validity::Now => (LONG_AGO, AT_THE_END),
            Validity::Expired => (LONG_AGO, AGO),
            Validity::Later => (IN_A_LONG_TIME, AT_THE_END),
        };
        let mut sign = self.openssl(&["ca", "-batch", "-notext", "-config", "ca.cnf"]);
        sign.args(["-cert", "ca.pem", "-keyfile", "ca.key", "-in", &request])
            .args(["-startdate", from, "-enddate", until])
            .args(["-out", &format!("{name}.pem")]);
        run(&mut sign).context("cannot issue a certificate")?;
        self.given_away(&name)
    }

    /// Writes a file next to the certificates, and says where.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, name: &str, text: &str) -> anyhow::Result<PathBuf> {
        let path = self.dir.path().join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }

    /// PostgreSQL reads a key only if nobody but itself can.
    fn given_away(&self, name: &str) -> anyhow::Result<Certificate> {
        let path = |end: &str| self.dir.path().join(format!("{name}.{end}"));
        let (certificate, key) = (path("pem"), path("key"));
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600))?;
        if let Some(User { uid, gid }) = User::for_server()? {
            chown(&key, Some(uid), Some(gid)).context("cannot give a key away")?;
        }
        Ok(Certificate { certificate, key })
    }

    fn openssl(&self, args: &[&str]) -> Command {
        let mut command = tool("openssl");
        command.args(args).current_dir(self.dir.path());
        command
    }
}

// === impl Certificate ===

impl Certificate {
    /// Puts another certificate and key in the place of these; who may read the files stays as it is.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn replace_by(&self, other: &Self) -> anyhow::Result<()> {
        copy(&other.key, &self.key)?;
        copy(&other.certificate, &self.certificate)
    }
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let copied = fs::read(from).and_then(|content| fs::write(to, content));
    copied.with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
}
