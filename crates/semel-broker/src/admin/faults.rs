//! What is to go wrong, shown and changed.

use super::Desk;
use super::problem::{Problem, read};
use crate::faults::Fault;
use axum::Json;
use axum::extract::State;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

const EXAMPLE: &str = r#"{"faults": ["duplicate=0.05", "delay=0.1:500ms@orders"]}"#;

/// `{"faults": ["duplicate=0.05"]}`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    faults: Vec<String>,
}

/// The dice and what they are thrown for.
#[derive(Debug, Serialize)]
pub(super) struct Shown {
    seed: u64,
    faults: Vec<String>,
}

pub(super) async fn show(State(desk): State<Desk>) -> Json<Shown> {
    Json(shown(&desk))
}

pub(super) async fn replace(State(desk): State<Desk>, body: Bytes) -> Result<Json<Shown>, Problem> {
    let given = given(&body)?;
    let _turn = desk.0.turn.lock().await;
    desk.context().faults.replace(given);
    Ok(Json(shown(&desk)))
}

pub(super) async fn add(State(desk): State<Desk>, body: Bytes) -> Result<Json<Shown>, Problem> {
    let given = given(&body)?;
    let _turn = desk.0.turn.lock().await;
    let mut list = desk.context().faults.list();
    list.extend(given);
    desk.context().faults.replace(list);
    Ok(Json(shown(&desk)))
}

pub(super) async fn clear(State(desk): State<Desk>) -> Json<Shown> {
    let _turn = desk.0.turn.lock().await;
    desk.context().faults.replace(Vec::new());
    Json(shown(&desk))
}

pub(super) fn shown(desk: &Desk) -> Shown {
    let faults = &desk.context().faults;
    Shown {
        seed: faults.seed(),
        faults: faults.list().iter().map(Fault::to_string).collect(),
    }
}

/// All of them, or none with every mistake named.
fn given(body: &[u8]) -> Result<Vec<Fault>, Problem> {
    let given: Given = read(body, EXAMPLE)?;
    let mut faults = Vec::new();
    let mut mistakes = Vec::new();
    for text in given.faults {
        match text.parse::<Fault>() {
            Ok(fault) => faults.push(fault),
            Err(mistake) => mistakes.push(mistake.to_string()),
        }
    }
    if mistakes.is_empty() {
        Ok(faults)
    } else {
        Err(Problem::invalid(mistakes.join("; ")))
    }
}
