//! Redriving a letter: the kept delivery goes through the normal flow again, and the letter is closed
//! only when that run has succeeded.
//!
//! A letter whose work may have run, and whose record is gone, is not run by a plain redrive: nobody here
//! knows whether it took effect. An operator who knows, or accepts a second effect, says so.

mod foresee;
mod prepare;

pub(crate) use foresee::{Foreseen, foresee};

use crate::audit::{AuditedAct, Redriven};
use crate::disposition::{Disposition, Undelivered};
use crate::flow::Flow;
use crate::gate::{Gate, Phase};
use crate::letters::status::{self, LetterStatus};
use crate::naming::Identity;
use crate::operate::letters::no_letter;
use crate::operate::{Operator, Refused, VOID, set};
use bytes::Bytes;
use http::StatusCode;
use semel::Key;
use semel::clock::Time;
use semel::letter::{Letter, LetterId, Mark, Marked, Standing};
use semel::protocol::{Acted, Record, State};
use semel::work::{Duplicates, FailureKind};
use serde_json::{Value, json};
use std::sync::Arc;

/// What a handler that asks for credentials does not get from a redrive.
const NO_CREDENTIALS: &str = "a letter keeps no credentials (Authorization, Cookie), so the handler got this redrive \
                              without them: let it take what comes from this gate, or let the sender deliver again";

const SUCCEEDED: &str = "it succeeded";
const HAD_SUCCEEDED: &str = "it had succeeded already: nothing was run";

/// A letter, ready to be run again.
struct Redrive {
    letter: Letter,
    identity: Identity,
    flow: Flow,
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
    let (redrive, record) = prepare::prepare(gate, letter).await?;
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
        (Standing::Unknown, IfUnknown::Refuse) => Err(unknown(&redrive.letter, &key)),
        (Standing::Unfinished(_) | Standing::NotRun, _)
        | (Standing::Unknown, IfUnknown::RunAgain) => Ok(Plan::Run),
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

fn ran_under_its_own(key: &Key, state: State) -> Refused {
    let word = state.word();
    Refused::conflict(
        format!(
            "this work was delivered again since, and runs under the delivery's own key, where it is {word}; \
             nothing was run, the letter stays"
        ),
        "look at that record (`semel records show`): once it succeeds, by its sender, `semel records resolve` or the \
         letter that was kept for it, this letter is closed, too; or forget that record first (`semel records \
         forget`), then redrive",
    )
    .with("outcome", word)
    .with("key", key.to_string())
}

fn other_work(key: &Key) -> Refused {
    Refused::conflict(
        "the key of this letter is known with another payload by now",
        "forget that record first (`semel records forget`), or discard the letter; nothing was run",
    )
    .with("outcome", "mismatched")
    .with("key", key.to_string())
}

fn running(key: &Key) -> Refused {
    Refused::conflict(
        "it is running",
        "wait for its end, then look (`semel records show`); nothing was run by this redrive, the letter stays",
    )
    .with("outcome", "running")
    .with("key", key.to_string())
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
        let key = key.to_string();
        stays(disposition).with("status", status).with("key", key)
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

/// What is not known of a letter whose record is gone.
fn unknown(letter: &Letter, key: &Key) -> Refused {
    let what = if letter.redriven {
        "it was redriven before".to_owned()
    } else {
        let (reason, fence) = (letter.reason.word(), letter.fence);
        format!("it was kept as {reason} under fence {fence}")
    };
    Refused::conflict(
        format!(
            "whether this work took effect is unknown: {what}, and its record is gone, so what became of it since \
             is remembered nowhere; nothing was run, the letter stays"
        ),
        "find out first; if it did not take effect, or may take effect twice, redrive it with --run-again \
         (?run_again=true); otherwise discard the letter",
    )
    .with("outcome", "unknown")
    .with("key", key.to_string())
}

fn closed(id: &LetterId, key: &Key, outcome: &str, status: Option<u16>, says: &str) -> Value {
    json!({
        "act": "redrive", "letter": id.to_string(), "key": key.to_string(), "outcome": outcome,
        "status": status, "closed": true, "says": format!("{says}; the letter is closed"),
    })
}

/// Why a letter stays.
fn stays(disposition: &Disposition) -> Refused {
    const FIND_OUT: &str =
        "find out, then resolve its record (`semel records resolve`) or redrive it again";
    let (error, what_to_do) = match disposition {
        Disposition::Ran(_)
        | Disposition::Replayed(_)
        | Disposition::Letter(Undelivered::Failed(_) | Undelivered::FailedBefore(_)) => (
            "it failed for good again",
            "fix the handler, then redrive it again, or discard the letter",
        ),
        Disposition::Retryable(failed) | Disposition::Letter(Undelivered::Parked(failed))
            if failed.failure.kind == FailureKind::InDoubt =>
        {
            ("it may or may not have taken effect", FIND_OUT)
        }
        Disposition::Letter(Undelivered::Parked(_)) => (
            "it failed again and is parked",
            "fix the handler, then redrive it again, or resolve its record",
        ),
        Disposition::Retryable(_) => ("it failed again", "fix the handler, then redrive it again"),
        Disposition::Unrecorded(_) => (
            "it ran, and its record is still being written",
            "redrive it again later: when it is recorded, that closes the letter and runs nothing",
        ),
        Disposition::Unread => (
            "it ran, and whether its transaction committed cannot be read yet",
            "redrive it again later: if it committed, that closes the letter and runs nothing",
        ),
        Disposition::Running { .. } | Disposition::Busy { .. } => {
            ("it is running", "wait for its end, then redrive it again")
        }
        Disposition::NotYet { .. } => ("its next run is not due yet", "redrive it again later"),
        Disposition::Full { .. } => (
            "too much work is in hand",
            "nothing was run; redrive it again later",
        ),
        Disposition::Parked | Disposition::Letter(Undelivered::ParkedBefore) => (
            "it is parked: it may or may not have taken effect",
            "find out, then resolve its record or redrive it again",
        ),
        Disposition::Mismatched | Disposition::Letter(Undelivered::Mismatched) => (
            "its key is known with another payload",
            "forget that record first, or discard the letter; nothing was run",
        ),
        Disposition::Stale => (
            "its run was overtaken by another run or an operator",
            "look at its record (`semel records show`)",
        ),
        Disposition::Store(_)
        | Disposition::NoRoom
        | Disposition::Invalid(_)
        | Disposition::Fault(_)
        | Disposition::FaultNotLanded(_)
        | Disposition::Letter(Undelivered::Invalid(_) | Undelivered::Exhausted(_))
        | Disposition::NotKept(..) => ("it was not run", "redrive it again later"),
    };
    let status = disposition.handler_status();
    let what_to_do = match status {
        Some(401 | 403) => format!("{NO_CREDENTIALS}; {what_to_do}"),
        Some(_) | None => what_to_do.to_owned(),
    };
    let status = status.map_or_else(String::new, |status| format!(" (status {status})"));
    Refused::conflict(format!("{error}{status}; the letter stays"), what_to_do)
}
