//! What is to go wrong, shown and changed.

use super::Admin;
use super::error::{AdminError, read};
use crate::faults::Fault;
use axum::Json;
use axum::extract::State;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

const EXAMPLE: &str = r#"{"faults": ["duplicate=0.05", "delay=0.1:500ms@orders"]}"#;

/// `{"faults": ["duplicate=0.05"]}`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FaultsRequest {
    faults: Vec<String>,
}

/// The dice and what they are thrown for.
#[derive(Debug, Serialize)]
pub(super) struct FaultsState {
    seed: u64,
    faults: Vec<String>,
}

pub(super) async fn show(State(admin): State<Admin>) -> Json<FaultsState> {
    Json(shown(&admin))
}

pub(super) async fn replace(
    State(admin): State<Admin>,
    body: Bytes,
) -> Result<Json<FaultsState>, AdminError> {
    let given = faults_of(&body)?;
    Ok(change(&admin, |list| *list = given).await)
}

pub(super) async fn add(
    State(admin): State<Admin>,
    body: Bytes,
) -> Result<Json<FaultsState>, AdminError> {
    let given = faults_of(&body)?;
    Ok(change(&admin, |list| list.extend(given)).await)
}

pub(super) async fn clear(State(admin): State<Admin>) -> Json<FaultsState> {
    change(&admin, Vec::clear).await
}

async fn change(admin: &Admin, change: impl FnOnce(&mut Vec<Fault>)) -> Json<FaultsState> {
    let _alone = admin.0.change.lock().await;
    let mut list = admin.context().faults.list();
    change(&mut list);
    admin.context().faults.replace(list);
    Json(shown(admin))
}

pub(super) fn shown(admin: &Admin) -> FaultsState {
    let faults = &admin.context().faults;
    FaultsState {
        seed: faults.seed(),
        faults: faults.list().iter().map(Fault::to_string).collect(),
    }
}

/// All of them, or none with every mistake named.
fn faults_of(body: &[u8]) -> Result<Vec<Fault>, AdminError> {
    let given: FaultsRequest = read(body, EXAMPLE)?;
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
        Err(AdminError::invalid(mistakes.join("; ")))
    }
}
