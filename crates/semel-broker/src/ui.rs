//! The broker's page, at `/ui/`: what is there, what was delivered, and what can be made, sent and disturbed.
//!
//! It is a client of this broker like any other: whatever it changes it asks for by the same JSON that programs use, so
//! it can do nothing that they cannot, and refuses in the same words.

mod ask;
mod audit;
mod screen;
mod names;
mod fields;
mod dispatches;
mod overview;
mod queue;
mod task;
mod topic;
mod subscription;
mod faults;
mod clock;
mod listed;

pub(crate) use ask::Ask;

use crate::context::Context;
use crate::pubsub::Registry;
use crate::tasks::Tasks;
use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use std::sync::Arc;

/// What the page shows.
#[derive(Debug)]
pub(crate) struct Page {
    /// What it asks for as a program would.
    pub(crate) ask: Ask,
    /// Which broker this is.
    pub(crate) place: String,
    pub(crate) context: Arc<Context>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) registry: Arc<Registry>,
}

/// All screens, with paths below the root.
pub(crate) fn screens(page: Page) -> Router {
    let page = Arc::new(page);
    Router::new()
        .route("/", get(overview::show).post(overview::act))
        .route("/latest", get(overview::latest))
        .route("/queues/{*name}", get(queue::show).post(queue::act))
        .route("/tasks/{*name}", get(task::show).post(task::act))
        .route("/topics/{*name}", get(topic::show).post(topic::act))
        .route(
            "/subscriptions/{*name}",
            get(subscription::show).post(subscription::act),
        )
        .route("/faults", get(faults::show).post(faults::act))
        .route("/clock", get(clock::show).post(clock::act))
        .route("/schemas", get(listed::schemas))
        .route("/refusals", get(listed::refusals))
        .route_layer(from_fn_with_state(Arc::clone(&page), audit::audit))
        .with_state(page)
}
