//! TLS: what a `rediss://` URL says of it, in the words of Python's client, and the handshake.

use percent_encoding::percent_decode_str;
use redis::{ConnectionAddr, ConnectionInfo, RedisError};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use semel_tls::{
    HandshakeError, IdentityFiles, Remedies, Roots, Verify, client_config, explain, find,
    find_cause,
};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// What the settings are called in a URL.
const REMEDIES: Remedies = Remedies {
    roots: "ssl_ca_certs",
    identity: "ssl_certfile and ssl_keyfile",
};

/// How connections get TLS.
#[derive(Clone)]
pub(crate) struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    host: String,
}

/// What the URL says.
#[derive(Debug, Default)]
pub(crate) struct TlsOptions {
    ssl_ca_certs: Option<PathBuf>,
    ssl_certfile: Option<PathBuf>,
    ssl_keyfile: Option<PathBuf>,
}

/// The URL as the driver knows it, and what it says of TLS if it wants that.
pub(crate) fn split(url: &str) -> Result<(String, Option<TlsOptions>), String> {
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let secure = match scheme {
        "redis" => false,
        "rediss" => true,
        _ => return Err("the URL of a Redis store begins with redis:// or rediss://".into()),
    };
    if secure && rest.contains('#') {
        return Err(
            "the URL has a fragment (#insecure?): certificates are always checked, name the CA by ?ssl_ca_certs="
                .into(),
        );
    }
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut options = TlsOptions::default();
    let mut kept = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = percent_decode_str(value).decode_utf8_lossy();
        if !name.starts_with("ssl_") {
            kept.push(pair);
        } else if !secure {
            return Err(format!("{name} needs rediss://, this URL is redis://"));
        } else {
            options.take(name, &value)?;
        }
    }
    let mut driver = format!("redis://{place}");
    if !kept.is_empty() {
        driver = format!("{driver}?{}", kept.join("&"));
    }
    Ok((driver, secure.then_some(options)))
}

/// What TLS says of a connection that cannot be made, if that stays so until somebody changes something.
pub(crate) fn lasting_failure(error: &RedisError) -> Option<String> {
    let said = find(error)?;
    let handshake: Option<&HandshakeError> = find_cause(error);
    // In TLS 1.3 a server that dislikes our certificate says so after the handshake.
    Some(handshake.map_or_else(
        || explain(said, "the server", REMEDIES),
        ToString::to_string,
    ))
}

// === impl TlsOptions ===

impl TlsOptions {
    fn take(&mut self, name: &str, value: &str) -> Result<(), String> {
        let place = match name {
            "ssl_ca_certs" => &mut self.ssl_ca_certs,
            "ssl_certfile" => &mut self.ssl_certfile,
            "ssl_keyfile" => &mut self.ssl_keyfile,
            "ssl_cert_reqs" if matches!(value, "required" | "CERT_REQUIRED") => return Ok(()),
            "ssl_cert_reqs" => {
                return Err(format!(
                    "ssl_cert_reqs={value} is not supported: certificates are always checked, name the CA by \
                     ssl_ca_certs"
                ));
            }
            _ => return Err(format!("{name} is not supported: leave it out")),
        };
        *place = Some(value.into());
        Ok(())
    }

    /// What the options mean together, with their files read.
    pub(crate) fn judge(self, info: &ConnectionInfo) -> Result<Tls, String> {
        let ConnectionAddr::Tcp(host, _) = info.addr() else {
            return Err("rediss:// needs a host".into());
        };
        let name = ServerName::try_from(host.clone())
            .map_err(|_| "the host of rediss:// can be in no certificate".to_owned())?;
        let identity = match (self.ssl_certfile, self.ssl_keyfile) {
            (Some(certificate), Some(key)) => Some(IdentityFiles { certificate, key }),
            (None, None) => None,
            (Some(_), None) => return Err("ssl_certfile needs ssl_keyfile, its key".into()),
            (None, Some(_)) => return Err("ssl_keyfile needs ssl_certfile, its certificate".into()),
        };
        let verify = Verify::Full(self.ssl_ca_certs.map_or(Roots::System, Roots::File));
        let config =
            client_config(&verify, identity.as_ref()).map_err(|error| error.to_string())?;
        Ok(Tls {
            config: Arc::new(config),
            name,
            host: host.clone(),
        })
    }
}

// === impl Tls ===

impl Tls {
    pub(crate) async fn shake_hands(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let connector = TlsConnector::from(Arc::clone(&self.config));
        let shaken = connector.connect(self.name.clone(), stream).await;
        shaken.map_err(|error| io::Error::other(HandshakeError::new(&self.host, REMEDIES, error)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_sees_all_but_what_is_of_tls() {
        for (url, driver) in [
            ("redis://u:p@h:1/2", "redis://u:p@h:1/2"),
            (
                "rediss://u:p@h:1/2?ssl_ca_certs=/ca.pem",
                "redis://u:p@h:1/2",
            ),
            (
                "rediss://h?protocol=resp3&ssl_cert_reqs=required",
                "redis://h?protocol=resp3",
            ),
        ] {
            let (seen, options) = split(url).unwrap();
            assert_eq!(seen, driver);
            assert_eq!(options.is_some(), url.starts_with("rediss"));
        }
    }

    #[test]
    fn what_cannot_be_had_is_refused_without_the_password() {
        for (url, says) in [
            ("mysql://u:s3cret@h", "begins with redis:// or rediss://"),
            (
                "rediss://:s3cret@h#insecure",
                "certificates are always checked",
            ),
            (
                "rediss://:s3cret@h?ssl_cert_reqs=none",
                "certificates are always checked",
            ),
            (
                "rediss://:s3cret@h?ssl_password=s3cret",
                "ssl_password is not supported",
            ),
            (
                "redis://:s3cret@h?ssl_ca_certs=/ca.pem",
                "ssl_ca_certs needs rediss://",
            ),
        ] {
            let message = split(url).unwrap_err();
            assert!(message.contains(says), "{message}");
            assert!(!message.contains("s3cret"), "{message}");
        }
    }
}
