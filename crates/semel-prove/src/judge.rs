//! The verdict on one trial, from what was sent, answered and seen. Pure.

pub mod verdict;
pub(crate) mod shrink;
pub(crate) mod pattern;
#[cfg(test)]
mod tests;

use crate::judge::verdict::{BreachKind, Event, What};
use crate::scenario::{Promise, SenderKind};
use crate::world::probe::Counts;
use crate::world::sender::{Answer, Payload};

/// Everything known after a trial.
#[derive(Debug)]
pub(crate) struct Evidence<'a> {
    pub(crate) promise: Promise,
    pub(crate) sender: SenderKind,
    pub(crate) dead_letters: bool,
    /// Whether a process ends after its work also when nothing disturbs it.
    pub(crate) ends_anyway: bool,
    /// Each effect and how often one delivery is to cause it.
    pub(crate) expected: &'a [(String, u64)],
    pub(crate) expectation: &'a [Expectation],
    pub(crate) events: &'a [Event],
    pub(crate) answers: &'a [Answer],
    pub(crate) counts: &'a Counts,
}

/// A delivery, and what it can claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Expectation {
    pub(crate) id: String,
    pub(crate) requirement: Requirement,
}

/// What a delivery can claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requirement {
    /// Its effect, and that no attempt of it is refused for ever.
    Effect,
    /// Its effect. What else came under its key may be refused for ever.
    EffectOnly,
    /// Nothing but an end: it can never succeed as it is.
    Termination,
}

/// How a trial broke the promise, in a word and a sentence.
pub(crate) type Breach = (BreachKind, String);

/// None: the promise held.
pub(crate) fn judge(evidence: &Evidence<'_>) -> Option<Breach> {
    let breaches = evidence.expectation.iter().find_map(|expectation| {
        twice(evidence, expectation)
            .or_else(|| lost(evidence, expectation))
            .or_else(|| died(evidence, expectation))
            .or_else(|| endless(evidence, expectation))
    });
    breaches.or_else(|| answers_differ(evidence))
}

fn twice(evidence: &Evidence<'_>, expectation: &Expectation) -> Option<Breach> {
    if evidence.promise == Promise::AtLeastOnce {
        return None;
    }
    let (effect, count, expected) =
        counts(evidence, expectation).find(|(_, count, expected)| count > expected)?;
    let sent = sent(evidence, &expectation.id);
    Some((
        BreachKind::EffectTwice,
        format!(
            "delivery {} was sent {sent} and has `{effect}` {count} times instead of {expected}",
            expectation.id
        ),
    ))
}

fn lost(evidence: &Evidence<'_>, expectation: &Expectation) -> Option<Breach> {
    if evidence.promise == Promise::AtMostOnce
        || expectation.requirement == Requirement::Termination
        || !accepted(evidence, &expectation.id)
    {
        return None;
    }
    let (effect, count, expected) =
        counts(evidence, expectation).find(|(_, count, expected)| count < expected)?;
    Some((
        BreachKind::EffectLost,
        format!(
            "delivery {} was acknowledged but has `{effect}` {count} times instead of {expected}",
            expectation.id
        ),
    ))
}

/// A process ended that nobody had touched.
fn died(evidence: &Evidence<'_>, expectation: &Expectation) -> Option<Breach> {
    let touched = |event: &Event| matches!(event.what, What::Killed | What::Paused);
    if evidence.ends_anyway || evidence.events.iter().any(touched) {
        return None;
    }
    let ended = |event: &&Event| event.what == What::Ended;
    let process = &evidence.events.iter().find(ended)?.lane;
    let seen = format!(
        "`{process}` ended by itself while delivery {} was handled",
        expectation.id
    );
    Some((BreachKind::Died, seen))
}

