//! Redriving a letter: the kept delivery goes through the normal flow again, and the letter is closed
//! only when that run has succeeded.
//!
//! A letter whose work may have run, and whose record is gone, is not run by a plain redrive: nobody here
//! knows whether it took effect. An operator who knows, or accepts a second effect, says so.

mod prepare;

use crate::delivery::{Arrived, Delivery};
use crate::delivery_log::{Line, word};
use crate::gate::{Gate, Phase, RouteState};
use crate::handle;
use crate::letters::status::{self, LetterStatus};
use crate::naming::Identity;
use crate::operate::letters::no_letter;
use crate::operate::{Operator, Refused};
use crate::reply::Told;
use http::StatusCode;
use jiff::Timestamp;
use semel::clock::Time;
use semel::letter::{Letter, LetterId, Mark, Marked, Standing};
use semel::record::{Acted, Ending, Record, State};
use semel::work::FailureKind;
use semel::{Ended, Key};
use serde_json::{Value, json};
use std::sync::Arc;

/// What a handler that asks for credentials does not get from a redrive.
const NO_CREDENTIALS: &str = "a letter keeps no credentials (Authorization, Cookie), so the handler got this redrive \
                              without them: let it take what comes from this gate, or let the sender deliver again";

/// A letter, ready to be run again.
struct Redrive {
    letter: Letter,
    route_state: Arc<RouteState>,
    arrived: Arc<Arrived>,
    delivery: Delivery,
    named: Identity,
}

/// What to do with a letter whose work may have taken effect, for all that is known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfUnknown {
    Refuse,
    RunAgain,
}

/// What the record of a letter's work allows.
enum Readiness {
    Run,
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
    let (again, record) = prepare::prepare(gate, letter).await?;
    let (id, key) = (again.letter.id, again.named.key);
    let before = record
        .as_ref()
        .map_or("absent", |record| record.state.word());
    let told = attempt(gate, again, record.as_ref(), if_unknown).await;
    let after = match &told {
        Ok(told) => told["outcome"].as_str().unwrap_or_default(),
        Err(refused) => refused
            .details
            .get("outcome")
            .and_then(Value::as_str)
            .unwrap_or("refused"),
    };
    tracing::info!(
        target: "audit", act = "redrive", letter = %id, %key, before, after, closed = told.is_ok(),
        run_again = if_unknown == IfUnknown::RunAgain, by = operator.by(), "act"
    );
    told
}

async fn attempt(
    gate: &Arc<Gate>,
    again: Redrive,
    record: Option<&Record>,
    if_unknown: IfUnknown,
) -> Result<Value, Refused> {
    let (id, key) = (again.letter.id, again.named.key);
    if record.is_some_and(|record| record.fingerprint != again.named.fingerprint) {
        return Err(other_work(&key));
    }
    if let Some(LetterStatus { standing, key }) = under_taken(gate, &again.letter).await? {
        return match standing {
            Standing::Succeeded => had_succeeded(gate, &id, &key).await,
            Standing::Unfinished(state) => Err(ran_under_its_own(&key, state)),
            Standing::NotRun | Standing::Unknown => Err(running(&key)),
        };
    }
    match (again.letter.standing(record), if_unknown) {
        (Standing::Succeeded, _) => return had_succeeded(gate, &id, &key).await,
        (Standing::Unknown, IfUnknown::Refuse) => return Err(unknown(&again.letter, &key)),
        (Standing::Unfinished(_) | Standing::NotRun, _)
        | (Standing::Unknown, IfUnknown::RunAgain) => {}
    }
    note(gate, &id).await?;
    match next(gate, &again.named, record).await? {
        Readiness::Run => {}
        Readiness::Close => return had_succeeded(gate, &id, &key).await,
    }
    let (outcome, status, told) = run(gate, again).await;
    match told {
        Told::Ended(Ended::Ran(recorded) | Ended::Replayed(recorded), _)
            if recorded.ending == Ending::Succeeded =>
        {
            close(gate, &id).await?;
            Ok(closed(&id, &key, outcome, status, "it succeeded"))
        }
        Told::Store(error) => Err(Refused::from(error)
            .with("outcome", outcome)
            .with("letter", id.to_string())),
        Told::Ended(ended, _) => Err(stays(&ended, status)
            .with("outcome", outcome)
            .with("status", status)
            .with("letter", id.to_string())
            .with("key", key.to_string())),
        Told::Invalid(invalid) => Err(Refused::conflict(invalid.detail, "the letter stays")),
        Told::NoRoom | Told::NotKept(_) => Err(Refused::conflict(outcome, "the letter stays")),
    }
}

// === Running ===

/// Notes on the letter that its work may run from now on: when its record is gone one day, that is known.
async fn note(gate: &Gate, id: &LetterId) -> Result<(), Refused> {
    match gate.semel.store().letter_mark(id, Mark::Redriven).await? {
        Marked::Applied => Ok(()),
        Marked::Gone => Err(no_letter()),
    }
}

