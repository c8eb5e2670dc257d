//! The page: one screen per file, rendered here, framed by `semel-ui`. A screen answers from what is known: the census,
//! the memory of this gate, and looks at single records. Only acts change anything, and all of them go through
//! `operate`, as those of the command do.

mod screen;
mod format;
mod rows;
mod overview;
mod traffic;
mod search;
mod record;
mod running;
mod letters;
mod letter;
mod job;
mod doubt;
mod act;
mod mismatches;
mod routes;
mod test_box;
mod duplicates;
mod audit;

pub(crate) use screen::{PageState, Screen};

use axum::Router;
use axum::routing::{get, post};
use std::sync::Arc;

/// All screens, with paths below the root.
pub(crate) fn screens(state: Arc<PageState>) -> Router {
    Router::new()
        .route("/", get(overview::show))
        .route("/live", get(overview::live_part))
        .route("/search", get(search::show))
        .route("/records/{key}", get(record::show))
        .route("/records/{key}/download", get(record::download))
        .route("/running", get(running::show))
        .route("/letters", get(letters::show))
        .route("/letters/try", post(letters::try_out))
        .route("/letters/{id}", get(letter::show))
        .route("/letters/{id}/body", get(letter::download))
        .route("/letters/{id}/redrive", post(letter::redrive))
        .route("/letters/{id}/discard", post(letter::discard))
        .route("/letters/jobs/{id}", get(job::show))
        .route("/letters/jobs/{id}/redrive", post(job::redrive))
        .route("/letters/jobs/{id}/discard", post(job::discard))
        .route("/letters/jobs/{id}/stop", post(job::stop))
        .route("/doubt", get(doubt::show))
        .route("/records/{key}/release", post(act::release))
        .route("/records/{key}/forget", post(act::forget))
        .route("/records/{key}/resolve", post(act::resolve))
        .route("/mismatches", get(mismatches::show))
        .route("/routes", get(routes::show))
        .route(
            "/routes/{name}",
            get(routes::show_one).post(test_box::try_out),
        )
        .route("/duplicates", get(duplicates::show))
        .route("/audit", get(audit::show))
        .with_state(state)
}
