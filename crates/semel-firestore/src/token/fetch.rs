//! Asking for a token: one HTTP request, bounded in time and size.

use super::credentials::Account;
use crate::channel::tls;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use semel::Error;
use semel::clock::{Clock, SystemClock};
use semel_tls::Roots;
use serde::Deserialize;
use std::error::Error as StdError;
use std::time::Duration;

/// How long an answer may take: callers wait meanwhile.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The largest answer that is read; tokens have some 2 KiB.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Asks for tokens.
#[derive(Debug)]
pub(crate) struct Fetcher {
    http: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    clock: SystemClock,
}

/// A token as it is granted.
#[derive(Deserialize)]
pub(crate) struct Granted {
    pub(crate) access_token: String,
    /// In seconds.
    pub(crate) expires_in: u64,
}

/// Why none was granted, as OAuth says it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Refused {
    error: String,
    error_description: String,
}

// === impl Fetcher ===

impl Fetcher {
    pub(crate) fn new(clock: SystemClock) -> Result<Self, Error> {
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls(Roots::System)?)
            .https_or_http()
            .enable_http1()
            .build();
        Ok(Self {
            http: Client::builder(TokioExecutor::new()).build(connector),
            clock,
        })
    }

    /// Asks once.
    pub(crate) async fn fetch(&self, account: &Account) -> Result<Granted, Error> {
        let uri = account.token_uri();
        let request = self.request(account, uri)?;
        let answered = tokio::time::timeout(TIMEOUT, self.send(request)).await;
        let unavailable = |what: &str| not_had(account, what);
        let (status, body) = match answered {
            Err(_) => return Err(unavailable("did not answer in time")),
            Ok(Err(error)) => return Err(unavailable(&format!("cannot be reached ({error})"))),
            Ok(Ok(answer)) => answer,
        };
        match status {
            StatusCode::OK => serde_json::from_slice(&body).map_err(|_| {
                Error::denied(format!("no token for Firestore: {uri} answered, and not with a token; look what answers there"))
            }),
            status if is_for_now(status) => Err(unavailable(&format!("answered {status}"))),
            status => {
                let why: Refused = serde_json::from_slice(&body).unwrap_or_default();
                let said = format!("{} {}", why.error, why.error_description);
                Err(Error::denied(format!(
                    "no token for Firestore: {uri} answered {status} ({}); look at the credentials, a retry is safe and succeeds \
                     once they are right",
                    said.trim()
                )))
            }
        }
    }

    fn request(&self, account: &Account, uri: &str) -> Result<Request<Full<Bytes>>, Error> {
        let form = match account {
            Account::Machine { .. } => {
                let request = Request::get(uri).header("Metadata-Flavor", "Google");
                return request.body(Full::default()).map_err(|_| bad_uri(uri));
            }
            Account::Service {
                email, key, key_id, ..
            } => {
                let now = self.clock.wall().0 / 1_000_000;
                let assertion = key.assertion(email, key_id.as_deref(), uri, now);
                let assertion = assertion.map_err(|what| {
                    Error::invalid(format!(
                        "Firestore store: the private_key of {email} {what}; make a new key file"
                    ))
                })?;
                form(&[
                    ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
                    ("assertion", &assertion),
                ])
            }
            Account::User { secrets, .. } => form(&[
                ("grant_type", "refresh_token"),
                ("client_id", &secrets.client_id),
                ("client_secret", &secrets.client_secret),
                ("refresh_token", &secrets.refresh_token),
            ]),
        };
        Request::post(uri)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Full::from(form))
            .map_err(|_| bad_uri(uri))
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Result<(StatusCode, Bytes), String> {
        let answer = self
            .http
            .request(request)
            .await
            .map_err(|it| innermost(&it))?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX)
            .collect()
            .await;
        Ok((status, body.map_err(|it| innermost(&*it))?.to_bytes()))
    }
}

/// There is no token for now; and where it comes from, if not from where we asked.
pub(super) fn not_had(account: &Account, what: &str) -> Error {
    let instead = match account {
        Account::Machine { .. } => {
            ", which is there on Google's machines only; elsewhere set GOOGLE_APPLICATION_CREDENTIALS to a credentials file, \
             or run `gcloud auth application-default login`"
        }
        Account::Service { .. } | Account::User { .. } => "",
    };
    let uri = account.token_uri();
    Error::unavailable(format!(
        "no token for Firestore: {uri} {what}{instead}; nothing was sent without one, a retry is safe"
    ))
}

/// Whether whoever answers so may grant a token a moment later.
fn is_for_now(status: StatusCode) -> bool {
    let is_busy = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS];
    status.is_server_error() || is_busy.contains(&status)
}

fn form(pairs: &[(&str, &str)]) -> String {
    let encoded = |text| utf8_percent_encode(text, NON_ALPHANUMERIC);
    let pairs = pairs
        .iter()
        .map(|(name, value)| format!("{name}={}", encoded(value)));
    pairs.collect::<Vec<_>>().join("&")
}

fn innermost(error: &(dyn StdError + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

fn bad_uri(uri: &str) -> Error {
    Error::invalid(format!(
        "Firestore store: the token_uri {uri} of the credentials is no URI; make a new key file"
    ))
}
