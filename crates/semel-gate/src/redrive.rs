//! Redriving a letter: the kept delivery goes through the normal flow again, and the letter is closed
//! only when that run has succeeded.
//!
//! A letter whose work may have run, and whose record is gone, is not run by a plain redrive: nobody here
//! knows whether it took effect. An operator who knows, or accepts a second effect, says so.

mod foresee;
mod prepare;
mod refusals;

pub(crate) use foresee::{Foreseen, foresee};

use crate::audit::{AuditedAct, Redriven};
use crate::disposition::Disposition;
use crate::flow::Flow;
use crate::gate::{Gate, Phase};
use crate::letters::status::{self, LetterStatus};
use crate::naming::Identity;
use crate::operate::letters::no_letter;
use crate::operate::{Operator, Refused, VOID, set};
use bytes::Bytes;
use http::StatusCode;
use refusals::{other_work, ran_under_its_own, running, stays, unknown};
use semel::Key;
use semel::clock::Time;
use semel::letter::{Letter, LetterId, Mark, Marked, Standing};
use semel::protocol::{Acted, Record, State};
use semel::work::Duplicates;
use serde_json::{Value, json};
use std::sync::Arc;

const SUCCEEDED: &str = "it succeeded";
const HAD_SUCCEEDED: &str = "it had succeeded already: nothing was run";

/// A letter, ready to be run again.
struct Redrive {
    letter: Letter,
    identity: Identity,
    flow: Flow,
    /// No run of its work has begun, although there is no record that says so.
    is_unrun: bool,
}

/// What to do with a letter whose work may have taken effect, for all that is known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfUnknown {
    Refuse,
    RunAgain,
}

/// What a redrive does, unless something happens first.
enum Plan {
    /// It lets the work run, if nobody else does.
    Run,
    /// It closes the letter alone: the work has succeeded under this key.
    Close(Key),
}

/// What the record of a letter's work allows.
enum Readiness {
    Run,
    /// It had ended or was parked, and may run once more: by this redrive, or by the next delivery.
    RunAgain,
    /// It was running: whether it still is, by its lease, is for the store to say when it is asked for a claim.
    RunUnlessBusy,
    /// It succeeded meanwhile.
    Close,
}

/// Redrives a letter; says what became of it.
pub(crate) async fn redrive(
    gate: &Arc<Gate>,
    operator: &Operator,
    id: &str,
    if_unknown: IfUnknown,
) -> Result<Value, Refused> {
    if *gate.phase.borrow() != Phase::Serving {
        return Err(Refused::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "this gate is draining",
            "ask another gate, or this one after its restart; nothing was run",
        ));
    }
    let letter = operator.find(id).await?;
    let (redrive, record) = prepare::prepare(gate, operator, letter).await?;
    let (id, key) = (redrive.letter.id, redrive.identity.key);
    let before = record
        .as_ref()
        .map_or("absent", |record| record.state.word());
    let by = operator.who().of("redrive");
    let told = attempt(gate, redrive, record.as_ref(), if_unknown, by).await;
    let after = match &told {
        Ok(told) => told["outcome"].as_str().unwrap_or_default(),
        Err(refused) => refused
            .details
            .get("outcome")
            .and_then(Value::as_str)
            .unwrap_or("refused"),
    };
    let promise = match &told {
        Ok(told) => told["promise"].as_str(),
        Err(refused) => refused.details.get("promise").and_then(Value::as_str),
    };
    operator.audit().note(AuditedAct {
        key: Some(key),
        letter: Some(id),
        before: before.into(),
        after: after.into(),
        promise: promise.map(Into::into),
        redrive: Some(Redriven {
            closed: told.is_ok(),
            run_again: if_unknown == IfUnknown::RunAgain,
        }),
        ..AuditedAct::new("redrive", operator.who())
    });
    told
}

async fn attempt(
    gate: &Gate,
    redrive: Redrive,
    record: Option<&Record>,
    if_unknown: IfUnknown,
    by: Bytes,
) -> Result<Value, Refused> {
    let (id, key) = (redrive.letter.id, redrive.identity.key);
    match plan(gate, &redrive, record, if_unknown).await? {
        Plan::Close(key) => return had_succeeded(gate, &id, &key).await,
        Plan::Run => {}
    }
    note(gate, &id).await?;
    let mut flow = redrive.flow;
    let readiness = readiness(gate, &key, by).await?;
    let made_claimable = matches!(readiness, Readiness::RunAgain);
    match readiness {
        Readiness::Run | Readiness::RunAgain => {}
        Readiness::RunUnlessBusy => flow.duplicates = Some(Duplicates::Reject),
        Readiness::Close => return had_succeeded(gate, &id, &key).await,
    }
    flow.identity = Ok(redrive.identity);
    let disposition = flow.run(redrive.identity, None).await;
    let was_running = flow.duplicates.is_some();
    if was_running && matches!(disposition, Disposition::Busy { .. }) {
        return Err(running(&key));
    }
    log(&flow, &disposition);
    told(gate, &disposition, made_claimable, &id, &key).await
}

// === Planning ===

