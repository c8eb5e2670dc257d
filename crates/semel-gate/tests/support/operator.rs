//! What an operator asks at the admin address, and is told.

use super::prelude::*;
use std::fmt::Display;

/// What an operator is told.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: u16,
    pub(crate) json: Value,
}

impl Bed {
    pub(crate) async fn told(&self, ask: Ask) -> Said {
        let answer = ask.send(self.admin).await;
        let json = serde_json::from_slice(&answer.body);
        Said {
            status: answer.status,
            json: json.unwrap_or_else(|_| panic!("no JSON: {answer:?}")),
        }
    }

    pub(crate) async fn look(&self, path: &str) -> Said {
        self.told(Ask::get(path)).await
    }

    pub(crate) async fn act(&self, path: &str) -> Said {
        self.told(Ask::post(path)).await
    }

    pub(crate) async fn show_record(&self, key: impl Display) -> Said {
        self.look(&format!("/records/{key}")).await
    }

    pub(crate) async fn forget(&self, key: impl Display) -> Said {
        self.act(&format!("/records/{key}/forget")).await
    }

    pub(crate) async fn release(&self, key: impl Display) -> Said {
        self.act(&format!("/records/{key}/release")).await
    }

    pub(crate) async fn resolve(&self, key: impl Display, verdict: &str) -> Said {
        let ask = Ask::post(&format!("/records/{key}/resolve"));
        self.told(ask.body(format!(r#"{{"as":"{verdict}"}}"#)))
            .await
    }

    pub(crate) async fn show_letter(&self, id: impl Display) -> Said {
        self.look(&format!("/letters/{id}")).await
    }

    pub(crate) async fn discard(&self, id: impl Display) -> Said {
        self.act(&format!("/letters/{id}/discard")).await
    }

    pub(crate) async fn redrive(&self, id: impl Display) -> Said {
        self.act(&format!("/letters/{id}/redrive")).await
    }

    /// The same for a letter whose work may take effect twice.
    pub(crate) async fn run_again(&self, id: impl Display) -> Said {
        self.act(&format!("/letters/{id}/redrive?run_again=true"))
            .await
    }

    /// Begins to redrive a letter, and waits until its handler has it; it succeeds when that is told to go on.
    pub(crate) async fn hold_redrive(&self, id: &str) -> JoinHandle<Answer> {
        self.handler.will(Act::Hold(Say::new(200, "done")));
        let ask = Ask::post(&format!("/letters/{id}/redrive"));
        let redriven = tokio::spawn(ask.send(self.admin));
        self.handler.arrived().await;
        redriven
    }

    /// The open letters, as an operator sees them.
    pub(crate) async fn listed(&self) -> Vec<Value> {
        let said = self.look("/letters").await;
        assert_eq!(said.status, 200, "{said:?}");
        said.json["letters"].as_array().unwrap().clone()
    }
}

// === impl Said ===

impl Said {
    /// A member as text.
    pub(crate) fn word(&self, name: &str) -> &str {
        self.json[name].as_str().unwrap_or_default()
    }

    /// With this status, and these members among others.
    #[track_caller]
    pub(crate) fn is(&self, status: u16, members: &Value) {
        assert_eq!(self.status, status, "{self:?}");
        for (name, value) in members.as_object().unwrap() {
            assert_eq!(&self.json[name], value, "{name} of {self:?}");
        }
    }

    /// An act that led from one state to another.
    #[track_caller]
    pub(crate) fn led(&self, before: &str, after: &str) {
        self.is(200, &json!({"before": before, "after": after}));
    }

    #[track_caller]
    pub(crate) fn refused(&self, status: u16, error: &str) {
        assert_eq!(self.status, status, "{self:?}");
        assert!(self.word("error").contains(error), "{self:?}");
        assert!(!self.word("what_to_do").is_empty(), "{self:?}");
    }
}
