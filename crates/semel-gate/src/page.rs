//! The page: one screen per file, rendered here, framed by `semel-ui`. A screen answers from what is known: the census,
//! the memory of this gate, and looks at single records. Only acts change anything, and all of them go through
//! `operate`, as those of the command do.

mod act;
mod audit;
mod doubt;
mod format;
mod job;
mod letter;
mod letters;
mod rows;
mod running;
mod screen;

pub(crate) use screen::{PageState, Screen};

use axum::Router;
use axum::routing::{get, post};
use std::sync::Arc;

/// All screens, with paths below the root.
pub(crate) fn screens(state: Arc<PageState>) -> Router {
    Router::new()
        .route("/running", get(running::show))
        .route("/letters", get(letters::show))
        .route("/letters/try", post(letters::try_out))
        .route("/letters/{id}", get(letter::show))
        .route("/letters/{id}/redrive", post(letter::redrive))
        .route("/letters/{id}/discard", post(letter::discard))
        .route("/letters/jobs/{id}", get(job::show))
        .route("/letters/jobs/{id}/progress", get(job::progress))
        .route("/letters/jobs/{id}/redrive", post(job::redrive))
        .route("/letters/jobs/{id}/discard", post(job::discard))
        .route("/letters/jobs/{id}/stop", post(job::stop))
        .route("/doubt", get(doubt::show))
        .route("/records/{key}/release", post(act::release))
        .route("/records/{key}/forget", post(act::forget))
        .route("/records/{key}/resolve", post(act::resolve))
        .route("/audit", get(audit::show))
        .with_state(state)
}
