//! The mistakes that have a name, each with what it is and what to do instead.

use crate::judge::verdict::Pattern;

pub(super) const CHECK_THEN_ACT: Pattern = Pattern {
    name: "check-then-act",
    is: "The handler looks whether the work was done and then does it; two deliveries can both look before either has done it.",
    instead: "Let one atomic write decide: insert the key under a unique constraint, in the same transaction as the effect.",
};
pub(super) const NO_KEY: Pattern = Pattern {
    name: "no key",
    is: "Nothing tells a repeated delivery from a new one, so every arrival takes effect.",
    instead: "Derive a key from the delivery and record it in the same transaction as the effect, or put a gate before the handler.",
};
pub(super) const RANDOM_ID: Pattern = Pattern {
    name: "random id per attempt",
    is: "Each attempt makes up a new id, so the constraint that should stop a duplicate never sees the same id twice.",
    instead: "Derive the id from what is delivered, so that every attempt has the same one.",
};
pub(super) const COUNTER: Pattern = Pattern {
    name: "counter update",
    is: "The handler adds to a stored number, and adds again for every repeat.",
    instead: "Record the delivery's key in the same transaction as the addition, or keep one row per delivery and sum them up.",
};
pub(super) const KEY_PER_PROCESS: Pattern = Pattern {
    name: "key differs between processes",
    is: "Each process computes another key for the same delivery, as Python's hash() of a text does, or remembers keys in its own memory only.",
    instead: "Compute keys with a function that is the same everywhere and always, as SHA-256 over the parts that matter, and keep them where every process looks.",
};
pub(super) const MARKER_BEFORE: Pattern = Pattern {
    name: "seen-marker before the work",
    is: "The delivery is marked as done before it is; a crash in between loses the work for good.",
    instead: "Write the marker and the effect in one transaction, or mark it as running under a lease that lapses.",
};
pub(super) const MARKER_AFTER: Pattern = Pattern {
    name: "seen-marker after the work",
    is: "The work is done first and marked as done afterwards; a crash in between does it again.",
    instead: "Write the marker and the effect in one transaction.",
};
pub(super) const ACKNOWLEDGED_EARLY: Pattern = Pattern {
    name: "acknowledged early",
    is: "The sender hears of a success while the work is still to be done; a crash then loses it, and nobody delivers it again.",
    instead: "Answer when the work is durable, or write it down durably before answering.",
};
pub(super) const NEVER_TAKEN_OVER: Pattern = Pattern {
    name: "claim never taken over",
    is: "A crash leaves the delivery marked as being worked on, and every redelivery waits for a worker that is gone.",
    instead: "Give the claim a lease that lapses, and let the next delivery take it over.",
};
pub(super) const FAILURE_KEPT: Pattern = Pattern {
    name: "failure never retried",
    is: "A failed attempt is remembered like a finished one, so the redelivery that should heal it does nothing.",
    instead: "Remember successes only, or record that the delivery failed and may be tried again.",
};
pub(super) const UNFENCED: Pattern = Pattern {
    name: "unfenced lock release",
    is: "A lock lapses while its holder still works, and the holder goes on, and even releases the lock of the next one.",
    instead: "Make every write conditional on a fence that rises with each owner, or decide by a unique key in the effect's own transaction.",
};
pub(super) const NO_LEASE: Pattern = Pattern {
    name: "no lease",
    is: "A worker that stood still goes on as if the delivery were still its own, although another one has done it.",
    instead: "Make the last write conditional on still being the owner.",
};
pub(super) const CALL_WITHOUT_KEY: Pattern = Pattern {
    name: "call without a key",
    is: "Another service is called again after a crash, and cannot know that it is the same request.",
    instead: "Send an idempotency key that is the same at every attempt; where the service takes none, park what is in doubt.",
};
pub(super) const WRONG_STEP: Pattern = Pattern {
    name: "resumes at the wrong step",
    is: "After a crash the work goes on behind a step that was never done.",
    instead: "Record each step together with its effect, and go on behind the last one that was recorded.",
};
pub(super) const POISON: Pattern = Pattern {
    name: "poison message",
    is: "What can never succeed is refused, so the queue delivers it again for ever.",
    instead: "Keep it as a dead letter and acknowledge it, or give the queue a limit and a place for dead letters.",
};
pub(super) const ANSWER_FORGOTTEN: Pattern = Pattern {
    name: "answer not remembered",
    is: "A repeated request gets another answer than the first, so a client that lost the first one is misled.",
    instead: "Keep status and body with the key and replay them.",
};
pub(super) const DUPLICATE_REFUSED: Pattern = Pattern {
    name: "duplicate answered with an error",
    is: "The effect happens once, but its duplicate is answered as a failure, so the queue delivers it again for ever.",
    instead: "Answer a duplicate of what succeeded with a success: a unique key that is taken already is no error.",
};
pub(super) const DIES_OF_DUPLICATE: Pattern = Pattern {
    name: "process ends at a duplicate",
    is: "A duplicate ends the process that handles it, and with it everything else that was at work there.",
    instead: "Let no delivery end the process: answer a duplicate with what the first one was answered.",
};
