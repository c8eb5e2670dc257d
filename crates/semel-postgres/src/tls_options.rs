//! What a URL says of TLS, in libpq's words. The driver knows only some of them, so they are taken out of
//! the URL before it sees it.

use percent_encoding::percent_decode_str;
use rustls::ClientConfig;
use semel_tls::{IdentityFiles, Roots, Verify, client_config};
use std::path::PathBuf;
use std::sync::Arc;

/// What the URL says.
#[derive(Default)]
pub(crate) struct TlsOptions {
    sslmode: Option<String>,
    sslrootcert: Option<String>,
    sslcert: Option<String>,
    sslkey: Option<String>,
}

/// What that means.
#[derive(Clone)]
pub(crate) struct Tls {
    pub(crate) mode: TlsMode,
    pub(crate) verified: Verified,
    /// None where TLS is never used.
    pub(crate) config: Option<Arc<ClientConfig>>,
}

/// Whether a connection has TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TlsMode {
    /// Never.
    Disable,
    /// When the server insists.
    Allow,
    /// When the server has it and it works.
    Prefer,
    /// Always.
    Require,
}

/// What is checked of the server's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verified {
    Nothing,
    Chain,
    ChainAndHost,
}

/// Options of libpq that ask for more than is here: leaving them out silently could weaken a connection.
const UNSUPPORTED: [&str; 15] = [
    "sslcrl",
    "sslcrldir",
    "sslpassword",
    "sslsni",
    "sslcertmode",
    "sslcompression",
    "sslnegotiation",
    "ssl_min_protocol_version",
    "ssl_max_protocol_version",
    "requirepeer",
    "require_auth",
    "gssencmode",
    "krbsrvname",
    "passfile",
    "service",
];

/// The URL without what it says of TLS, and that.
pub(crate) fn split(url: &str) -> Result<(String, TlsOptions), String> {
    let mut options = TlsOptions::default();
    let Some(start) = query_start(url) else {
        return Ok((url.to_owned(), options));
    };
    let (before, query) = url.split_at(start);
    let mut rest = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        if !options.take(pair)? {
            rest.push(pair);
        }
    }
    let kept = before.trim_end_matches('?');
    let url = match rest.as_slice() {
        [] => kept.to_owned(),
        rest => format!("{kept}?{}", rest.join("&")),
    };
    Ok((url, options))
}

/// Where the options begin. As for the driver, a `?` before the `@` belongs to the password.
fn query_start(url: &str) -> Option<usize> {
    let authority = url.find("://")? + "://".len();
    let host = url.find('@').map_or(authority, |at| at + 1);
    let mark = url.get(host..)?.find('?')?;
    Some(host + mark + 1)
}

// === impl TlsOptions ===

impl TlsOptions {
    /// Takes an option if it is of TLS; whether it is.
    fn take(&mut self, pair: &str) -> Result<bool, String> {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = percent_decode_str(name).decode_utf8_lossy();
        let value = percent_decode_str(value).decode_utf8_lossy();
        let place = match name.as_ref() {
            "sslmode" => &mut self.sslmode,
            "sslrootcert" => &mut self.sslrootcert,
            "sslcert" => &mut self.sslcert,
            "sslkey" => &mut self.sslkey,
            "target_session_attrs" if !matches!(&*value, "any" | "read-write" | "read-only") => {
                return Err(format!(
                    "target_session_attrs={value} is not supported: write read-write, or any"
                ));
            }
            // There is no GSSAPI here: without it is the only way.
            "gssencmode" if matches!(&*value, "disable" | "prefer") => return Ok(true),
            "ssl" => return Err("ssl is not libpq's: write sslmode=require, or verify-full".into()),
            name if UNSUPPORTED.contains(&name) => {
                return Err(format!("{name} is not supported: leave it out"));
            }
            _ => return Ok(false),
        };
        *place = Some(value.into_owned());
        Ok(true)
    }

    /// What the options mean together, with their files read.
    pub(crate) fn judge(&self) -> Result<Tls, String> {
        let system = self.sslrootcert.as_deref() == Some("system");
        let default = if system { "verify-full" } else { "prefer" };
        let sslmode = self.sslmode.as_deref().unwrap_or(default);
        if system && sslmode != "verify-full" {
            return Err(format!(
                "sslmode={sslmode} is too weak for sslrootcert=system, where anybody can have a certificate: \
                 write sslmode=verify-full"
            ));
        }
        let (mode, verify) = self.mode(sslmode)?;
        let verified = match &verify {
            Verify::Nothing => Verified::Nothing,
            Verify::Chain(_) => Verified::Chain,
            Verify::Full(_) => Verified::ChainAndHost,
        };
        let config = match mode {
            TlsMode::Disable => None,
            TlsMode::Allow | TlsMode::Prefer | TlsMode::Require => Some(self.config(&verify)?),
        };
        Ok(Tls {
            mode,
            verified,
            config,
        })
    }

