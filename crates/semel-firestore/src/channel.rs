//! The way to a database: where it is, and the connection that calls go through.

use crate::proto::firestore_client::FirestoreClient;
use crate::settings::FirestoreSettings;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::ClientConfig;
use semel::Error;
use semel_tls::{Remedies, Roots, Verify, client_config};
use std::fmt;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use tonic::transport::{Channel, Endpoint};

const PRODUCTION: &str = "https://firestore.googleapis.com";

/// What the settings are called in a URL.
pub(crate) const REMEDIES: Remedies = Remedies {
    roots: "ssl_ca_certs",
    identity: "an endpoint that asks for none",
};

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// How often an idle connection is asked whether it is still there: more often than networks forget one.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How long it may take to say so, before the connection is given up.
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(5);

/// The connection of the moment. One that does not answer is replaced: what is under way on it goes on.
#[derive(Debug)]
pub(crate) struct Connection {
    endpoint: Endpoint,
    tls: Option<HttpsConnector<HttpConnector>>,
    current: Mutex<Used>,
}

/// A connection that a call is made on.
#[derive(Clone, Debug)]
pub(crate) struct Used {
    number: u64,
    channel: Channel,
}

/// Where the database is, for messages.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) project: String,
    pub(crate) database: String,
    pub(crate) emulator: Option<String>,
    pub(crate) endpoint: Option<String>,
}

fn endpoint(uri: &str) -> Result<Endpoint, Error> {
    let endpoint = Endpoint::from_shared(uri.to_owned()).map_err(|error| {
        Error::invalid(format!(
            "Firestore store: {uri} cannot be dialled: {error}; fix the setting"
        ))
    })?;
    Ok(endpoint
        .connect_timeout(CONNECT_TIMEOUT)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .keep_alive_while_idle(true)
        .tcp_nodelay(true))
}

/// TLS with those whom we believe.
pub(crate) fn tls(roots: Roots) -> Result<ClientConfig, Error> {
    client_config(&Verify::Full(roots), None).map_err(|error| {
        Error::invalid(format!(
            "Firestore store: {error}; nothing was dialled, fix that before you retry"
        ))
    })
}

// === impl Connection ===

impl Connection {
    /// Connects when it is first used.
    pub(crate) fn new(settings: &FirestoreSettings) -> Result<Self, Error> {
        let (endpoint, tls) = match &settings.emulator_host {
            Some(host) => (endpoint(&format!("http://{host}"))?, None),
            None => {
                let uri = settings.endpoint.as_deref().unwrap_or(PRODUCTION);
                let roots = settings.ssl_ca_certs.clone();
                let connector = HttpsConnectorBuilder::new()
                    .with_tls_config(tls(roots.map_or(Roots::System, Roots::File))?)
                    .https_only()
                    .enable_http2()
                    .build();
                (endpoint(uri)?, Some(connector))
            }
        };
        let channel = dial(&endpoint, tls.as_ref());
        Ok(Self {
            endpoint,
            tls,
            current: Mutex::new(Used { number: 0, channel }),
        })
    }

    pub(crate) fn current(&self) -> Used {
        self.lock().clone()
    }

    /// The next call is made on a new one, unless somebody has already seen to that.
    pub(crate) fn replace(&self, used: &Used) {
        let mut current = self.lock();
        if current.number == used.number {
            current.number += 1;
            current.channel = dial(&self.endpoint, self.tls.as_ref());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Used> {
        self.current.lock().expect("no holder of this lock panics")
    }
}

fn dial(endpoint: &Endpoint, tls: Option<&HttpsConnector<HttpConnector>>) -> Channel {
    match tls {
        None => endpoint.connect_lazy(),
        Some(tls) => endpoint.connect_with_connector_lazy(tls.clone()),
    }
}

// === impl Used ===

impl Used {
    pub(crate) fn grpc(&self) -> FirestoreClient<Channel> {
        FirestoreClient::new(self.channel.clone())
    }
}

// === impl Place ===

impl Place {
    /// The host that shows us a certificate.
    pub(crate) fn host(&self) -> &str {
        let uri = self.endpoint.as_deref().unwrap_or(PRODUCTION);
        let host = uri.strip_prefix("https://").unwrap_or(uri);
        host.trim_end_matches('/')
    }

    pub(crate) fn new(settings: &FirestoreSettings) -> Self {
        Self {
            project: settings.project.clone(),
            database: settings.database.clone(),
            emulator: settings.emulator_host.clone(),
            endpoint: settings.endpoint.clone(),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Firestore database {} of project {}",
            self.database, self.project
        )?;
        match (&self.emulator, &self.endpoint) {
            (Some(host), _) => write!(f, " (emulator at {host})"),
            (None, Some(endpoint)) => write!(f, " (at {endpoint})"),
            (None, None) => Ok(()),
        }
    }
}
