//! The admin address: who may ask, what is shown, what each act does, and how letters are redriven.
mod acts;
mod access;
mod table;
mod letters;
mod metrics;
mod page;
mod redrive;

use crate::log_lines;
use crate::support::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A gate whose route parks after one failure, and fails for good with 422. Its keys are its own, so
/// that log lines can be told apart.
async fn strict() -> Bed {
    log_lines::listen();
    static GATES: AtomicUsize = AtomicUsize::new(0);
    let number = GATES.fetch_add(1, Ordering::SeqCst);
    Bed::with(|settings| {
        settings.namespace = format!("test-{number}");
        settings.routes[0].max_attempts = 1;
        settings.routes[0].final_statuses = vec![422..=422];
    })
    .await
}

/// Such a gate after a task failed with this status; its letter's id.
async fn kept(status: u16) -> (Bed, String) {
    let bed = strict().await;
    let id = fails(&bed, status).await;
    (bed, id)
}

/// Lets a task fail with this status; gives its letter's id.
async fn fails(bed: &Bed, status: u16) -> String {
    bed.handler.says(status);
    bed.task("t1").await.is(200);
    bed.letter().await
}
