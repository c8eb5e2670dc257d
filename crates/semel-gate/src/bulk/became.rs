//! What became of one letter of a job, in words that are counted.

use crate::operate::Refused;
use http::StatusCode;
use serde_json::Value;

/// What became of one letter.
pub(super) struct Became {
    pub(super) word: &'static str,
    pub(super) stays: Option<String>,
}

/// Whether a redrive has run its work, as far as its answer says.
pub(super) fn may_have_run(told: &Result<Value, Refused>) -> bool {
    let ran = |value: Option<&Value>| value.and_then(Value::as_bool);
    match told {
        Ok(told) => ran(told.get("ran")) == Some(true),
        // When the store is away, that may have been before or after the run.
        Err(refused) if refused.status.is_server_error() => {
            ran(refused.details.get("ran")) != Some(false)
        }
        Err(refused) => ran(refused.details.get("ran")) == Some(true),
    }
}

/// A redrive that ended without an answer.
pub(super) fn broken() -> Refused {
    Refused::conflict("the gate failed", "look at its log")
}

pub(super) fn discarded(told: Result<Value, Refused>) -> Result<Became, Refused> {
    match told {
        Ok(_) => Ok(Became::new("were discarded")),
        Err(refused) if refused.status == StatusCode::NOT_FOUND => {
            Ok(Became::new("were closed already"))
        }
        Err(refused) => stopped_by(refused),
    }
}

pub(super) fn redriven(told: Result<Value, Refused>) -> Result<Became, Refused> {
    match told {
        Ok(told) if told.get("ran").and_then(Value::as_bool) == Some(true) => {
            Ok(Became::new("ran and succeeded"))
        }
        Ok(_) => Ok(Became::new("were only closed: they had succeeded before")),
        Err(refused) if refused.status == StatusCode::NOT_FOUND => {
            Ok(Became::new("were closed already"))
        }
        Err(refused) => stopped_by(refused),
    }
}

/// A letter that stays is counted; a store that is away ends the job.
fn stopped_by(refused: Refused) -> Result<Became, Refused> {
    let outcome = refused.details.get("outcome").and_then(Value::as_str);
    let ran = refused.details.get("ran").and_then(Value::as_bool);
    let word = match (ran, outcome) {
        _ if refused.status == StatusCode::SERVICE_UNAVAILABLE => return Err(refused),
        (_, Some("running" | "busy")) => "are running: they stay",
        (Some(true), _) => "ran and did not succeed: they stay",
        (Some(false) | None, _) => "were refused and stay: nothing was run",
    };
    Ok(Became {
        word,
        stays: Some(refused.error),
    })
}

// === impl Became ===

impl Became {
    pub(super) const fn new(word: &'static str) -> Self {
        Self { word, stays: None }
    }

    pub(super) fn of_work_that_ran() -> Self {
        let why = "this job ran the same work for another letter, and it has not succeeded; nothing was run for this one";
        Self {
            word: "were left: the same work ran for another letter, and did not succeed",
            stays: Some(why.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_ran_is_said_to_have_run() {
        let stays = |refused: Refused| stopped_by(refused).map(|became| became.word);
        let conflict = || Refused::conflict("it stays", "wait");
        let not_due = conflict().with("outcome", "not_yet").with("ran", false);
        assert_eq!(
            stays(not_due).unwrap(),
            "were refused and stay: nothing was run"
        );
        let running = conflict().with("outcome", "running");
        assert_eq!(stays(running).unwrap(), "are running: they stay");
        let failed = conflict().with("outcome", "failed").with("ran", true);
        assert_eq!(stays(failed).unwrap(), "ran and did not succeed: they stay");
        let away = Refused::new(StatusCode::SERVICE_UNAVAILABLE, "away", "wait");
        assert!(stays(away).is_err());
    }
}
