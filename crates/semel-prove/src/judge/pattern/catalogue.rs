//! The mistakes that have a name: by what each is known, what it is and what to do instead.
//!
//! The first one that fits is the one, so what is more special comes first. A new pattern is one entry, and a line in
//! docs/prove.md.

use super::BrokenAttack;
use crate::attacks::attack::{Attack, Fault};
use crate::judge::verdict::BreachKind::{AnswersDiffer, Died, EffectLost, Poison, Stuck};

/// A mistake, and by what it is known.
#[derive(Debug)]
pub(super) struct KnownMistake {
    pub(super) name: &'static str,
    pub(super) is: &'static str,
    pub(super) instead: &'static str,
    pub(super) fits: fn(&BrokenAttack<'_>) -> bool,
}

/// What follows the losses is of effects that happen twice.
pub(super) const CATALOGUE: &[KnownMistake] = &[
    KnownMistake {
        name: "poison message",
        is: "What can never succeed is refused, so the queue delivers it again for ever.",
        instead: "Keep it as a dead letter and acknowledge it, or give the queue a limit and a place for dead letters.",
        fits: |it| it.how == Poison,
    },
    KnownMistake {
        name: "answer not remembered",
        is: "A repeated request gets another answer than the first, so a client that lost the first one is misled.",
        instead: "Keep status and body with the key and replay them.",
        fits: |it| it.how == AnswersDiffer,
    },
    KnownMistake {
        name: "process ends at a duplicate",
        is: "A duplicate ends the process that handles it, and with it everything else that was at work there.",
        instead: "Let no delivery end the process: answer a duplicate with what the first one was answered.",
        fits: |it| it.how == Died,
    },
    KnownMistake {
        name: "duplicate answered with an error",
        is: "The effect happens once, but its duplicate is answered as a failure, so the queue delivers it again for ever.",
        instead: "Answer a duplicate of what succeeded with a success: a unique key that is taken already is not an error.",
        // A claim that is never given back stays behind a crash; a plain duplicate meets none.
        fits: |it| it.how == Stuck && (!it.crashed() || it.repeat_ended(Stuck)) && it.took_effect(),
    },
    KnownMistake {
        name: "claim never taken over",
        is: "A crash leaves the delivery marked as being worked on, and every redelivery waits for a worker that is gone.",
        instead: "Give the claim a lease that lapses, and let the next delivery take it over.",
        fits: |it| it.how == Stuck && it.crashed(),
    },
    KnownMistake {
        name: "acknowledged early",
        is: "The sender hears of a success while the work is still to be done; a crash then loses it, and nobody delivers it again.",
        instead: "Answer when the work is durable, or write it down durably before answering.",
        fits: |it| it.how == EffectLost && it.crashed() && it.answered_before_crash(),
    },
    KnownMistake {
        name: "failure never retried",
        is: "A failed attempt is remembered like a finished one, so the redelivery that should heal it does nothing.",
        instead: "Remember successes only, or record that the delivery failed and may be tried again.",
        fits: |it| {
            let refused = || it.refused_first() || it.clues.broke(Attack::Repeat);
            it.how == Stuck || it.how == EffectLost && (!it.crashed() || refused())
        },
    },
    KnownMistake {
        name: "resumes at the wrong step",
        is: "After a crash the work goes on behind a step that was never done.",
        instead: "Record each step together with its effect, and go on behind the last one that was recorded.",
        fits: |it| it.how == EffectLost && it.goes_on_elsewhere(),
    },
    KnownMistake {
        name: "seen-marker before the work",
        is: "The delivery is marked as done before it is; a crash in between loses the work for good.",
        instead: "Write the marker and the effect in one transaction, or mark it as running under a lease that lapses.",
        fits: |it| it.how == EffectLost,
    },
    KnownMistake {
        name: "counter update",
        is: "The handler adds to a stored number, and adds again for every repeat.",
        instead: "Record the delivery's key in the same transaction as the addition, or keep one row per delivery and sum them up.",
        fits: |it| it.every_repeat() && it.clues.adds(),
    },
    KnownMistake {
        name: "random id per attempt",
        is: "Each attempt makes up a new id, so the constraint that should stop a duplicate never sees the same id twice.",
        instead: "Derive the id from what is delivered, so that every attempt has the same one.",
        fits: |it| it.every_repeat() && it.clues.writes_vary,
    },
    KnownMistake {
        name: "key differs between processes",
        is: "Each process computes another key for the same delivery, as Python's hash() of a text does, or remembers keys in its own memory only.",
        instead: "Compute keys with a function that is the same everywhere and always, as SHA-256 over the parts that matter, and keep them where every process looks.",
        fits: |it| {
            let disagree = it.fault != Fault::Race && it.clues.processes_disagree();
            let forgot = || it.crashed() && it.clues.remembers_by_itself() && !it.calls_again();
            !it.every_repeat() && (disagree || forgot())
        },
    },
    KnownMistake {
        name: "no key",
        is: "Nothing tells a repeated delivery from a new one, so every arrival takes effect.",
        instead: "Derive a key from the delivery and record it in the same transaction as the effect, or put a gate before the handler.",
        fits: |it| {
            let unchecked = || it.raced() && !it.clues.locks() && it.clues.never_checks();
            it.every_repeat() || it.fault == Fault::Duplicate || unchecked()
        },
    },
    KnownMistake {
        name: "unfenced lock release",
        is: "A lock lapses while its holder still works, and the holder goes on, and even releases the lock of the next one.",
        instead: "Make every write conditional on a fence that rises with each owner, or decide by a unique key in the effect's own transaction.",
        fits: |it| (it.raced() || it.fault == Fault::Pause) && it.clues.locks(),
    },
    KnownMistake {
        name: "check-then-act",
        is: "The handler looks whether the work was done and then does it; two deliveries can both look before either has done it.",
        instead: "Let one atomic write decide: insert the key under a unique constraint, in the same transaction as the effect.",
        fits: |it| it.raced() || it.fault == Fault::Pause && it.clues.races(),
    },
    KnownMistake {
        name: "no lease",
        is: "A worker that stood still goes on as if the delivery were still its own, although another one has done it.",
        instead: "Make the last write conditional on still being the owner.",
        fits: |it| it.fault == Fault::Pause,
    },
    KnownMistake {
        name: "call without a key",
        is: "Another service is called again after a crash, and cannot know that it is the same request.",
        instead: "Send an idempotency key that is the same at every attempt; where the service takes none, park what is in doubt.",
        fits: |it| it.crashed() && it.calls_again(),
    },
    KnownMistake {
        name: "seen-marker after the work",
        is: "The work is done first and marked as done afterwards; a crash in between does it again.",
        instead: "Write the marker and the effect in one transaction.",
        fits: |it| it.crashed(),
    },
];