/// What the records say that a redrive does. Nothing is changed by asking.
async fn plan(
    gate: &Gate,
    redrive: &Redrive,
    record: Option<&Record>,
    if_unknown: IfUnknown,
) -> Result<Plan, Refused> {
    let key = redrive.identity.key;
    if record.is_some_and(|record| record.fingerprint != redrive.identity.fingerprint) {
        return Err(other_work(&key));
    }
    if let Some(LetterStatus { standing, key, .. }) = under_taken(gate, &redrive.letter).await? {
        return match standing {
            Standing::Succeeded => Ok(Plan::Close(key)),
            Standing::Unfinished(state) => Err(ran_under_its_own(&key, state)),
            Standing::NotRun | Standing::Unknown => Err(running(&key)),
        };
    }
    match (redrive.letter.standing(record), if_unknown) {
        (Standing::Succeeded, _) => Ok(Plan::Close(key)),
        (Standing::Unknown, IfUnknown::Refuse) if !redrive.is_unrun => {
            Err(unknown(&redrive.letter, &key))
        }
        (Standing::Unfinished(_) | Standing::NotRun, _)
        | (Standing::Unknown, IfUnknown::Refuse | IfUnknown::RunAgain) => Ok(Plan::Run),
    }
}

// === Running ===

/// Notes on the letter that its work may run from now on: when its record is gone one day, that is known.
async fn note(gate: &Gate, id: &LetterId) -> Result<(), Refused> {
    match gate.letters.mark(id, Mark::Redriven).await? {
        Marked::Applied => Ok(()),
        Marked::Gone => Err(no_letter()),
    }
}

/// Whether the work may run; makes its record claimable if need be.
async fn readiness(gate: &Gate, key: &Key, by: Bytes) -> Result<Readiness, Refused> {
    // Also when there is nothing to change: what this process remembers of the key is dropped.
    match gate.semel.redrive(key, by).await? {
        Acted::Applied => Ok(Readiness::RunAgain),
        Acted::Gone(None | Some(State::Waiting)) => Ok(Readiness::Run),
        Acted::Gone(Some(State::Running)) => Ok(Readiness::RunUnlessBusy),
        Acted::Gone(Some(State::Succeeded)) => Ok(Readiness::Close),
        Acted::Refused | Acted::Gone(Some(State::Parked | State::Failed)) => Err(running(key)),
    }
}

/// A mismatched letter's own work under the delivery's key. The same work under the letter's key would
/// be a second effect that nobody asked for, also with --run-again: there is a record to decide about.
async fn under_taken(gate: &Gate, letter: &Letter) -> Result<Option<LetterStatus>, Refused> {
    let head = letter.head(Time(0));
    Ok(status::under_taken(gate.letters.as_ref(), &head).await?)
}

/// The log line of any delivery, with the handler's status, if it was heard.
fn log(flow: &Flow, disposition: &Disposition) {
    let status = disposition.handler_status();
    let status = status.and_then(|status| StatusCode::from_u16(status).ok());
    flow.log(disposition, status.unwrap_or(StatusCode::CONFLICT));
}

// === Telling ===

/// Closes the letter of work that has succeeded; any other letter stays, and says why. By now it may have run once more.
async fn told(
    gate: &Gate,
    disposition: &Disposition,
    made_claimable: bool,
    id: &LetterId,
    key: &Key,
) -> Result<Value, Refused> {
    let (outcome, status) = (disposition.word(), disposition.handler_status());
    let ran = disposition.may_have_run();
    let promise = (ran || made_claimable).then_some(VOID);
    if disposition.has_succeeded() {
        close(gate, id).await?;
        let says = if ran { SUCCEEDED } else { HAD_SUCCEEDED };
        let mut told = closed(id, key, outcome, status, says);
        set(&mut told, "ran", ran.into());
        if let Some(promise) = promise {
            set(&mut told, "promise", promise.into());
        }
        return Ok(told);
    }
    let refused = if let Disposition::Store(error) = disposition {
        Refused::from(error.clone())
    } else {
        // When that cannot be asked, it stays as far as is known here.
        let is_open = !matches!(gate.letters.get(id).await, Ok(None));
        stays(disposition, is_open)
            .with("status", status)
            .with("key", key.to_string())
    };
    let refused = match promise {
        Some(promise) => refused.with("promise", promise),
        None => refused,
    };
    Err(refused
        .with("ran", ran)
        .with("outcome", outcome)
        .with("letter", id.to_string()))
}

async fn close(gate: &Gate, id: &LetterId) -> Result<(), Refused> {
    let closed = gate.letters.mark(id, Mark::Closed).await;
    match closed {
        // Whoever looked at it meanwhile was first.
        Ok(Marked::Applied | Marked::Gone) => Ok(()),
        Err(error) => Err(Refused::new(
            StatusCode::SERVICE_UNAVAILABLE,
            format!("it succeeded, but its letter could not be closed ({error})"),
            "nothing more is to do: whoever looks at the letter next closes it",
        )
        .with("outcome", "succeeded")),
    }
}

async fn had_succeeded(gate: &Gate, id: &LetterId, key: &Key) -> Result<Value, Refused> {
    close(gate, id).await?;
    Ok(closed(id, key, "succeeded", None, HAD_SUCCEEDED))
}

fn closed(id: &LetterId, key: &Key, outcome: &str, status: Option<u16>, says: &str) -> Value {
    json!({
        "act": "redrive", "letter": id.to_string(), "key": key.to_string(), "outcome": outcome,
        "status": status, "closed": true, "says": format!("{says}; the letter is closed"),
    })
}
