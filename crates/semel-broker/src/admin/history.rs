//! What was delivered: shown in parts, or whole as JSON lines.

use super::Admin;
use super::error::AdminError;
use crate::history::{Dispatch, HistoryFilter};
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
const PAGE_DEFAULT: usize = 1000;
const PAGE_MAX: usize = 10_000;

/// `?resource=&id=&after=&limit=`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HistoryQuery {
    resource: Option<String>,
    id: Option<String>,
    after: Option<u64>,
    limit: Option<usize>,
}

/// Some of the history.
#[derive(Debug, Serialize)]
pub(super) struct HistoryPage {
    dispatches: Vec<Dispatch>,
    /// How many older ones are not kept any more.
    let_go: u64,
    /// What to say for `after` to see what follows.
    next: Option<u64>,
}

type HistoryQueryResult = Result<Query<HistoryQuery>, QueryRejection>;

pub(super) async fn show(
    State(admin): State<Admin>,
    asked: HistoryQueryResult,
) -> Result<Json<HistoryPage>, AdminError> {
    let filter = asked?.0.filter()?;
    let (dispatches, let_go) = admin.context().history.list(&filter);
    let next = dispatches.last().map(|last| last.number).or(filter.after);
    Ok(Json(HistoryPage {
        dispatches,
        let_go,
        next,
    }))
}

/// All of it, or all of what is asked for; a part at a time, so that a long history is never held
/// twice.
pub(super) async fn export(
    State(admin): State<Admin>,
    asked: HistoryQueryResult,
) -> Result<Response, AdminError> {
    let Query(asked) = asked?;
    let mut left = asked.limit.unwrap_or(usize::MAX);
    let mut filter = HistoryQuery {
        limit: None,
        ..asked
    }
    .filter()?;
    let parts = std::iter::from_fn(move || {
        filter.limit = left.min(PAGE_DEFAULT);
        let (dispatches, _) = admin.context().history.list(&filter);
        filter.after = Some(dispatches.last()?.number);
        left -= dispatches.len();
        Some(Ok::<_, Infallible>(lines(&dispatches)))
    });
    let body = Body::from_stream(tokio_stream::iter(parts));
    Ok(([(CONTENT_TYPE, "application/jsonl")], body).into_response())
}

pub(super) async fn clear(State(admin): State<Admin>) -> StatusCode {
    admin.context().history.clear();
    StatusCode::NO_CONTENT
}

// === impl HistoryQuery ===

impl HistoryQuery {
    fn filter(self) -> Result<HistoryFilter, AdminError> {
        let limit = self.limit.unwrap_or(PAGE_DEFAULT);
        if !(1..=PAGE_MAX).contains(&limit) {
            let error = format!("limit is a number from 1 to {PAGE_MAX}, not {limit}");
            return Err(AdminError::invalid(error));
        }
        // An empty parameter is one that was left out.
        let given = |text: Option<String>| text.filter(|it| !it.is_empty());
        Ok(HistoryFilter {
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
