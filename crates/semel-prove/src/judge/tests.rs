use super::samples::{answered, event, sent, unanswered};
use super::*;
use bytes::Bytes;

const SCENARIO: &str = r#"
    promise = "exactly once"
    [deliver]
    as = "cloud-tasks"
    [[effect]]
    name = "row"
"#;

/// One delivery, `a1`, and what is known of it.
struct Case {
    scenario: Scenario,
    requirement: Requirement,
    ends_anyway: bool,
    events: Vec<Event>,
    count: u64,
    bodies: Vec<&'static str>,
}

impl Case {
    fn new(promise: Promise, accepted: bool, count: u64) -> Self {
        let mut case = Self::of(SenderKind::CloudTasks, Requirement::Effect, &[]);
        case.scenario.promise = promise;
        let status = if accepted { 200 } else { 503 };
        case.events = vec![sent("a1", 1), answered("a1", 1, status)];
        case.count = count;
        case
    }

    fn of(sender: SenderKind, requirement: Requirement, events: &[Event]) -> Self {
        let mut scenario: Scenario = toml::from_str(SCENARIO).unwrap();
        scenario.deliver.sender = sender;
        Self {
            scenario,
            requirement,
            ends_anyway: false,
            events: events.to_vec(),
            count: 1,
            bodies: Vec::new(),
        }
    }

    fn how(&self) -> Option<BreachKind> {
        let id = "a1".to_owned();
        let answer = |body: &&'static str| Answer {
            id: id.clone(),
            payload: Payload::Default,
            status: 200,
            body: Bytes::from_static(body.as_bytes()),
            accepted: true,
        };
        let evidence = Evidence {
            scenario: &self.scenario,
            ends_anyway: self.ends_anyway,
            expectations: &[Expectation {
                id: id.clone(),
                requirement: self.requirement,
            }],
            events: &self.events,
            answers: &self.bodies.iter().map(answer).collect::<Vec<_>>(),
            counts: &Counts::from([(("row".to_owned(), id.clone()), self.count)]),
        };
        judge(&evidence).map(|breach| breach.kind)
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
    case.scenario.promise = Promise::AtMostOnce;
    assert_eq!(case.how(), Some(BreachKind::Stuck));
    case.scenario.deliver.sender = SenderKind::Http;
    assert_eq!(case.how(), None);
}

#[test]
fn bad_delivery_must_end_somewhere() {
    let mut case = Case::new(Promise::ExactlyOnce, false, 0);
    case.requirement = Requirement::Termination;
    assert_eq!(case.how(), Some(BreachKind::Poison));
    case.scenario.deliver.dead_letters = true;
    assert_eq!(case.how(), None);
    case.events.push(answered("a1", 1, 200));
    assert_eq!(case.how(), None);
    case.count = 2;
    assert_eq!(case.how(), Some(BreachKind::EffectTwice));
}

#[test]
fn only_clients_compare_answers() {
    let mut case = Case::new(Promise::ExactlyOnce, true, 1);
    case.bodies = vec!["a", "b"];
    assert_eq!(case.how(), None);
    case.scenario.deliver.sender = SenderKind::Http;
    assert_eq!(case.how(), Some(BreachKind::AnswersDiffer));
    case.bodies = vec!["a", "a"];
    assert_eq!(case.how(), None);
}

#[test]
fn duplicate_that_a_queue_sends_in_vain_is_stuck() {
    let refused = [
        sent("a1", 1),
        answered("a1", 1, 200),
        sent("a1", 2),
        answered("a1", 2, 500),
    ];
    let by = |sender, requirement| Case::of(sender, requirement, &refused).how();
    assert_eq!(
        by(SenderKind::CloudTasks, Requirement::Effect),
        Some(BreachKind::Stuck)
    );
    assert_eq!(by(SenderKind::Http, Requirement::Effect), None);
    // Another payload under the same key may be refused.
    assert_eq!(by(SenderKind::CloudTasks, Requirement::EffectOnly), None);
    let busy = [
        sent("a1", 1),
        sent("a1", 2),
        answered("a1", 2, 503),
        answered("a1", 1, 200),
        sent("a1", 3),
    ];
    let healed = [&busy[..], &[answered("a1", 3, 200), unanswered("a1", 1)]].concat();
    assert_eq!(
        Case::of(SenderKind::CloudTasks, Requirement::Effect, &healed).how(),
        None
    );
    let silent = [
        sent("a1", 1),
        answered("a1", 1, 200),
        sent("a1", 2),
        unanswered("a1", 2),
    ];
    assert_eq!(
        Case::of(SenderKind::Http, Requirement::Effect, &silent).how(),
        Some(BreachKind::Stuck)
    );
}

#[test]
fn process_that_ends_by_itself_is_not_held() {
    let mut events = vec![
        sent("a1", 1),
        answered("a1", 1, 200),
        sent("a1", 2),
        unanswered("a1", 2),
        event(What::Ended),
        event(What::Started),
        sent("a1", 3),
        answered("a1", 3, 200),
    ];
    for sender in [SenderKind::Http, SenderKind::CloudTasks] {
        assert_eq!(
            Case::of(sender, Requirement::Effect, &events).how(),
            Some(BreachKind::Died)
        );
    }
    // It may be started for each delivery.
    let mut case = Case::of(SenderKind::CloudTasks, Requirement::Effect, &events);
    case.ends_anyway = true;
    assert_eq!(case.how(), None);
    // It may fall with what we killed.
    events.insert(3, event(What::Killed));
    assert_eq!(
        Case::of(SenderKind::CloudTasks, Requirement::Effect, &events).how(),
        None
    );
}
