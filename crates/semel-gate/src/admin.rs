//! The admin address: health, metrics, records and letters.

mod guard;
pub(crate) mod deliveries;

use crate::audit::{Via, Who};
use crate::connections::Connections;
use crate::gate::{Gate, Phase};
use crate::health::{self, STORE_WITHIN};
use crate::invisible::has_visible;
use crate::listener::Listener;
use crate::operate::{Operator, PAGE_ITEMS_DEFAULT, PAGE_ITEMS_MAX, Refused, Verdict, letters};
use crate::page::{PageState, screens};
use crate::redrive::{IfUnknown, redrive};
use crate::router_service::RouterService;
use axum::extract::rejection::QueryRejection;
use axum::extract::{ConnectInfo, DefaultBodyLimit, FromRequestParts, Path, Query, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use bytes::Bytes;
use semel::Key;
use semel::protocol::{Fence, State as RecordState};
use semel::store::Cursor;
use semel_ui::{Role, mount};
use serde::Deserialize;
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::time::timeout;

/// An act says little.
const BODY_BYTES_MAX: usize = 64 * 1024;

type JsonAnswer = Result<Json<Value>, Refused>;

pub(crate) async fn serve(gate: Arc<Gate>, socket: TcpListener) {
    let listener = Listener::new(
        &gate,
        socket,
        "admin",
        gate.settings.limits.admin_connections_max,
    );
    let service = RouterService::new(router(Arc::clone(&gate)), &gate.settings.limits);
    listener.serve(service, &Connections::default()).await;
}

fn router(gate: Arc<Gate>) -> Router {
    let page = page(&gate);
    api(gate).merge(page)
}

/// The page, which has a guard of its own.
fn page(gate: &Arc<Gate>) -> Router {
    let settings = &gate.settings;
    let place = format!("{} · {}", settings.namespace, settings.name);
    let state = PageState::of_gate(gate, place);
    mount(Arc::clone(&gate.access), screens(Arc::new(state)))
}

fn api(gate: Arc<Gate>) -> Router {
    Router::new()
        .route("/healthz", get(alive))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .route("/records", get(records_list))
        .route("/records/{key}", get(record_show))
        .route("/records/{key}/release", post(record_release))
        .route("/records/{key}/forget", post(record_forget))
        .route("/records/{key}/resolve", post(record_resolve))
        .route("/deliveries", get(deliveries::list))
        .route("/deliveries/stream", get(deliveries::stream))
        .route("/find", get(deliveries::find))
        .route("/letters", get(letters_list))
        .route("/letters/{id}", get(letter_show))
        .route("/letters/{id}/redrive", post(letter_redrive))
        .route("/letters/{id}/discard", post(letter_discard))
        .fallback(unknown)
        .method_not_allowed_fallback(other_method)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(from_fn_with_state(Arc::clone(&gate), guard::guard))
        .with_state(gate)
}

// === Health and metrics ===

async fn ready(State(gate): State<Arc<Gate>>) -> Response {
    if *gate.phase.borrow() != Phase::Serving {
        return (StatusCode::SERVICE_UNAVAILABLE, "draining\n").into_response();
    }
    if let Some(paused) = gate.semel.paused() {
        tracing::warn!(why = %paused, "not ready");
        let why = "outcomes in hand are not recorded; nothing more is claimed\n";
        return (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    }
    let trouble = health::trouble(&gate).await;
    if trouble.is_none() {
        return "ready\n".into_response();
    }
    tracing::warn!(why = %trouble, "not ready");
    let why = match trouble.store {
        _ if !trouble.is_total => {
            return "ready, but not every route; the log says why\n".into_response();
        }
        Some(_) => "the store does not take writes; the log says why\n",
        None => "rows do not land; the log says why\n",
    };
    (StatusCode::SERVICE_UNAVAILABLE, why).into_response()
}

/// The process is alive whatever its store does, and a restart would not help the store: it is told, and no more. Nothing
/// is asked: whoever ends processes that are slow to answer must not end this one for its store.
async fn alive(State(gate): State<Arc<Gate>>) -> &'static str {
    if gate.store.refuses() {
        return "alive, and the store does not take writes; the log says why\n";
    }
    "alive\n"
}

async fn metrics(State(gate): State<Arc<Gate>>) -> Response {
    let letters = match timeout(STORE_WITHIN, letters::count(gate.letters.as_ref())).await {
        Ok(Ok(count)) => Some(count),
        Ok(Err(_)) | Err(_) => None,
    };
    let pending = gate.semel.pending_count();
    gate.metrics
        .text(&gate.routes, letters, pending)
        .into_response()
}

// === Records ===

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    state: Option<String>,
    after: Option<String>,
    limit: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ShowQuery {
    #[serde(default)]
    body: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ForgetQuery {
    #[serde(default)]
    letters: bool,
    /// Read where the operator is named.
    #[serde(default, rename = "why")]
    _why: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Resolve {
    r#as: String,
    fence: Option<u64>,
}

async fn records_list(
    operator: Operator,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> JsonAnswer {
    let Query(query) = query?;
    let state = query.state.as_deref().map(state).transpose()?;
    let after = query.after()?;
    let told = operator.records(state, after.as_ref(), query.limit()?);
    Ok(Json(told.await?))
}

async fn record_show(
    operator: Operator,
    Path(key): Path<String>,
    query: Result<Query<ShowQuery>, QueryRejection>,
) -> JsonAnswer {
    let Query(query) = query?;
    Ok(Json(operator.record(&read_key(&key)?, query.body).await?))
}

async fn record_release(operator: Operator, Path(key): Path<String>) -> JsonAnswer {
    Ok(Json(operator.release(&read_key(&key)?).await?))
}

async fn record_forget(
    operator: Operator,
    Path(key): Path<String>,
    query: Result<Query<ForgetQuery>, QueryRejection>,
) -> JsonAnswer {
    let Query(query) = query?;
    let key = read_key(&key)?;
    Ok(Json(match query.letters {
        true => operator.forget_with_letters(&key).await?,
        false => operator.forget(&key).await?,
    }))
}

async fn record_resolve(operator: Operator, Path(key): Path<String>, body: Bytes) -> JsonAnswer {
    let mistaken = |why: String| {
        let what = r#"send {"as": "succeeded"}, "failed" or "retry", and "fence": NUMBER for one run; nothing was done"#;
        Refused::mistaken(why, what)
    };
    let key = read_key(&key)?;
    let resolve: Resolve =
        serde_json::from_slice(&body).map_err(|error| mistaken(error.to_string()))?;
    let verdict: Verdict = resolve.r#as.parse().map_err(mistaken)?;
    let fence = resolve.fence.map(Fence);
    Ok(Json(operator.resolve(&key, verdict, fence).await?))
}

// === Letters ===

async fn letters_list(
    operator: Operator,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> JsonAnswer {
    let Query(query) = query?;
    if query.state.is_some() {
        return Err(Refused::mistaken(
            "letters have a reason, no state",
            "leave `state` out",
        ));
    }
    let after = query.after()?;
    let told = operator.letters(after.as_ref(), query.limit()?);
    Ok(Json(told.await?))
}

async fn letter_show(operator: Operator, Path(id): Path<String>) -> JsonAnswer {
    Ok(Json(operator.letter(&id).await?))
}

async fn letter_discard(operator: Operator, Path(id): Path<String>) -> JsonAnswer {
    Ok(Json(operator.discard(&id).await?))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RedriveQuery {
    #[serde(default)]
    run_again: bool,
    /// Read where the operator is named.
    #[serde(default, rename = "why")]
    _why: String,
}

/// In a task of its own: an operator that hangs up does not leave a run without its letter's end.
async fn letter_redrive(
    State(gate): State<Arc<Gate>>,
    operator: Operator,
    Path(id): Path<String>,
    query: Result<Query<RedriveQuery>, QueryRejection>,
) -> JsonAnswer {
    let Query(query) = query?;
    let if_unknown = if query.run_again {
        IfUnknown::RunAgain
    } else {
        IfUnknown::Refuse
    };
    let tasks = gate.deliveries.clone();
    let redriven = tasks.spawn(async move { redrive(&gate, &operator, &id, if_unknown).await });
    let told = redriven.await.unwrap_or_else(|_| {
        Err(Refused::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the gate failed",
            "please report this with the gate's log; whether the work took effect is in its record",
        ))
    });
    Ok(Json(told?))
}

// === What nobody serves ===

async fn unknown() -> Refused {
    Refused::absent(
        "nothing has this path",
        "ask for /records, /letters, /deliveries, /find, /metrics, /healthz or /readyz",
    )
}

async fn other_method() -> Refused {
    Refused::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "this path takes another method",
        "look with GET, act with POST; nothing was done",
    )
}

fn read_key(text: &str) -> Result<Key, Refused> {
    let mistaken = |error: semel::key::KeyError| {
        let what = "copy the whole key from a log line or `semel records list`";
        Refused::mistaken(error.to_string(), what)
    };
    text.parse().map_err(mistaken)
}

fn state(word: &str) -> Result<RecordState, Refused> {
    let state = RecordState::ALL.into_iter().find(|s| s.word() == word);
    state.ok_or_else(|| {
        Refused::mistaken(
            format!("{word:?} is no state"),
            "say running, waiting, succeeded, failed or parked",
        )
    })
}

// === impl ListQuery ===

impl ListQuery {
    fn after(&self) -> Result<Option<Cursor>, Refused> {
        let read = |text: &String| {
            hex::decode(text).map_err(|_| {
                Refused::mistaken(
                    format!("{text:?} is not a cursor"),
                    "pass on `next` of the page before, as it is",
                )
            })
        };
        let bytes = self.after.as_ref().map(read).transpose()?;
        Ok(bytes.map(|bytes| Cursor(bytes.into())))
    }

    fn limit(&self) -> Result<u32, Refused> {
        let limit = self.limit.unwrap_or(PAGE_ITEMS_DEFAULT);
        if (1..=PAGE_ITEMS_MAX).contains(&limit) {
            return Ok(limit);
        }
        Err(Refused::mistaken(
            format!("limit {limit} is not between 1 and {PAGE_ITEMS_MAX}"),
            "ask for pages, and pass on `next`",
        ))
    }
}

// === impl Operator ===

impl FromRequestParts<Arc<Gate>> for Operator {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, gate: &Arc<Gate>) -> Result<Self, Refused> {
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        let by = peer.map_or_else(String::new, |ConnectInfo(peer)| peer.to_string());
        let operator = Self::new(
            gate.semel.clone(),
            Arc::clone(&gate.letters),
            gate.settings.shared_cache,
            Who::new(by, Via::Admin).because(&why(parts)?),
        );
        let operator = operator.audited(Arc::clone(&gate.audit)).at(gate);
        match parts.extensions.get::<Role>() {
            Some(Role::Act) => Ok(operator),
            Some(Role::View) | None => Ok(operator.who_views()),
        }
    }
}

/// The reason that an act gives, in its query.
fn why(parts: &Parts) -> Result<String, Refused> {
    #[derive(Deserialize)]
    struct Why {
        #[serde(default)]
        why: String,
    }
    let Query(Why { why }) = Query::try_from_uri(&parts.uri)?;
    if why.is_empty() || has_visible(&why) {
        return Ok(why);
    }
    Err(Refused::mistaken(
        "nothing of this reason can be seen",
        "say why in words, or leave `why` out; nothing was done",
    ))
}

// === impl Refused ===

impl From<QueryRejection> for Refused {
    fn from(rejection: QueryRejection) -> Self {
        Self::mistaken(rejection.body_text(), "fix the query; nothing was done")
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (self.status, Json(self.json())).into_response()
    }
}
