//! The verdict on one trial, from what was sent, answered and seen. Pure.

use crate::deliver::{Answer, Payload};
use crate::probe::Counts;
use crate::scenario::{Promise, Sender};
use crate::verdict::{Event, How, What};

/// Everything known after a trial.
#[derive(Debug)]
pub(crate) struct Evidence<'a> {
    pub(crate) promise: Promise,
    pub(crate) sender: Sender,
    pub(crate) dead_letters: bool,
    /// Each effect and how often one delivery is to cause it.
    pub(crate) expected: &'a [(String, u64)],
    pub(crate) owed: &'a [Owed],
    pub(crate) events: &'a [Event],
    pub(crate) answers: &'a [Answer],
    pub(crate) counts: &'a Counts,
}

/// A delivery, and what it can claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owed {
    pub(crate) id: String,
    pub(crate) due: Due,
}

/// What a delivery can claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Its effect.
    Effect,
    /// Nothing but an end: it can never succeed as it is.
    End,
}

/// How a trial broke the promise, in a word and a sentence.
pub(crate) type Breach = (How, String);

/// None: the promise held.
pub(crate) fn judge(evidence: &Evidence<'_>) -> Option<Breach> {
    let breaches = evidence.owed.iter().find_map(|owed| {
        twice(evidence, owed)
            .or_else(|| lost(evidence, owed))
            .or_else(|| endless(evidence, owed))
    });
    breaches.or_else(|| answers_differ(evidence))
}

fn twice(evidence: &Evidence<'_>, owed: &Owed) -> Option<Breach> {
    if evidence.promise == Promise::AtLeastOnce {
        return None;
    }
    let (effect, count, expected) =
        counts(evidence, owed).find(|(_, count, expected)| count > expected)?;
    let sent = sent(evidence, &owed.id);
    Some((
        How::EffectTwice,
        format!(
            "delivery {} was sent {sent} and has `{effect}` {count} times instead of {expected}",
            owed.id
        ),
    ))
}

fn lost(evidence: &Evidence<'_>, owed: &Owed) -> Option<Breach> {
    if evidence.promise == Promise::AtMostOnce
        || owed.due == Due::End
        || !accepted(evidence, &owed.id)
    {
        return None;
    }
    let (effect, count, expected) =
        counts(evidence, owed).find(|(_, count, expected)| count < expected)?;
    Some((
        How::EffectLost,
        format!(
            "delivery {} was acknowledged but has `{effect}` {count} times instead of {expected}",
            owed.id
        ),
    ))
}

/// Refused for ever: the sender has used up all its attempts.
fn endless(evidence: &Evidence<'_>, owed: &Owed) -> Option<Breach> {
    if accepted(evidence, &owed.id) {
        return None;
    }
    let sent = sent(evidence, &owed.id);
    match owed.due {
        // A client is told that its request was put aside; a broker would ask for ever.
        Due::Effect
            if evidence.promise == Promise::AtMostOnce && evidence.sender == Sender::Http =>
        {
            None
        }
        Due::Effect => Some((
            How::Stuck,
            format!(
                "delivery {} was sent {sent} and never accepted, although nothing was wrong any more",
                owed.id
            ),
        )),
        Due::End if evidence.dead_letters || evidence.sender == Sender::Http => None,
        Due::End => Some((
            How::Poison,
            format!(
                "delivery {} can never succeed, was sent {sent} and refused each time",
                owed.id
            ),
        )),
    }
}