/// Whether the record lets the work run; makes it claimable if need be.
async fn next(
    gate: &Gate,
    named: &Identity,
    record: Option<&Record>,
) -> Result<Readiness, Refused> {
    let mut lapsed = false;
    match record.map(|record| record.state) {
        Some(State::Succeeded) => return Ok(Readiness::Close),
        Some(State::Running) if record.is_some_and(is_leased) => return Err(running(&named.key)),
        // Nobody else would take this work over; the store judges whether its lease has lapsed.
        Some(State::Running) => lapsed = true,
        Some(State::Parked | State::Failed | State::Waiting) | None => {}
    }
    // Also when there is nothing to change: what this process remembers of the key is dropped.
    match gate.semel.redrive(&named.key).await? {
        Acted::Applied | Acted::Gone(None | Some(State::Waiting)) => Ok(Readiness::Run),
        Acted::Gone(Some(State::Succeeded)) => Ok(Readiness::Close),
        Acted::Gone(Some(State::Running)) if lapsed => Ok(Readiness::Run),
        Acted::Refused | Acted::Gone(Some(State::Running | State::Parked | State::Failed)) => {
            Err(running(&named.key))
        }
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "a lease that lapsed may be run again"
)]
fn is_leased(record: &Record) -> bool {
    let now = u64::try_from(Timestamp::now().as_microsecond()).unwrap_or(0);
    record.lease_until.0 > now
}

/// A mismatched letter's own work under the delivery's key. The same work under the letter's key would
/// be a second effect that nobody asked for, also with --run-again: there is a record to decide about.
async fn under_taken(gate: &Gate, letter: &Letter) -> Result<Option<LetterStatus>, Refused> {
    let head = letter.head(Time(0));
    Ok(status::under_taken(gate.semel.store(), &head).await?)
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

/// Runs it as any delivery, with its log line, but without a new letter: this one stays until it
/// succeeded.
async fn run(gate: &Arc<Gate>, again: Redrive) -> (&'static str, Option<u16>, Told) {
    let Redrive {
        letter,
        route_state,
        arrived,
        delivery,
        named,
    } = again;
    let mut line = Line::begin(&route_state.route, delivery.source);
    line.letter = Some(letter.id);
    line.transport = delivery.transport.clone();
    let told = handle::run(gate, &route_state, &arrived, delivery, named, &mut line).await;
    line.tell(&told);
    let status = status(&told);
    let in_line = status.and_then(|status| StatusCode::from_u16(status).ok());
    line.end(&gate.metrics, in_line.unwrap_or(StatusCode::CONFLICT));
    (word(&told), status, told)
}

/// The handler's status, if it was heard.
fn status(told: &Told) -> Option<u16> {
    match told {
        Told::Ended(Ended::Ran(r) | Ended::Replayed(r) | Ended::Unrecorded(r), _) => {
            Some(r.outcome.status)
        }
        Told::Ended(Ended::Failed(failed), _) => Some(failed.failure.outcome.status),
        Told::Ended(
            Ended::Unread
            | Ended::Busy { .. }
            | Ended::NotYet { .. }
            | Ended::Full { .. }
            | Ended::Parked
            | Ended::Mismatched
            | Ended::Stale,
            _,
        )
        | Told::Invalid(_)
        | Told::NoRoom
        | Told::NotKept(_)
        | Told::Store(_) => None,
    }
}

// === Telling ===

async fn close(gate: &Gate, id: &LetterId) -> Result<(), Refused> {
    let closed = gate.semel.store().letter_mark(id, Mark::Closed).await;
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
    let says = "it had succeeded already: nothing was run";
    Ok(closed(id, key, "succeeded", None, says))
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
fn stays(ended: &Ended, status: Option<u16>) -> Refused {
    let (error, what_to_do) = match ended {
        Ended::Ran(_) | Ended::Replayed(_) => (
            "it failed for good again",
            "mend the handler, then redrive it again, or discard the letter",
        ),
        Ended::Failed(failed) if failed.failure.kind == FailureKind::InDoubt => (
            "it may or may not have taken effect",
            "find out, then resolve its record (`semel records resolve`) or redrive it again",
        ),
        Ended::Failed(failed) if failed.state == State::Parked => (
            "it failed again and is parked",
            "mend the handler, then redrive it again, or resolve its record",
        ),
        Ended::Failed(_) => ("it failed again", "mend the handler, then redrive it again"),
        Ended::Unrecorded(_) => (
            "it ran, and its record is still being written",
            "redrive it again later: when it is recorded, that closes the letter and runs nothing",
        ),
        Ended::Unread => (
            "it ran, and whether its transaction committed cannot be read yet",
            "redrive it again later: if it committed, that closes the letter and runs nothing",
        ),
        Ended::Busy { .. } => ("it is running", "wait for its end, then redrive it again"),
        Ended::NotYet { .. } => ("its next run is not due yet", "redrive it again later"),
        Ended::Full { .. } => (
            "too much work is in hand",
            "nothing was run; redrive it again later",
        ),
        Ended::Parked => (
            "it is parked: it may or may not have taken effect",
            "find out, then resolve its record or redrive it again",
        ),
        Ended::Mismatched => (
            "its key is known with another payload",
            "forget that record first, or discard the letter; nothing was run",
        ),
        Ended::Stale => (
            "its run was overtaken by another run or an operator",
            "look at its record (`semel records show`)",
        ),
    };
    let what_to_do = match status {
        Some(401 | 403) => format!("{NO_CREDENTIALS}; {what_to_do}"),
        Some(_) | None => what_to_do.to_owned(),
    };
    let status = status.map_or_else(String::new, |status| format!(" (status {status})"));
    Refused::conflict(format!("{error}{status}; the letter stays"), what_to_do)
}
