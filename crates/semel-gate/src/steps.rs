//! Steps for any language, over HTTP: `POST /steps/<owner>/<name>` begins one, `PUT` records it.
//!
//! The random owner id is the authority, good for the steps of its run only, on a listener of its
//! own.

use crate::active_runs::ActiveRun;
use crate::connections::Connections;
use crate::gate::Gate;
use crate::listener::Listener;
use crate::router_service::RouterService;
use crate::settings::{Route, Settings};
use axum::Router;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use semel::Error;
use semel::protocol::{Held, InDoubt, Owner, State as RecordState, StepBegun};
use semel::store::StoreExt;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;

/// The largest result of a step.
const RESULT_BYTES_MAX: usize = 1024 * 1024;

/// How a handler reaches its steps: `steps_url`, or this host's address when the handler is here.
pub(crate) fn url(settings: &Settings, route: &Route, bound: SocketAddr) -> Option<String> {
    if let Some(url) = &settings.steps_url {
        return Some(url.trim_end_matches('/').to_owned());
    }
    let host = route.upstream.base.host()?;
    let is_here = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
    is_here.then(|| format!("http://{bound}"))
}

pub(crate) async fn serve(gate: Arc<Gate>, socket: TcpListener) {
    let limits = gate.settings.limits.clone();
    let listener = Listener::new(&gate, socket, "steps", limits.steps_connections_max);
    let router = Router::new()
        .route("/steps/{owner}/{name}", post(begin).put(record))
        .layer(DefaultBodyLimit::max(RESULT_BYTES_MAX))
        .with_state(gate);
    let service = RouterService::new(router, &limits);
    listener.serve(service, &Connections::default()).await;
}

async fn begin(
    State(gate): State<Arc<Gate>>,
    Path((owner, name)): Path<(String, String)>,
) -> Response {
    let Some(run) = in_hand(&gate, &owner) else {
        return lease_lost();
    };
    match gate.semel.store().step_begin(&run.lease, &name).await {
        Ok(StepBegun::Run) => go(&run, &name),
        Ok(StepBegun::Memo { fence, .. }) if fence == run.lease.fence => say(
            StatusCode::UNPROCESSABLE_ENTITY,
            "this run recorded a step of this name already: give each step its own name",
        ),
        Ok(StepBegun::Memo { result, .. }) => (StatusCode::OK, result).into_response(),
        Ok(StepBegun::InDoubt(_)) => restart(&gate, &run, &name).await,
        Ok(StepBegun::Settled(_) | StepBegun::Parked | StepBegun::Stale) => lease_lost(),
        Err(error) => store(&error),
    }
}

/// An earlier run began this step and never said how it ended.
async fn restart(gate: &Gate, run: &ActiveRun, name: &str) -> Response {
    if run.in_doubt == InDoubt::Park {
        return say(
            StatusCode::CONFLICT,
            "an earlier run began this step and never finished it: it may or may not have happened, \
             a person must look; end this run with an error",
        );
    }
    match gate.semel.store().step_restart(&run.lease, name).await {
        Ok(Held::Applied(_) | Held::Already(_)) => go(run, name),
        Ok(Held::Settled(_) | Held::Parked | Held::Stale) => lease_lost(),
        Err(error) => store(&error),
    }
}

/// 201: run it, with the step's own key for whatever is called.
fn go(run: &ActiveRun, name: &str) -> Response {
    let body = serde_json::json!({
        "key": run.lease.key.step(run.lease.born, name).to_string(),
        "fence": run.lease.fence.0,
    });
    let json = [(CONTENT_TYPE, "application/json")];
    (StatusCode::CREATED, json, body.to_string()).into_response()
}

async fn record(
    State(gate): State<Arc<Gate>>,
    Path((owner, name)): Path<(String, String)>,
    result: Bytes,
) -> Response {
    let Some(run) = in_hand(&gate, &owner) else {
        return lease_lost();
    };
    match gate
        .semel
        .store()
        .step_complete(&run.lease, &name, &result)
        .await
    {
        Ok(Held::Applied(_)) => StatusCode::NO_CONTENT.into_response(),
        Ok(Held::Already(_)) => recorded_before(&gate, &run, &name, &result).await,
        Ok(Held::Settled(_) | Held::Parked) => lease_lost(),
        Ok(Held::Stale) => not_recorded(&gate, &run).await,
        Err(error) => store(&error),
    }
}

/// The step was recorded before: the same value is a repeat whose answer was lost, another one is a mistake.
async fn recorded_before(gate: &Gate, run: &ActiveRun, name: &str, result: &Bytes) -> Response {
    match gate.semel.store().step_begin(&run.lease, name).await {
        Ok(StepBegun::Memo { result: kept, .. }) if kept != *result => say(
            StatusCode::CONFLICT,
            "another value is recorded for this step, and what is recorded stays; give each step its own name",
        ),
        Ok(StepBegun::Memo { .. }) => StatusCode::NO_CONTENT.into_response(),
        Ok(
            StepBegun::Run
            | StepBegun::InDoubt(_)
            | StepBegun::Settled(_)
            | StepBegun::Parked
            | StepBegun::Stale,
        ) => lease_lost(),
        Err(error) => store(&error),
    }
}

/// Either the run is no longer the owner, or it is, and has not begun the step.
async fn not_recorded(gate: &Gate, run: &ActiveRun) -> Response {
    match gate.semel.store().look(&run.lease.key).await {
        Ok(Some(record)) if record.is_of(&run.lease) && record.state == RecordState::Running => {
            say(
                StatusCode::NOT_FOUND,
                "this run has not begun a step of this name: begin it with POST, then record its result",
            )
        }
        Ok(Some(_) | None) => lease_lost(),
        Err(error) => store(&error),
    }
}

/// The run that the owner id stands for. Other processes may go on with a key, but not with a run.
fn in_hand(gate: &Gate, owner: &str) -> Option<ActiveRun> {
    gate.runs.get(&Owner::parse(owner)?)
}

fn lease_lost() -> Response {
    say(
        StatusCode::GONE,
        "this run no longer holds its lease: stop, its work goes on elsewhere or is settled",
    )
}

fn store(error: &Error) -> Response {
    match error {
        Error::Unavailable(_) | Error::Denied(_) => say(
            StatusCode::SERVICE_UNAVAILABLE,
            "the store cannot be reached; a retry of this call is safe",
        ),
        Error::Invalid(why) => say(StatusCode::BAD_REQUEST, why),
        Error::Corrupt(_) | Error::Bug(_) => {
            tracing::error!(%error, "a step was refused");
            say(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the store refused; the gate's log says why",
            )
        }
    }
}

fn say(status: StatusCode, detail: &str) -> Response {
    (status, format!("{detail}\n")).into_response()
}