/// Only an API client reads more of an answer than its status.
fn answers_differ(evidence: &Evidence<'_>) -> Option<Breach> {
    if evidence.sender != Sender::Http {
        return None;
    }
    let usual = |answer: &&Answer| answer.accepted && answer.payload == Payload::Usual;
    let mut answers = evidence.answers.iter().filter(usual);
    answers.find_map(|answer| {
        let first = evidence
            .answers
            .iter()
            .filter(usual)
            .find(|first| first.id == answer.id)?;
        let same = first.status == answer.status && first.body == answer.body;
        (!same).then(|| (How::AnswersDiffer, difference(first, answer)))
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
    owed: &'a Owed,
) -> impl Iterator<Item = (&'a str, u64, u64)> {
    evidence.expected.iter().map(|(effect, expected)| {
        let seen = evidence.counts.get(&(effect.clone(), owed.id.clone()));
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

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use std::time::Duration;

    struct Case {
        promise: Promise,
        sender: Sender,
        dead_letters: bool,
        due: Due,
        accepted: bool,
        count: u64,
        bodies: Vec<&'static str>,
    }

    impl Case {
        fn new(promise: Promise, accepted: bool, count: u64) -> Self {
            Self {
                promise,
                sender: Sender::CloudTasks,
                dead_letters: false,
                due: Due::Effect,
                accepted,
                count,
                bodies: Vec::new(),
            }
        }

        fn how(&self) -> Option<How> {
            let id = "a1".to_owned();
            let known = What::Answered {
                id: id.clone(),
                attempt: 1,
                status: 200,
                accepted: self.accepted,
                known: true,
            };
            let event = |what| Event {
                at: Duration::ZERO,
                lane: "sender".to_owned(),
                what,
            };
            let sent = event(What::Sent {
                id: id.clone(),
                attempt: 1,
            });
            let answers: Vec<Answer> = self
                .bodies
                .iter()
                .map(|body| Answer {
                    id: id.clone(),
                    payload: Payload::Usual,
                    status: 200,
                    body: Bytes::from_static(body.as_bytes()),
                    accepted: true,
                })
                .collect();
            let evidence = Evidence {
                promise: self.promise,
                sender: self.sender,
                dead_letters: self.dead_letters,
                expected: &[("row".to_owned(), 1)],
                owed: &[Owed {
                    id: id.clone(),
                    due: self.due,
                }],
                events: &[sent, event(known)],
                answers: &answers,
                counts: &Counts::from([(("row".to_owned(), id), self.count)]),
            };
            judge(&evidence).map(|(how, _)| how)
        }
    }

    #[test]
    fn promises_differ_in_what_breaks_them() {
        use Promise::{AtLeastOnce, AtMostOnce, ExactlyOnce};
        let how = |promise, count| Case::new(promise, true, count).how();
        assert_eq!(how(ExactlyOnce, 0), Some(How::EffectLost));
        assert_eq!(how(ExactlyOnce, 1), None);
        assert_eq!(how(ExactlyOnce, 2), Some(How::EffectTwice));
        assert_eq!(how(AtMostOnce, 0), None);
        assert_eq!(how(AtMostOnce, 2), Some(How::EffectTwice));
        assert_eq!(how(AtLeastOnce, 0), Some(How::EffectLost));
        assert_eq!(how(AtLeastOnce, 2), None);
    }

    #[test]
    fn delivery_that_is_never_accepted_is_stuck() {
        let mut case = Case::new(Promise::ExactlyOnce, false, 1);
        assert_eq!(case.how(), Some(How::Stuck));
        case.promise = Promise::AtMostOnce;
        assert_eq!(case.how(), Some(How::Stuck));
        case.sender = Sender::Http;
        assert_eq!(case.how(), None);
    }

    #[test]
    fn bad_delivery_must_end_somewhere() {
        let mut case = Case::new(Promise::ExactlyOnce, false, 0);
        case.due = Due::End;
        assert_eq!(case.how(), Some(How::Poison));
        case.dead_letters = true;
        assert_eq!(case.how(), None);
        case.accepted = true;
        assert_eq!(case.how(), None);
        case.count = 2;
        assert_eq!(case.how(), Some(How::EffectTwice));
    }

    #[test]
    fn only_clients_compare_answers() {
        let mut case = Case::new(Promise::ExactlyOnce, true, 1);
        case.bodies = vec!["a", "b"];
        assert_eq!(case.how(), None);
        case.sender = Sender::Http;
        assert_eq!(case.how(), Some(How::AnswersDiffer));
        case.bodies = vec!["a", "a"];
        assert_eq!(case.how(), None);
    }
}
