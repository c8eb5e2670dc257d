//! The mistakes that have a name: by what each is known, what it is and what to do instead.
//!
//! The first one for which there is evidence is the one, so what is more special comes first. A new pattern is one entry, and a line in
//! docs/prove.md.

use super::BrokenAttack;
use crate::judge::verdict::BreachKind::{AnswersDiffer, Poison};

/// A mistake, and by what it is known.
#[derive(Debug)]
pub(super) struct KnownMistake {
    pub(super) name: &'static str,
    pub(super) is: &'static str,
    pub(super) instead: &'static str,
    /// What was seen that speaks for it, if it was.
    pub(super) evidence: fn(&BrokenAttack<'_>) -> Option<String>,
}

/// What follows the losses is of effects that happen twice.
pub(super) const CATALOGUE: &[KnownMistake] = &[
    KnownMistake {
        name: "poison message",
        is: "What can never succeed is refused, so the queue delivers it again for ever.",
        instead: "Keep it as a dead letter and acknowledge it, or give the queue a limit and a place for dead letters.",
        evidence: |it| it.itself(Poison),
    },
    KnownMistake {
        name: "answer not remembered",
        is: "A repeated request gets another answer than the first, so a client that lost the first one is misled.",
        instead: "Keep status and body with the key and replay them.",
        evidence: |it| it.itself(AnswersDiffer),
    },
    KnownMistake {
        name: "process ends at a duplicate",
        is: "A duplicate ends the process that handles it, and with it everything else that was at work there.",
        instead: "Let no delivery end the process: answer a duplicate with what the first one was answered.",
        evidence: |it| it.died_at_duplicate(),
    },
    KnownMistake {
        name: "duplicate answered with an error",
        is: "The effect happens once, but its duplicate is answered as a failure, so the queue delivers it again for ever.",
        instead: "Answer a duplicate of what succeeded with a success: a unique key that is taken already is not an error.",
        evidence: |it| it.duplicate_refused(),
    },
    KnownMistake {
        name: "claim never taken over",
        is: "A crash leaves the delivery marked as being worked on, and every redelivery waits for a worker that is gone.",
        instead: "Give the claim a lease that lapses, and let the next delivery take it over.",
        evidence: |it| it.claim_stays(),
    },
    KnownMistake {
        name: "old overwrites new",
        is: "A delivery that was overtaken by a newer one about the same thing still changes what the newer one left.",
        instead: "Make the write conditional on the version: only a newer one may replace what is there.",
        evidence: |it| it.old_won(),
    },
    KnownMistake {
        name: "key too narrow",
        is: "The key leaves out what tells two deliveries apart, as the tenant, so one is taken for a repeat of the other and its work is never done.",
        instead: "Let the key contain everything that makes it another piece of work, and let the unique constraint have the same columns.",
        evidence: |it| it.another_taken_for_it(),
    },
    KnownMistake {
        name: "taken off before it was done",
        is: "Work that one process hands to another is taken off its list before it is done; a crash of the one that took it loses it, and its sender was told of a success long ago.",
        instead: "Leave it on the list until it is done, or move it to a list of the worker's own and look there after a restart: BLMOVE, SELECT … FOR UPDATE SKIP LOCKED, a late acknowledgement.",
        evidence: |it| it.taken_and_lost(),
    },
    KnownMistake {
        name: "acknowledged early",
        is: "The sender hears of a success while the work is still to be done; a crash then loses it, and nobody delivers it again.",
        instead: "Answer when the work is durable, or write it down durably before answering.",
        evidence: |it| it.acknowledged_early(),
    },
    KnownMistake {
        name: "failure remembered as success",
        is: "An attempt that failed is recorded, or answered, like one that succeeded, so the redelivery that should heal it does nothing.",
        instead: "Record a success only after the last step has succeeded, and answer a failure as one, so that the sender delivers again.",
        evidence: |it| it.failure_kept(),
    },
    KnownMistake {
        name: "failure never retried",
        is: "A failed attempt is remembered, and every redelivery that should heal it is refused.",
        instead: "Remember successes only, or record that the delivery failed and may be tried again.",
        evidence: |it| it.failure_stays(),
    },
    KnownMistake {
        name: "resumes at the wrong step",
        is: "After a crash the work goes on behind a step that was never done.",
        instead: "Record each step together with its effect, and go on behind the last one that was recorded.",
        evidence: |it| it.wrong_step(),
    },
    KnownMistake {
        name: "seen-marker before the work",
        is: "The delivery is marked, by a row, a key or a lock, before it is done, and who finds the mark takes it for done; a crash in between loses the work for good.",
        instead: "Write the marker and the effect in one transaction, or mark it as running under a lease that lapses.",
        evidence: |it| it.marked_before(),
    },
    KnownMistake {
        name: "in doubt at the gate",
        is: "The handler, or the gate, ended after the effect and before the gate knew of it; under the policy `retry` the gate lets the next delivery run it again.",
        instead: "Let the handler record its completion in its own transaction (completes = \"handler\"), do the effect under the gate's key, or let a person decide (in_doubt = \"park\").",
        evidence: |it| it.in_doubt(),
    },
    KnownMistake {
        name: "effect not guarded (others are)",
        is: "What stops a repeat stops only some of the handler's effects; this one is outside.",
        instead: "Do all effects behind the same decision: in one transaction with the key, or under a key of their own that the other service knows.",
        evidence: |it| it.one_effect_alone(),
    },
    KnownMistake {
        name: "counter update",
        is: "The handler adds to a stored number, and adds again for every repeat.",
        instead: "Record the delivery's key in the same transaction as the addition, or keep one row per delivery and sum them up.",
        evidence: |it| it.adds_again(),
    },
    KnownMistake {
        name: "random id per attempt",
        is: "Each attempt makes up a new id, so the constraint that should stop a duplicate never sees the same id twice.",
        instead: "Derive the id from what is delivered, so that every attempt has the same one.",
        evidence: |it| it.new_id_each_time(),
    },
    KnownMistake {
        name: "key differs between processes",
        is: "Each process computes another key for the same delivery, as Python's hash() of a text does, or remembers keys in its own memory only.",
        instead: "Compute keys with a function that is the same everywhere and always, as SHA-256 over the parts that matter, and keep them where every process looks.",
        evidence: |it| it.processes_disagree(),
    },
    KnownMistake {
        name: "key changes between attempts",
        is: "Something that changes is part of the key, as a retry number, a time, a name that the transport makes up, or the whole payload: what is the same gets another key.",
        instead: "Derive the key only from what stays the same whenever and however the same thing is delivered.",
        evidence: |it| it.key_changed(),
    },
    KnownMistake {
        name: "key forgotten too soon",
        is: "The handler remembers a delivery, but not for as long as it may come again: for a while, as by a memory that expires or a date in the key, until the next one comes, or until an answer does not arrive.",
        instead: "Keep keys for longer than the sender may redeliver, each on its own: a queue's retention, not a lock's timeout.",
        evidence: |it| it.forgotten(),
    },
    KnownMistake {
        name: "no key",
        is: "Nothing tells a repeated delivery from a new one, so every arrival takes effect.",
        instead: "Derive a key from the delivery and record it in the same transaction as the effect, or put a gate before the handler.",
        evidence: |it| it.every_arrival(),
    },
    KnownMistake {
        name: "unfenced lock release",
        is: "A lock lapses while its holder still works, and the holder goes on, and even releases the lock of the next one.",
        instead: "Make every write conditional on a fence that rises with each owner, or decide by a unique key in the effect's own transaction.",
        evidence: |it| it.lock_lapsed(),
    },
    KnownMistake {
        name: "claim dropped with the connection",
        is: "The claim is given up when the sender hangs up, but the work goes on; the next delivery starts it once more beside it.",
        instead: "Keep the claim until the work has ended, whoever still waits for its answer; or stop the work before giving it up.",
        evidence: |it| it.given_up_with_the_sender(),
    },
    KnownMistake {
        name: "check-then-act",
        is: "The handler looks whether the work was done and then does it; two deliveries can both look before either has done it.",
        instead: "Let one atomic write decide: insert the key under a unique constraint, in the same transaction as the effect.",
        evidence: |it| it.looked_first(),
    },
    KnownMistake {
        name: "lease without a fence",
        is: "A worker that stood still for longer than its lease goes on as if the delivery were still its own, although another one has taken it over.",
        instead: "Make the last write conditional on still being the owner: on a number that rises with each takeover, in the same transaction.",
        evidence: |it| it.goes_on(),
    },
    KnownMistake {
        name: "call without a key",
        is: "Another service is called again after a crash or a failure, and cannot know that it is the same request.",
        instead: "Send an idempotency key that is the same at every attempt; where the service takes none, park what is in doubt.",
        evidence: |it| it.called_again(),
    },
    KnownMistake {
        name: "seen-marker after the work",
        is: "The work is done first and marked as done afterwards; a crash or a failure in between does it again.",
        instead: "Write the marker and the effect in one transaction.",
        evidence: |it| it.marked_after(),
    },
];
