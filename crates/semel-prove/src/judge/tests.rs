use super::*;
use bytes::Bytes;
use std::time::Duration;

struct Case {
    promise: Promise,
    sender: SenderKind,
    dead_letters: bool,
    requirement: Requirement,
    accepted: bool,
    count: u64,
    bodies: Vec<&'static str>,
}

impl Case {
    fn new(promise: Promise, accepted: bool, count: u64) -> Self {
        Self {
            promise,
            sender: SenderKind::CloudTasks,
            dead_letters: false,
            requirement: Requirement::Effect,
            accepted,
            count,
            bodies: Vec::new(),
        }
    }

    fn how(&self) -> Option<BreachKind> {
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
                payload: Payload::Default,
                status: 200,
                body: Bytes::from_static(body.as_bytes()),
                accepted: true,
            })
            .collect();
        let evidence = Evidence {
            promise: self.promise,
            sender: self.sender,
            dead_letters: self.dead_letters,
            ends_anyway: false,
            expected: &[("row".to_owned(), 1)],
            expectation: &[Expectation {
                id: id.clone(),
                requirement: self.requirement,
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
    assert_eq!(how(ExactlyOnce, 0), Some(BreachKind::EffectLost));
    assert_eq!(how(ExactlyOnce, 1), None);
    assert_eq!(how(ExactlyOnce, 2), Some(BreachKind::EffectTwice));
    assert_eq!(how(AtMostOnce, 0), None);
    assert_eq!(how(AtMostOnce, 2), Some(BreachKind::EffectTwice));
    assert_eq!(how(AtLeastOnce, 0), Some(BreachKind::EffectLost));
    assert_eq!(how(AtLeastOnce, 2), None);
}

#[test]
fn delivery_that_is_never_accepted_is_stuck() {
    let mut case = Case::new(Promise::ExactlyOnce, false, 1);
    assert_eq!(case.how(), Some(BreachKind::Stuck));
    case.promise = Promise::AtMostOnce;
    assert_eq!(case.how(), Some(BreachKind::Stuck));
    case.sender = SenderKind::Http;
    assert_eq!(case.how(), None);
}

#[test]
fn bad_delivery_must_end_somewhere() {
    let mut case = Case::new(Promise::ExactlyOnce, false, 0);
    case.requirement = Requirement::Termination;
    assert_eq!(case.how(), Some(BreachKind::Poison));
    case.dead_letters = true;
    assert_eq!(case.how(), None);
    case.accepted = true;
    assert_eq!(case.how(), None);
    case.count = 2;
    assert_eq!(case.how(), Some(BreachKind::EffectTwice));
}

#[test]
fn only_clients_compare_answers() {
    let mut case = Case::new(Promise::ExactlyOnce, true, 1);
    case.bodies = vec!["a", "b"];
    assert_eq!(case.how(), None);
    case.sender = SenderKind::Http;
    assert_eq!(case.how(), Some(BreachKind::AnswersDiffer));
    case.bodies = vec!["a", "a"];
    assert_eq!(case.how(), None);
}

fn event(what: What) -> Event {
    Event {
        at: Duration::ZERO,
        lane: "handler".to_owned(),
        what,
    }
}

fn sent(attempt: u32) -> Event {
    event(What::Sent {
        id: "a1".to_owned(),
        attempt,
    })
}

fn answered(attempt: u32, status: u16) -> Event {
    event(What::Answered {
        id: "a1".to_owned(),
        attempt,
        status,
        accepted: status == 200,
        known: true,
    })
}

fn unanswered(attempt: u32) -> Event {
    event(What::Unanswered {
        id: "a1".to_owned(),
        attempt,
        why: "the connection broke".to_owned(),
    })
}

fn judged(sender: SenderKind, requirement: Requirement, events: &[Event]) -> Option<BreachKind> {
    judged_where(sender, requirement, events, false)
}

fn judged_where(
    sender: SenderKind,
    requirement: Requirement,
    events: &[Event],
    ends_anyway: bool,
) -> Option<BreachKind> {
    let id = "a1".to_owned();
    let evidence = Evidence {
        promise: Promise::ExactlyOnce,
        sender,
        dead_letters: false,
        ends_anyway,
        expected: &[("row".to_owned(), 1)],
        expectation: &[Expectation {
            id: id.clone(),
            requirement,
        }],
        events,
        answers: &[],
        counts: &Counts::from([(("row".to_owned(), id), 1)]),
    };
    judge(&evidence).map(|(how, _)| how)
}

#[test]
fn duplicate_that_a_queue_sends_in_vain_is_stuck() {
    let refused = [sent(1), answered(1, 200), sent(2), answered(2, 500)];
    let by = |sender, requirement| judged(sender, requirement, &refused);
    assert_eq!(
        by(SenderKind::CloudTasks, Requirement::Effect),
        Some(BreachKind::Stuck)
    );
    assert_eq!(by(SenderKind::Http, Requirement::Effect), None);
    // Another payload under the same key may be refused.
    assert_eq!(by(SenderKind::CloudTasks, Requirement::EffectOnly), None);
    let busy = [
        sent(1),
        sent(2),
        answered(2, 503),
        answered(1, 200),
        sent(3),
    ];
    let healed = [&busy[..], &[answered(3, 200), unanswered(1)]].concat();
    assert_eq!(
        judged(SenderKind::CloudTasks, Requirement::Effect, &healed),
        None
    );
    let silent = [sent(1), answered(1, 200), sent(2), unanswered(2)];
    assert_eq!(
        judged(SenderKind::Http, Requirement::Effect, &silent),
        Some(BreachKind::Stuck)
    );
}

#[test]
fn process_that_ends_by_itself_is_not_held() {
    let mut events = vec![
        sent(1),
        answered(1, 200),
        sent(2),
        unanswered(2),
        event(What::Ended),
        event(What::Started),
        sent(3),
        answered(3, 200),
    ];
    for sender in [SenderKind::Http, SenderKind::CloudTasks] {
        assert_eq!(
            judged(sender, Requirement::Effect, &events),
            Some(BreachKind::Died)
        );
    }
    // It may be started for each delivery.
    let usual = judged_where(SenderKind::CloudTasks, Requirement::Effect, &events, true);
    assert_eq!(usual, None);
    // It may fall with what we killed.
    events.insert(3, event(What::Killed));
    assert_eq!(
        judged(SenderKind::CloudTasks, Requirement::Effect, &events),
        None
    );
}
