//! What no cloud offers: the history, faults, the clock, waiting until all is done, a fresh start.
//!
//! Everything is under `/_semel/`, speaks JSON, and is guarded against web pages that know the port.

mod history;
mod faults;
mod clock;
mod idle;
mod reset;
mod interface;
mod guard;
mod error;

pub(crate) use guard::{Guard, host, is_this_machine};

use crate::context::Context;
use crate::faults::Fault;
use crate::storage::StorageError;
use async_trait::async_trait;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Json, Router};
use error::AdminError;
use serde_json::{Map, Value, json};
use std::fmt::Debug;
use std::sync::Arc;
use tokio::sync::{Mutex, watch};

const ENDPOINTS: [&str; 16] = [
    "GET /_semel/",
    "GET /_semel/history?resource=&id=&after=&limit=",
    "GET /_semel/history.jsonl",
    "DELETE /_semel/history",
    "GET /_semel/faults",
    "PUT /_semel/faults",
    "POST /_semel/faults",
    "DELETE /_semel/faults",
    "GET /_semel/clock",
    "POST /_semel/clock/advance",
    "POST /_semel/wait-idle",
    "POST /_semel/reset",
    "GET /_semel/interface",
    "GET /_semel/schemas",
    "GET /_semel/refusals",
    "DELETE /_semel/refusals",
];

/// What is administered.
#[derive(Clone, Debug)]
pub(crate) struct Admin(Arc<AdminInner>);

#[derive(Debug)]
struct AdminInner {
    context: Arc<Context>,
    services: Vec<Arc<dyn Service>>,
    declared: Arc<dyn Provisioner>,
    guard: Guard,
    /// What was to go wrong when the broker started.
    faults_at_start: Vec<Fault>,
    /// One change at a time.
    change: Mutex<()>,
}

/// What the admin API needs of a service.
#[async_trait]
pub(crate) trait Service: Debug + Send + Sync {
    /// How many resources of each kind it holds: `queues`, `tasks`.
    fn counts(&self) -> Vec<(&'static str, usize)>;

    /// The schemas it holds, with their revisions and what uses them.
    fn schemas(&self) -> Vec<Value> {
        Vec::new()
    }

    /// What is still to be done or under way, in words, at most `limit` of it; what waits for a retry
    /// is. What waits for somebody who pulls is, if `pull` says so. Asked often, so it should stop
    /// looking at the limit.
    fn busy(&self, pull: bool, limit: usize) -> Vec<String>;

    /// Counts up whenever `busy` may have become shorter.
    fn changes(&self) -> watch::Receiver<u64>;

    /// Forgets everything, in storage too.
    async fn reset(&self) -> Result<(), StorageError>;
}

/// What the settings say is there from the start: queues, topics, subscriptions.
#[async_trait]
pub(crate) trait Provisioner: Debug + Send + Sync {
    /// Makes those that are missing.
    async fn provision(&self) -> Result<(), String>;
}

// === impl Admin ===

impl Admin {
    pub(crate) fn new(
        context: Arc<Context>,
        services: Vec<Arc<dyn Service>>,
        declared: Arc<dyn Provisioner>,
        guard: Guard,
    ) -> Self {
        Self(Arc::new(AdminInner {
            faults_at_start: context.faults.list(),
            context,
            services,
            declared,
            guard,
            change: Mutex::default(),
        }))
    }

    fn context(&self) -> &Context {
        &self.0.context
    }
}

/// Everything under `/_semel/`.
pub(crate) fn routes(admin: Admin) -> Router {
    let changed_faults = get(faults::show)
        .put(faults::replace)
        .post(faults::add)
        .delete(faults::clear);
    Router::new()
        .route("/_semel", get(about))
        .route("/_semel/", get(about))
        .route("/_semel/history", get(history::show).delete(history::clear))
        .route("/_semel/history.jsonl", get(history::export))
        .route("/_semel/faults", changed_faults)
        .route("/_semel/clock", get(clock::show))
        .route("/_semel/clock/advance", post(clock::advance))
        .route("/_semel/wait-idle", post(idle::wait))
        .route("/_semel/reset", post(reset::reset))
        .route("/_semel/interface", get(interface::show))
        .route("/_semel/schemas", get(interface::schemas))
        .route(
            "/_semel/refusals",
            get(interface::refusals).delete(interface::clear_refusals),
        )
        .route("/_semel/{*rest}", any(nowhere))
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(admin.clone(), guarded))
        .with_state(admin)
}

async fn guarded(State(admin): State<Admin>, request: Request, next: Next) -> Response {
    match admin.0.guard.check(request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => AdminError::from(refusal).into_response(),
    }
}

async fn about(State(admin): State<Admin>) -> Json<Value> {
    let counts = admin.0.services.iter().flat_map(|it| it.counts());
    let counts: Map<_, _> = counts
        .map(|(name, count)| (name.to_owned(), count.into()))
        .collect();
    Json(json!({
        "what": "semel broker: a local Cloud Tasks and Pub/Sub that can be told to misbehave",
        "version": env!("CARGO_PKG_VERSION"),
        "counts": counts,
        "faults": faults::shown(&admin),
        "clock": clock::shown(&admin),
        "endpoints": ENDPOINTS,
    }))
}

async fn nowhere(request: Request) -> AdminError {
    let path = request.uri().path();
    AdminError::not_found(format!("there is no {path}. Ask GET /_semel/ for what is"))
}

async fn wrong_method(request: Request) -> AdminError {
    let (method, path) = (request.method(), request.uri().path());
    AdminError::wrong_method(format!(
        "{path} does not know {method}. Ask GET /_semel/ for what is understood"
    ))
}

#[cfg(test)]
mod tests;