    fn mode(&self, sslmode: &str) -> Result<(TlsMode, Verify), String> {
        let mode = match sslmode {
            "disable" => TlsMode::Disable,
            "allow" => TlsMode::Allow,
            "prefer" => TlsMode::Prefer,
            "require" | "verify-ca" | "verify-full" => TlsMode::Require,
            other => {
                return Err(format!(
                    "sslmode={other} is not one of disable, allow, prefer, require, verify-ca and verify-full"
                ));
            }
        };
        let verify = match (sslmode, self.roots()) {
            ("verify-full", Some(roots)) => Verify::Full(roots),
            ("verify-full" | "verify-ca", None) => {
                return Err(format!(
                    "sslmode={sslmode} needs sslrootcert: add sslrootcert=/path/to/ca.pem, the certificate of the CA that \
                     issued the server's (whoever runs the server has it), or sslrootcert=system for a public CA"
                ));
            }
            // As in libpq: who names a root has it checked, whatever the mode.
            (_, Some(roots)) => Verify::Chain(roots),
            (_, None) => Verify::Nothing,
        };
        Ok((mode, verify))
    }

    fn roots(&self) -> Option<Roots> {
        let named = self.sslrootcert.as_deref()?;
        Some(match named {
            "system" => Roots::System,
            path => Roots::File(path.into()),
        })
    }

    fn config(&self, verify: &Verify) -> Result<Arc<ClientConfig>, String> {
        let identity = match (&self.sslcert, &self.sslkey) {
            (Some(certificate), Some(key)) => Some(IdentityFiles {
                certificate: PathBuf::from(certificate),
                key: PathBuf::from(key),
            }),
            (Some(_), None) => return Err("sslcert needs sslkey, the file of its key".into()),
            (None, Some(_)) => return Err("sslkey needs sslcert, its certificate".into()),
            (None, None) => None,
        };
        client_config(verify, None).map_err(|error| {
            format!(
                "sslrootcert: {error}; it is the PEM file of the CA that issued the server's certificate: download it from \
                 whoever runs the server, or write sslrootcert=system if that is a public CA"
            )
        })?;
        client_config(verify, identity.as_ref())
            .map(Arc::new)
            .map_err(|error| format!("sslcert and sslkey: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(options: &str) -> (TlsMode, Verified) {
        let (_, options) = split(&format!("postgres://h/d?{options}")).unwrap();
        let tls = options.judge().unwrap();
        (tls.mode, tls.verified)
    }

    #[test]
    fn every_mode_means_what_it_means_to_libpq() {
        let ca = testbed::Certificates::new().unwrap();
        let root = ca.root();
        let with_root = |mode: &str| format!("sslmode={mode}&sslrootcert={}", root.display());
        for (options, mode, verified) in [
            (String::new(), TlsMode::Prefer, Verified::Nothing),
            (
                "sslmode=disable".into(),
                TlsMode::Disable,
                Verified::Nothing,
            ),
            ("sslmode=allow".into(), TlsMode::Allow, Verified::Nothing),
            ("sslmode=prefer".into(), TlsMode::Prefer, Verified::Nothing),
            (
                "sslmode=require".into(),
                TlsMode::Require,
                Verified::Nothing,
            ),
            (with_root("allow"), TlsMode::Allow, Verified::Chain),
            (with_root("prefer"), TlsMode::Prefer, Verified::Chain),
            (with_root("require"), TlsMode::Require, Verified::Chain),
            (with_root("verify-ca"), TlsMode::Require, Verified::Chain),
            (
                with_root("verify-full"),
                TlsMode::Require,
                Verified::ChainAndHost,
            ),
        ] {
            assert_eq!(judged(&options), (mode, verified), "{options}");
        }
    }

    #[test]
    fn the_driver_sees_all_options_but_those_of_tls() {
        for (url, rest) in [
            ("postgres://h/d", "postgres://h/d"),
            ("postgres://h/d?sslmode=disable", "postgres://h/d"),
            (
                "postgres://u:p?q@h/d?application_name=a&sslmode=disable&connect_timeout=3",
                "postgres://u:p?q@h/d?application_name=a&connect_timeout=3",
            ),
            (
                "postgres:///d?host=/run/pg&ssl%6Dode=allow",
                "postgres:///d?host=/run/pg",
            ),
        ] {
            assert_eq!(split(url).unwrap().0, rest);
        }
    }
}
