//! What the gate remembers of its latest deliveries, and what it is asked to find; live, as server-sent events.

use super::{JsonAnswer, read_key};
use crate::find::Question;
use crate::gate::{Gate, Phase};
use crate::operate::{Operator, PAGE_ITEMS_DEFAULT, PAGE_ITEMS_MAX, Refused};
use crate::recent::RecentDelivery;
use crate::settings::Limits;
use axum::Json;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body::Frame;
use semel::Key;
use serde::Deserialize;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

/// How many events wait for a watcher that reads slowly; behind them the memory of the live stream counts what is missed.
const EVENTS_WAITING_MAX: usize = 64;

/// How often a stream says that it is still there, so that both ends notice when the other is not.
const SIGN_OF_LIFE_EVERY: Duration = Duration::from_secs(15);

/// How many streams are open at once: each holds a connection of the admin address for as long as somebody watches.
const STREAMS_MAX: usize = 16;

/// When a page may ask again that lost its stream.
const RETRY_MS: u64 = 1000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeliveriesQuery {
    key: Option<String>,
    id: Option<String>,
    limit: Option<u32>,
}

/// Events, as they come, to one who has a place.
struct Events {
    events: mpsc::Receiver<Bytes>,
    _place: OwnedSemaphorePermit,
}

/// How many streams may be open at once. They leave the other half of the connections to health checks and operators.
pub(crate) fn streams_max(limits: &Limits) -> usize {
    (limits.admin_connections_max / 2).clamp(1, STREAMS_MAX)
}

/// The latest deliveries, newest first: all, those of one key, or those that a name stands for.
pub(super) async fn list(
    State(gate): State<Arc<Gate>>,
    query: Result<Query<DeliveriesQuery>, QueryRejection>,
) -> JsonAnswer {
    let Query(query) = query?;
    let limit = query.limit.unwrap_or(PAGE_ITEMS_DEFAULT);
    if !(1..=PAGE_ITEMS_MAX).contains(&limit) {
        return Err(Refused::mistaken(
            format!("limit {limit} is not between 1 and {PAGE_ITEMS_MAX}"),
            "ask for fewer",
        ));
    }
    let recent = &gate.recent;
    let mut found = match (&query.key, &query.id) {
        (Some(key), _) => recent.of_key(&read_key(key)?),
        (None, Some(id)) => recent.find(id),
        (None, None) => recent.latest(limit as usize).into_iter().rev().collect(),
    };
    found.reverse();
    let told: Vec<_> = found
        .iter()
        .take(limit as usize)
        .map(|it| it.json())
        .collect();
    Ok(Json(
        json!({"gate": gate.settings.name, "deliveries": told}),
    ))
}

/// Every delivery from now on, of one key if it is given.
pub(super) async fn stream(
    State(gate): State<Arc<Gate>>,
    query: Result<Query<DeliveriesQuery>, QueryRejection>,
) -> Result<Response, Refused> {
    let Query(query) = query?;
    let key = query.key.as_deref().map(read_key).transpose()?;
    let place = Arc::clone(&gate.watchers).try_acquire_owned();
    let place = place.map_err(|_| too_many(streams_max(&gate.settings.limits)))?;
    let (events, waiting) = mpsc::channel(EVENTS_WAITING_MAX);
    tokio::spawn(tell(gate, key, events));
    let waiting = Events {
        events: waiting,
        _place: place,
    };
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-store"),
    ];
    Ok((headers, Body::new(waiting)).into_response())
}

fn too_many(most: usize) -> Refused {
    Refused::new(
        StatusCode::TOO_MANY_REQUESTS,
        format!(
            "{most} streams of deliveries are open, which is all that this gate serves at once"
        ),
        "end another `semel watch`, or ask for /deliveries now and then; a retry is safe",
    )
}

/// Tells deliveries until nobody listens or the gate goes down.
async fn tell(gate: Arc<Gate>, key: Option<Key>, events: mpsc::Sender<Bytes>) {
    let (mut live, mut phase) = (gate.recent.subscribe(), gate.phase.subscribe());
    let begin = event("gate", &json!({"gate": gate.settings.name}));
    let begin = format!("retry: {RETRY_MS}\n{begin}");
    let mut next = Some(Bytes::from(begin));
    let mut life = tokio::time::interval(SIGN_OF_LIFE_EVERY);
    life.reset();
    loop {
        if let Some(event) = next.take()
            && events.send(event).await.is_err()
        {
            return;
        }
        next = tokio::select! {
            heard = live.recv() => match heard {
                Ok(delivery) => is_of(&delivery, key.as_ref())
                    .then(|| event("delivery", &delivery.json()).into()),
                Err(RecvError::Lagged(missed)) => Some(event("missed", &json!({"missed": missed})).into()),
                Err(RecvError::Closed) => return,
            },
            _ = life.tick() => Some(Bytes::from_static(b": alive\n\n")),
            changed = phase.wait_for(|phase| *phase != Phase::Serving) => {
                drop(changed);
                return;
            }
            () = events.closed() => return,
        };
    }
}

fn is_of(delivery: &RecentDelivery, key: Option<&Key>) -> bool {
    key.is_none_or(|key| delivery.key.as_ref() == Some(key))
}

/// One event. JSON has no line break of its own.
fn event(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

/// What became of a piece of work, by whatever name somebody has for it.
pub(super) async fn find(
    State(gate): State<Arc<Gate>>,
    operator: Operator,
    query: Result<Query<Vec<(String, String)>>, QueryRejection>,
) -> JsonAnswer {
    let Query(pairs) = query?;
    let question = Question::of_pairs(pairs)?;
    let routes = gate.settings.routes.iter();
    let keys = question.keys(&gate.settings.namespace, routes)?;
    let told = operator.find_work(keys, question.text.as_deref()).await?;
    Ok(Json(told))
}

// === impl Events ===

impl http_body::Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let event = self.events.poll_recv(context);
        event.map(|event| event.map(|bytes| Ok(Frame::data(bytes))))
    }
}
