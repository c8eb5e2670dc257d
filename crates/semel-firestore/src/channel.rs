//! The way to a database: where it is, and the channel that calls go through.

use crate::settings::FirestoreSettings;
use hyper_rustls::HttpsConnectorBuilder;
use semel::Error;
use std::fmt;
use std::time::Duration;
use tonic::transport::{Channel, Endpoint};

const PRODUCTION: &str = "https://firestore.googleapis.com";

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// How often an idle connection is asked whether it is still there: more often than networks forget one.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// Where the database is, for messages.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) project: String,
    pub(crate) database: String,
    pub(crate) emulator: Option<String>,
}

/// A channel, which connects when it is first used.
pub(crate) fn open(settings: &FirestoreSettings) -> Result<Channel, Error> {
    match &settings.emulator_host {
        Some(host) => Ok(endpoint(&format!("http://{host}"))?.connect_lazy()),
        None => secure(&endpoint(PRODUCTION)?),
    }
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
        .keep_alive_while_idle(true)
        .tcp_nodelay(true))
}

/// A channel that believes what this machine believes.
fn secure(endpoint: &Endpoint) -> Result<Channel, Error> {
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(crate::token::tls()?)
        .https_only()
        .enable_http2()
        .build();
    Ok(endpoint.connect_with_connector_lazy(connector))
}

// === impl Place ===

impl Place {
    pub(crate) fn new(settings: &FirestoreSettings) -> Self {
        Self {
            project: settings.project.clone(),
            database: settings.database.clone(),
            emulator: settings.emulator_host.clone(),
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
        match &self.emulator {
            Some(host) => write!(f, " (emulator at {host})"),
            None => Ok(()),
        }
    }
}
