//! Fetching a key set: over TLS, or from this host; one document, of a bounded size, without following redirects.

use crate::settings::key_set_url;
use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL};
use http::{HeaderMap, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;

/// Issuers' key sets have a few KiB.
const PAGE_BYTES_MAX: usize = 256 * 1024;

/// Fetches key sets.
#[derive(Debug, Default)]
pub(super) struct Fetcher {
    /// Reading the machine's certificates takes a while, and not every gate needs them.
    client: OnceCell<KeySetClient>,
}

/// A key set as it came.
#[derive(Debug)]
pub(super) struct Fetched {
    pub(super) page: Bytes,
    /// How long the issuer says that it may be kept.
    pub(super) max_age: Option<Duration>,
}

type KeySetClient = Client<HttpsConnector<HttpConnector>, Empty<Bytes>>;

// === impl Fetcher ===

impl Fetcher {
    /// What is at this URL, or why it is not to be had.
    pub(super) async fn get(&self, url: &Uri) -> Result<Fetched, String> {
        key_set_url(&url.to_string()).map_err(|error| error.to_string())?;
        let client = self.client.get_or_try_init(new_client).await?;
        let request = Request::get(url.clone())
            .header(ACCEPT, "application/json")
            .body(Empty::new())
            .expect("a URL that was parsed is good for a request");
        let response = client
            .request(request)
            .await
            .map_err(|error| told(&error))?;
        let (parts, body) = response.into_parts();
        if parts.status != StatusCode::OK {
            return Err(format!("the answer was {}", parts.status));
        }
        let body = Limited::new(body, PAGE_BYTES_MAX).collect().await;
        Ok(Fetched {
            page: body.map_err(|error| error.to_string())?.to_bytes(),
            max_age: max_age(&parts.headers),
        })
    }
}

async fn new_client() -> Result<KeySetClient, String> {
    let connector = spawn_blocking(|| {
        let ring = rustls::crypto::ring::default_provider();
        let builder = HttpsConnectorBuilder::new()
            .with_provider_and_native_roots(ring)
            .map_err(|error| format!("no https without the machine's certificates: {error}"))?;
        // Which plain ones are fetched was decided before.
        Ok::<_, String>(builder.https_or_http().enable_http1().build())
    });
    let connector = connector.await.map_err(|error| error.to_string())??;
    Ok(Client::builder(TokioExecutor::new())
        .pool_max_idle_per_host(0)
        .build(connector))
}

/// The cause says more than the library's own words.
fn told(error: &hyper_util::client::legacy::Error) -> String {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    cause.unwrap_or_else(|| error.to_string())
}

fn max_age(headers: &HeaderMap) -> Option<Duration> {
    let directives = headers.get(CACHE_CONTROL)?.to_str().ok()?.split(',');
    let seconds = directives
        .filter_map(|directive| directive.trim().strip_prefix("max-age="))
        .find_map(|seconds| seconds.parse().ok())?;
    Some(Duration::from_secs(seconds))
}
