//! The demo handler: a small ledger that shows how often each order took effect.

use crate::admin_client::{AdminClient, AdminServer};
use axum::extract::State;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, OnceLock};
use tokio::net::TcpListener;

/// How often each order took effect.
type Ledger = Arc<Mutex<BTreeMap<String, u32>>>;

/// How `/send` reaches the local cloud, once that is there.
pub(super) type Cloud = Arc<OnceLock<LocalCloud>>;

/// The local cloud, and where its tasks go.
#[derive(Debug)]
pub(super) struct LocalCloud {
    client: AdminClient,
    task_url: String,
}

const BROKER: AdminServer = AdminServer {
    name: "broker",
    find_it: "it ends with `semel dev`",
    broke: "",
    speaks: "a broker does",
};

/// Serves the handler on a free port.
pub(super) async fn serve(cloud: Cloud) -> anyhow::Result<SocketAddr> {
    let send = Router::new()
        .route("/send/task", post(send_task))
        .route("/send/message", post(send_message))
        .with_state(cloud);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let router = Router::new()
        .route("/charge", post(charge))
        .route("/invoice", post(charge))
        .route("/orders", post(charge))
        .route("/ledger", get(show))
        .with_state(Ledger::default())
        .merge(send);
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

/// Creates a task with this payload, by Cloud Tasks' own API.
async fn send_task(State(cloud): State<Cloud>, body: String) -> Response {
    let url = cloud.get().map(|cloud| cloud.task_url.as_str());
    let request = json!({"url": url, "body": STANDARD.encode(body)});
    let task = json!({"task": {"httpRequest": request}});
    send(
        &cloud,
        "/v2/projects/demo/locations/local/queues/orders/tasks",
        task,
    )
    .await
}

/// Publishes a message with this payload, by Pub/Sub's own API.
async fn send_message(State(cloud): State<Cloud>, body: String) -> Response {
    let messages = json!({"messages": [{"data": STANDARD.encode(body)}]});
    send(
        &cloud,
        "/v1/projects/demo/topics/invoices:publish",
        messages,
    )
    .await
}

async fn send(cloud: &Cloud, path: &str, body: Value) -> Response {
    let Some(LocalCloud { client, .. }) = cloud.get() else {
        return (StatusCode::SERVICE_UNAVAILABLE, "not ready yet\n").into_response();
    };
    match client
        .ask((Method::POST, path.into(), Some(body)), None)
        .await
    {
        Ok((status, answer)) => (status, format!("{answer}\n")).into_response(),
        Err(error) => (StatusCode::BAD_GATEWAY, format!("{error}\n")).into_response(),
    }
}

async fn show(State(ledger): State<Ledger>) -> Json<Value> {
    let ledger = ledger.lock().expect("no holder of this lock panics");
    Json(json!({"effects_by_order": *ledger}))
}

// === impl LocalCloud ===

impl LocalCloud {
    pub(super) fn new(broker: SocketAddr, task_url: String) -> anyhow::Result<Self> {
        let base = format!("http://{broker}").parse()?;
        let client = AdminClient::new(&BROKER, base, None)?;
        Ok(Self { client, task_url })
    }
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
