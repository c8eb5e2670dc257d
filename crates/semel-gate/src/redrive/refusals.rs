//! Why a redrive is refused, or a letter stays, in words.

use crate::disposition::{Disposition, Undelivered};
use crate::operate::Refused;
use semel::Key;
use semel::letter::Letter;
use semel::protocol::State;
use semel::work::FailureKind;

/// What a handler that asks for credentials does not get from a redrive.
const NO_CREDENTIALS: &str = "a letter keeps no credentials (Authorization, Cookie), so the handler got this redrive \
                              without them: let it take what comes from this gate, or let the sender deliver again";

pub(super) fn ran_under_its_own(key: &Key, state: State) -> Refused {
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

pub(super) fn other_work(key: &Key) -> Refused {
    Refused::conflict(
        "the key of this letter is known with another payload by now",
        "forget that record first (`semel records forget`), or discard the letter; nothing was run",
    )
    .with("outcome", "mismatched")
    .with("key", key.to_string())
}

pub(super) fn running(key: &Key) -> Refused {
    Refused::conflict(
        "it is running",
        "wait for its end, then look (`semel records show`); nothing was run by this redrive, the letter stays",
    )
    .with("outcome", "running")
    .with("key", key.to_string())
}

/// What is not known of a letter whose record is gone.
pub(super) fn unknown(letter: &Letter, key: &Key) -> Refused {
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

/// Why a letter is not closed by its redrive; somebody may have discarded it meanwhile.
pub(super) fn stays(disposition: &Disposition, is_open: bool) -> Refused {
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
    let letter = if is_open {
        "the letter stays"
    } else {
        "the letter was discarded meanwhile"
    };
    Refused::conflict(format!("{error}{status}; {letter}"), what_to_do)
}
