//! What is served and what is not, and what was asked for lately that is not.

use super::Admin;
use crate::interface::{ListedService, RefusalsShown, services};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};

/// Every service with its methods and the fields of its requests.
#[derive(Debug, Serialize)]
pub(super) struct Interface {
    services: Vec<ListedService>,
}

pub(super) async fn show() -> Json<Interface> {
    Json(Interface {
        services: services(),
    })
}

pub(super) async fn schemas(State(admin): State<Admin>) -> Json<Value> {
    let schemas = admin.0.services.iter().flat_map(|it| it.schemas());
    Json(json!({ "schemas": schemas.collect::<Vec<_>>() }))
}

pub(super) async fn refusals(State(admin): State<Admin>) -> Json<RefusalsShown> {
    Json(admin.context().refusals.shown())
}

pub(super) async fn clear_refusals(State(admin): State<Admin>) -> StatusCode {
    admin.context().refusals.clear();
    StatusCode::NO_CONTENT
}
