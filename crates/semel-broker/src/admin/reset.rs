//! A fresh start, without starting again.

use super::Admin;
use super::error::AdminError;
use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

/// Takes everything away and makes what is declared again; the faults are those of the start. The
/// clock stays where it is: time does not go back.
pub(super) async fn reset(State(admin): State<Admin>) -> Result<Json<Value>, AdminError> {
    // Runs to its end even if the caller goes away.
    let resetting = tokio::spawn(async move { admin.reset().await });
    match resetting.await {
        Ok(done) => done.map(|()| Json(json!({ "reset": true }))),
        Err(error) => Err(AdminError::failed(format!("the reset broke off: {error}"))),
    }
}

// === impl Admin ===

impl Admin {
    async fn reset(&self) -> Result<(), AdminError> {
        let _alone = self.0.change.lock().await;
        for service in &self.0.services {
            service.reset().await?;
        }
        let context = self.context();
        context.faults.replace(self.0.faults_at_start.clone());
        context.history.clear();
        context.refusals.clear();
        let made = self.0.declared.provision().await;
        made.map_err(|error| {
            AdminError::failed(format!(
                "everything is gone, but what was declared was not made again: {error}"
            ))
        })
    }
}
