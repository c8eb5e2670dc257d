//! Where a verifier finds the public key: the paths that are known from production.

use super::key::Key;
use crate::context::Context;
use crate::storage::StorageError;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use std::sync::Arc;

/// The pages of the context's issuer.
pub(crate) fn routes(context: Arc<Context>) -> Router {
    Router::new()
        .route("/.well-known/openid-configuration", get(about))
        .route("/oauth2/v3/certs", get(jwks))
        .route("/oauth2/v1/certs", get(pem))
        .with_state(context)
}

async fn about(State(context): State<Arc<Context>>) -> Json<Value> {
    let issuer = &context.issuer.url;
    Json(json!({
        "issuer": issuer,
        "jwks_uri": format!("{issuer}/oauth2/v3/certs"),
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
        "claims_supported": ["aud", "azp", "email", "email_verified", "exp", "iat", "iss", "sub"],
    }))
}

async fn jwks(State(context): State<Arc<Context>>) -> Response {
    page(context.issuer.key().await, Key::as_jwks)
}

async fn pem(State(context): State<Arc<Context>>) -> Response {
    page(context.issuer.key().await, Key::as_pem)
}

fn page(key: Result<&Arc<Key>, StorageError>, show: fn(&Key) -> Value) -> Response {
    match key {
        // A broker in memory has a new key at each start: nobody should remember this one for long.
        Ok(key) => ([(CACHE_CONTROL, "public, max-age=60")], Json(show(key))).into_response(),
        Err(error) => {
            let error = json!({ "error": format!("{error}; try again") });
            (StatusCode::INTERNAL_SERVER_ERROR, Json(error)).into_response()
        }
    }
}