/// Refused for ever: the sender has used up all its attempts.
fn endless(evidence: &Evidence<'_>, expectation: &Expectation) -> Option<Breach> {
    let sent = sent(evidence, &expectation.id);
    let id = &expectation.id;
    // A client is told that its request was put aside; a broker would ask for ever.
    let aside = evidence.promise == Promise::AtMostOnce && evidence.sender == SenderKind::Http;
    match expectation.requirement {
        Requirement::Effect | Requirement::EffectOnly if !accepted(evidence, id) => (!aside).then(|| {
            let seen = format!(
                "delivery {id} was sent {sent} and never accepted, although nothing was wrong any more"
            );
            (BreachKind::Stuck, seen)
        }),
        Requirement::Effect if !accepted_at_last(evidence, id) => {
            let seen = format!(
                "delivery {id} was accepted, and its duplicate was not: it was sent {sent}, the last of them in vain"
            );
            Some((BreachKind::Stuck, seen))
        }
        Requirement::Effect | Requirement::EffectOnly => None,
        Requirement::Termination if evidence.dead_letters || evidence.sender == SenderKind::Http => None,
        Requirement::Termination if accepted(evidence, id) => None,
        Requirement::Termination => {
            let seen =
                format!("delivery {id} can never succeed, was sent {sent} and refused each time");
            Some((BreachKind::Poison, seen))
        }
    }
}

/// Only an API client reads more of an answer than its status.
fn answers_differ(evidence: &Evidence<'_>) -> Option<Breach> {
    if evidence.sender != SenderKind::Http {
        return None;
    }
    let usual = |answer: &&Answer| answer.accepted && answer.payload == Payload::Default;
    let mut answers = evidence.answers.iter().filter(usual);
    answers.find_map(|answer| {
        let first = evidence
            .answers
            .iter()
            .filter(usual)
            .find(|first| first.id == answer.id)?;
        let same = first.status == answer.status && first.body == answer.body;
        (!same).then(|| (BreachKind::AnswersDiffer, difference(first, answer)))
    })
}

fn difference(first: &Answer, other: &Answer) -> String {
    if first.status != other.status {
        return format!(
            "request {} was answered {} first and {} later",
            first.id, first.status, other.status
        );
    }
    format!(
        "request {} was answered twice with {} but with different bodies",
        first.id, first.status
    )
}

fn counts<'a>(
    evidence: &'a Evidence<'_>,
    expectation: &'a Expectation,
) -> impl Iterator<Item = (&'a str, u64, u64)> {
    evidence.expected.iter().map(|(effect, expected)| {
        let seen = evidence
            .counts
            .get(&(effect.clone(), expectation.id.clone()));
        (
            effect.as_str(),
            seen.copied().unwrap_or_default(),
            *expected,
        )
    })
}

fn accepted(evidence: &Evidence<'_>, delivery: &str) -> bool {
    evidence.events.iter().any(|event| {
        matches!(&event.what, What::Answered { id, accepted: true, known: true, .. } if id == delivery)
    })
}

/// Whether its last attempt ended well for its sender: a queue needs a success, a client an answer.
fn accepted_at_last(evidence: &Evidence<'_>, delivery: &str) -> bool {
    let ends = |event: &Event| match &event.what {
        What::Answered {
            id,
            attempt,
            accepted,
            ..
        } if id == delivery => Some((*attempt, *accepted || evidence.sender == SenderKind::Http)),
        What::Unanswered { id, attempt, .. } if id == delivery => Some((*attempt, false)),
        What::Answered { .. }
        | What::Unanswered { .. }
        | What::Sent { .. }
        | What::Wire { .. }
        | What::Killed
        | What::Ended
        | What::Started
        | What::Paused
        | What::Resumed
        | What::Effects { .. } => None,
    };
    let last = evidence.events.iter().filter_map(ends).max();
    last.is_none_or(|(_, well)| well)
}

fn sent(evidence: &Evidence<'_>, delivery: &str) -> String {
    let sent = evidence
        .events
        .iter()
        .filter(|event| matches!(&event.what, What::Sent { id, .. } if id == delivery));
    match sent.count() {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        more => format!("{more} times"),
    }
}
