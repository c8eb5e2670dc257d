//! What was delivered: shown in parts, or whole as JSON lines.

use super::Desk;
use super::problem::Problem;
use crate::history::{Dispatch, Wanted};
use axum::Json;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::convert::Infallible;

/// How many dispatches are shown at once, when nothing is said and at most.
const SHOWN: usize = 1000;
const SHOWN_MAX: usize = 10_000;

/// `?resource=&id=&after=&limit=`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    resource: Option<String>,
    id: Option<String>,
    after: Option<u64>,
    limit: Option<usize>,
}

/// Some of the history.
#[derive(Debug, Serialize)]
pub(super) struct Shown {
    dispatches: Vec<Dispatch>,
    /// How many older ones are not kept any more.
    let_go: u64,
    /// What to say for `after` to see what follows.
    next: Option<u64>,
}

type Ask = Result<Query<Asked>, QueryRejection>;

pub(super) async fn show(State(desk): State<Desk>, asked: Ask) -> Result<Json<Shown>, Problem> {
    let wanted = asked?.0.wanted()?;
    let (dispatches, let_go) = desk.context().history.list(&wanted);
    let next = dispatches.last().map(|last| last.number).or(wanted.after);
    Ok(Json(Shown {
        dispatches,
        let_go,
        next,
    }))
}

/// All of it, or all of what is asked for; a part at a time, so that a long history is never held
/// twice.
pub(super) async fn export(State(desk): State<Desk>, asked: Ask) -> Result<Response, Problem> {
    let Query(asked) = asked?;
    let mut left = asked.limit.unwrap_or(usize::MAX);
    let mut wanted = Asked {
        limit: None,
        ..asked
    }
    .wanted()?;
    let parts = std::iter::from_fn(move || {
        wanted.limit = left.min(SHOWN);
        let (dispatches, _) = desk.context().history.list(&wanted);
        wanted.after = Some(dispatches.last()?.number);
        left -= dispatches.len();
        Some(Ok::<_, Infallible>(lines(&dispatches)))
    });
    let body = Body::from_stream(tokio_stream::iter(parts));
    Ok(([(CONTENT_TYPE, "application/jsonl")], body).into_response())
}

pub(super) async fn clear(State(desk): State<Desk>) -> StatusCode {
    desk.context().history.clear();
    StatusCode::NO_CONTENT
}

// === impl Asked ===

impl Asked {
    fn wanted(self) -> Result<Wanted, Problem> {
        let limit = self.limit.unwrap_or(SHOWN);
        if !(1..=SHOWN_MAX).contains(&limit) {
            let error = format!("limit is a number from 1 to {SHOWN_MAX}, not {limit}");
            return Err(Problem::invalid(error));
        }
        // An empty parameter is one that was left out.
        let given = |text: Option<String>| text.filter(|it| !it.is_empty());
        Ok(Wanted {
            resource: given(self.resource),
            id: given(self.id),
            after: self.after,
            limit,
        })
    }
}

fn lines(dispatches: &[Dispatch]) -> Bytes {
    let mut lines = Vec::new();
    for dispatch in dispatches {
        serde_json::to_writer(&mut lines, dispatch).expect("text and numbers");
        lines.push(b'\n');
    }
    lines.into()
}
