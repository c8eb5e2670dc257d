//! A handler that answers as told and remembers what came.

use anyhow::Context;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// No wait for a delivery is longer.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A delivery, as it came.
#[derive(Clone, Debug)]
pub struct Delivery {
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// Serves on a free port of the loopback interface.
#[derive(Debug)]
pub struct Handler {
    pub url: String,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    statuses: Mutex<Vec<u16>>,
    seen: watch::Sender<Vec<Delivery>>,
}

// === impl Delivery ===

impl Delivery {
    /// A header of Cloud Tasks, without its prefix.
    pub fn told(&self, name: &str) -> Option<&str> {
        let value = self.headers.get(format!("x-cloudtasks-{name}"))?;
        value.to_str().ok()
    }
}

// === impl Handler ===

impl Handler {
    /// Answers with these statuses, one after the other; then with 200.
    pub async fn answering(statuses: &[u16]) -> anyhow::Result<Self> {
        let shared = Arc::new(Shared {
            statuses: Mutex::new(statuses.iter().rev().copied().collect()),
            seen: watch::Sender::default(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/", listener.local_addr()?);
        let router = Router::new().fallback(take).with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { url, shared })
    }

    /// Waits until so many deliveries have come.
    pub async fn deliveries(&self, count: usize) -> anyhow::Result<Vec<Delivery>> {
        let mut seen = self.shared.seen.subscribe();
        let came = tokio::time::timeout(PATIENCE, seen.wait_for(|seen| seen.len() >= count))
            .await
            .with_context(|| format!("{count} deliveries did not come"))?;
        Ok(came?.clone())
    }
}

async fn take(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    shared
        .seen
        .send_modify(|seen| seen.push(Delivery { headers, body }));
    let status = shared.statuses.lock().expect("no panic inside").pop();
    let status = status.and_then(|status| StatusCode::from_u16(status).ok());
    status.unwrap_or_default()
}
