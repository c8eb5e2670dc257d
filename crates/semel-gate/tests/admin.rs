//! The admin address: who may ask, what is shown, what each act does, and how letters are redriven.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may fail where it stands"
)]

mod support;
#[path = "admin/acts.rs"]
mod acts;
#[path = "admin/doors.rs"]
mod doors;
#[path = "admin/letters.rs"]
mod letters;
#[path = "admin/log.rs"]
mod log;
#[path = "admin/metrics.rs"]
mod metrics;
#[path = "admin/redrive.rs"]
mod redrive;

use serde_json::Value;
use std::sync::atomic::{AtomicUsize, Ordering};
use support::{Ask, Bed, Sender};

/// A gate whose route parks after one failure, and fails for good with 422. Its keys are its own, so
/// that log lines can be told apart.
async fn strict() -> Bed {
    static GATES: AtomicUsize = AtomicUsize::new(0);
    let number = GATES.fetch_add(1, Ordering::SeqCst);
    Bed::with(|settings| {
        settings.namespace = format!("test-{number}");
        settings.routes[0].max_attempts = 1;
        settings.routes[0].final_statuses = vec![422..=422];
    })
    .await
}

/// What an operator is told.
#[derive(Debug)]
struct Said {
    status: u16,
    json: Value,
}

impl Said {
    /// A member as text.
    fn word(&self, name: &str) -> &str {
        self.json[name].as_str().unwrap_or_default()
    }

    fn refused(&self, status: u16, error: &str) {
        assert_eq!(self.status, status, "{self:?}");
        assert!(self.word("error").contains(error), "{self:?}");
        assert!(!self.word("what_to_do").is_empty(), "{self:?}");
    }
}

async fn told(bed: &Bed, ask: Ask) -> Said {
    let answer = ask.send(bed.admin).await;
    let json = serde_json::from_slice(&answer.body);
    Said {
        status: answer.status,
        json: json.unwrap_or_else(|_| panic!("no JSON: {answer:?}")),
    }
}

async fn look(bed: &Bed, path: &str) -> Said {
    told(bed, Ask::get(path)).await
}

async fn act(bed: &Bed, path: &str) -> Said {
    told(bed, Ask::post(path)).await
}

async fn resolve(bed: &Bed, key: &str, verdict: &str) -> Said {
    let body = format!(r#"{{"as":"{verdict}"}}"#);
    told(
        bed,
        Ask::post(&format!("/records/{key}/resolve")).body(body),
    )
    .await
}

/// The one key in the store.
async fn the_key(bed: &Bed) -> String {
    let records = bed.records().await;
    assert_eq!(records.len(), 1, "{records:?}");
    records[0].0.to_string()
}

/// The one letter in the store.
async fn the_letter(bed: &Bed) -> String {
    let letters = bed.letters().await;
    assert_eq!(letters.len(), 1, "{letters:?}");
    letters[0].id.to_string()
}

/// Lets a task fail with this status; gives its letter's id.
async fn kept(bed: &Bed, status: u16) -> String {
    bed.handler.says(status);
    let reply = bed.ask(Sender::Task.sends("t1", "payload")).await;
    assert_eq!(reply.status, 200);
    the_letter(bed).await
}
