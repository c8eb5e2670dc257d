//! RIGHT: the event is claimed first, and the credit and the record of the run are committed together.
//!
//! Of deliveries at the same moment one runs, and the others hear its answer. After a crash the next delivery runs, and
//! a run that was overtaken cannot commit: [`complete_in`] refuses it by its fence.

use axum::Json;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use semel::key::{Delivered, KeyError, KeyRule, Scope};
use semel::protocol::Lease;
use semel::work::{Completes, Failure, Work};
use semel::{Ended, Fingerprint, Outcome, Semel};
use semel_postgres::{PostgresSettings, PostgresStore, complete_in};
use serde_json::{Value, json};
use std::env;
use std::error::Error;
use std::time::Duration;
use tokio_postgres::{Client, NoTls};

type Answer = (StatusCode, Json<Value>);
type Anything = Box<dyn Error + Send + Sync>;

async fn receive(
    State(semel): State<Semel>,
    headers: HeaderMap,
    Json(event): Json<Value>,
) -> Answer {
    let work = match work(&headers, &event) {
        Ok(work) => work,
        Err(error) => return refusal(StatusCode::BAD_REQUEST, &error.to_string()),
    };
    let Some(account) = event
        .get("account")
        .and_then(Value::as_str)
        .map(str::to_owned)
    else {
        return refusal(StatusCode::BAD_REQUEST, "an event has an account");
    };
    let ended = semel.run(work, |run| async move {
        let credited = credit(run.lease(), &account).await;
        credited.map_err(|error| Failure::retryable(error.to_string()))
    });
    match ended.await {
        Ok(ended) => answer(&ended),
        Err(error) => refusal(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()),
    }
}

/// Which work an event is. The effect records itself, in its own transaction.
fn work(headers: &HeaderMap, event: &Value) -> Result<Work, KeyError> {
    let payload = event.to_string();
    let mut delivered = Delivered::payload(payload.as_bytes());
    if let Some(key) = headers
        .get("idempotency-key")
        .and_then(|value| value.to_str().ok())
    {
        delivered = delivered.with("header:idempotency-key", key);
    }
    let rule: KeyRule = "idempotency-key".parse()?;
    let key = rule.key(&Scope::new("example", "webhook"), &delivered)?;
    Ok(Work::new(key, Fingerprint::of(payload.as_bytes()))
        .lease(Duration::from_millis(500))
        .completes(Completes::Handler))
}

async fn credit(lease: &Lease, account: &str) -> Result<Outcome, Anything> {
    let mut client = connect().await?;
    let outcome = Outcome::ok(json!({ "credited": account }).to_string());
    let transaction = client.transaction().await?;
    transaction
        .execute("INSERT INTO webhook_credit VALUES ($1)", &[&account])
        .await?;
    complete_in(&transaction, lease, &outcome).await?;
    transaction.commit().await?;
    Ok(outcome)
}

fn answer(ended: &Ended) -> Answer {
    match ended {
        Ended::Ran(recorded) | Ended::Replayed(recorded) | Ended::Unrecorded(recorded) => {
            let body = serde_json::from_slice(&recorded.outcome.body_bytes());
            (StatusCode::OK, Json(body.unwrap_or(Value::Null)))
        }
        Ended::Mismatched => refusal(
            StatusCode::UNPROCESSABLE_ENTITY,
            "this key was used with another payload",
        ),
        Ended::Unread => refusal(StatusCode::SERVICE_UNAVAILABLE, "send it again later"),
        Ended::Failed(_) => refusal(StatusCode::INTERNAL_SERVER_ERROR, "failed: send it again"),
        Ended::Busy { .. } | Ended::NotYet { .. } | Ended::Full { .. } | Ended::Stale => {
            refusal(StatusCode::CONFLICT, "under way: send it again later")
        }
        Ended::Parked => refusal(StatusCode::CONFLICT, "a person must look first"),
    }
}

fn refusal(status: StatusCode, says: &str) -> Answer {
    (status, Json(json!({ "error": says })))
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
    let store = PostgresStore::connect(PostgresSettings::new(env::var("DATABASE_URL")?)).await?;
    let port = env::var("PORT").unwrap_or_else(|_| "3000".into());
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    let app = Router::new()
        .route("/events", post(receive))
        .with_state(Semel::new(store));
    Ok(axum::serve(listener, app).await?)
}
