//! WRONG: looks whether an event is known, then credits the account: check-then-act.
//!
//! Two deliveries of one event at the same moment both look before either has written, and both credit.

use axum::Json;
use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use serde_json::{Value, json};
use std::env;
use std::error::Error;
use tokio_postgres::{Client, NoTls};

type Answer = (StatusCode, Json<Value>);
type Anything = Box<dyn Error + Send + Sync>;

async fn receive(headers: HeaderMap, Json(event): Json<Value>) -> Answer {
    let key = headers.get("idempotency-key");
    let key = key.and_then(|value| value.to_str().ok());
    let (Some(key), Some(account)) = (key, event.get("account").and_then(Value::as_str)) else {
        let says = "an event has an Idempotency-Key and an account";
        return (StatusCode::BAD_REQUEST, Json(json!({ "error": says })));
    };
    match credit(key, account).await {
        Ok(()) => (StatusCode::OK, Json(json!({ "credited": account }))),
        Err(error) => (
            StatusCode::INTERNAL_SERVER_ERROR,
            Json(json!({ "error": error.to_string() })),
        ),
    }
}

async fn credit(key: &str, account: &str) -> Result<(), Anything> {
    let mut client = connect().await?;
    let known = client
        .query_opt("SELECT FROM webhook_event WHERE key = $1 LIMIT 1", &[&key])
        .await?;
    if known.is_some() {
        return Ok(());
    }
    // Here is the gap: whoever else has looked by now goes on, too.
    let transaction = client.transaction().await?;
    transaction
        .execute("INSERT INTO webhook_credit VALUES ($1)", &[&account])
        .await?;
    transaction
        .execute("INSERT INTO webhook_event VALUES ($1)", &[&key])
        .await?;
    Ok(transaction.commit().await?)
}

#[allow(clippy::disallowed_methods, reason = "a program reads its environment")]
async fn connect() -> Result<Client, Anything> {
    let (client, connection) = tokio_postgres::connect(&env::var("DATABASE_URL")?, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

#[tokio::main]
#[allow(clippy::disallowed_methods, reason = "a program reads its environment")]
async fn main() -> Result<(), Anything> {
    let port = env::var("PORT").unwrap_or_else(|_| "3000".into());
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    let app = Router::new().route("/events", post(receive));
    Ok(axum::serve(listener, app).await?)
}
