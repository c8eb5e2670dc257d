//! The demo handler: a small ledger that shows how often each order took effect.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

/// How often each order took effect.
type Ledger = Arc<Mutex<BTreeMap<String, u32>>>;

/// Serves the handler on a free port.
pub(super) async fn serve() -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let router = Router::new()
        .route("/charge", post(charge))
        .route("/invoice", post(charge))
        .route("/orders", post(charge))
        .route("/ledger", get(show))
        .with_state(Ledger::default());
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(address)
}

/// It does what a naive handler does: every request takes effect.
async fn charge(State(ledger): State<Ledger>, body: String) -> Response {
    let Some(order) = order(&body) else {
        return (StatusCode::BAD_REQUEST, "no \"order\" in the payload\n").into_response();
    };
    let mut ledger = ledger.lock().expect("no holder of this lock panics");
    let times = ledger.entry(order.clone()).or_default();
    *times += 1;
    let answer = json!({"order": order, "charged": *times});
    (StatusCode::CREATED, format!("{answer}\n")).into_response()
}

async fn show(State(ledger): State<Ledger>) -> Json<Value> {
    let ledger = ledger.lock().expect("no holder of this lock panics");
    Json(json!({"effects_by_order": *ledger}))
}

/// The order of a payload, also inside a Pub/Sub envelope.
fn order(body: &str) -> Option<String> {
    let json: Value = serde_json::from_str(body).ok()?;
    let order = |json: &Value| json.get("order")?.as_str().map(str::to_owned);
    order(&json).or_else(|| {
        let data = json.pointer("/message/data")?.as_str()?;
        let data: Value = serde_json::from_slice(&STANDARD.decode(data).ok()?).ok()?;
        order(&data)
    })
}
