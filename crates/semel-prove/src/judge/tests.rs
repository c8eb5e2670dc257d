use super::samples::{answered, event, sent, unanswered};
use super::*;
use crate::world::sender::OTHER_TENANT;
use BreachKind::{AnswersDiffer, Died, EffectLost, EffectTwice, OldWins, Poison, Stuck};
use SenderKind::{CloudTasks, Http};
use bytes::Bytes;

const SCENARIO: &str = r#"
    promise = "exactly once"
    [deliver]
    as = "cloud-tasks"
    [[effect]]
    name = "row"
"#;

/// One delivery, `a1`, and what is known of it.
struct Judged {
    scenario: Scenario,
    payload: Payload,
    ends_anyway: bool,
    events: Vec<Event>,
    count: u64,
    bodies: Vec<&'static str>,
}

impl Judged {
    fn new(promise: Promise, accepted: bool, count: u64) -> Self {
        let mut judged = Self::of(CloudTasks, Payload::Default, &[]);
        judged.scenario.promise = promise;
        let status = if accepted { 200 } else { 503 };
        judged.events = vec![sent("a1", 1), answered("a1", 1, status)];
        judged.count = count;
        judged
    }

    fn of(sender: SenderKind, payload: Payload, events: &[Event]) -> Self {
        let mut scenario: Scenario = toml::from_str(SCENARIO).unwrap();
        scenario.deliver.sender = sender;
        Self {
            scenario,
            payload,
            ends_anyway: false,
            events: events.to_vec(),
            count: 1,
            bodies: Vec::new(),
        }
    }

    fn how(&self) -> Option<BreachKind> {
        let id = "a1".to_owned();
        let answer = |body: &&'static str| HandlerAnswer {
            id: id.clone(),
            tenant: "tenant-a",
            payload: Payload::Default,
            status: 200,
            body: Bytes::from_static(body.as_bytes()),
            accepted: true,
        };
        let mut delivery = Delivery::new(id.clone(), 1);
        delivery.payload = self.payload;
        let evidence = Evidence {
            scenario: &self.scenario,
            ends_anyway: self.ends_anyway,
            deliveries: &[delivery],
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
    let how = |promise, count| Judged::new(promise, true, count).how();
    for (promise, none, one, two) in [
        (ExactlyOnce, Some(EffectLost), None, Some(EffectTwice)),
        (AtMostOnce, None, None, Some(EffectTwice)),
        (AtLeastOnce, Some(EffectLost), None, None),
    ] {
        assert_eq!([0, 1, 2].map(|count| how(promise, count)), [none, one, two]);
    }
}

#[test]
fn delivery_that_is_never_accepted_is_stuck() {
    let mut judged = Judged::new(Promise::ExactlyOnce, false, 1);
    assert_eq!(judged.how(), Some(Stuck));
    judged.scenario.promise = Promise::AtMostOnce;
    assert_eq!(judged.how(), Some(Stuck));
    judged.scenario.deliver.sender = Http;
    assert_eq!(judged.how(), None);
}

#[test]
fn bad_delivery_must_end_somewhere() {
    let mut judged = Judged::new(Promise::ExactlyOnce, false, 0);
    judged.payload = Payload::Bad;
    assert_eq!(judged.how(), Some(Poison));
    judged.scenario.deliver.dead_letters = true;
    assert_eq!(judged.how(), None);
    judged.events.push(answered("a1", 1, 200));
    assert_eq!(judged.how(), None);
    judged.count = 2;
    assert_eq!(judged.how(), Some(EffectTwice));
}

#[test]
fn only_clients_compare_answers() {
    let mut judged = Judged::new(Promise::ExactlyOnce, true, 1);
    judged.bodies = vec!["a", "b"];
    assert_eq!(judged.how(), None);
    judged.scenario.deliver.sender = Http;
    assert_eq!(judged.how(), Some(AnswersDiffer));
    judged.bodies = vec!["a", "a"];
    assert_eq!(judged.how(), None);
}

#[test]
fn duplicate_that_a_queue_sends_in_vain_is_stuck() {
    let by = |sender, payload, events: &[Event]| Judged::of(sender, payload, events).how();
    let accepted = [sent("a1", 1), answered("a1", 1, 200), sent("a1", 2)];
    let refused = [&accepted[..], &[answered("a1", 2, 500)]].concat();
    assert_eq!(by(CloudTasks, Payload::Default, &refused), Some(Stuck));
    assert_eq!(by(Http, Payload::Default, &refused), None);
    // Another payload under the same key may be refused.
    assert_eq!(by(CloudTasks, Payload::Other, &refused), None);
    let healed = [
        sent("a1", 1),
        sent("a1", 2),
        answered("a1", 2, 503),
        answered("a1", 1, 200),
        sent("a1", 3),
        answered("a1", 3, 200),
        unanswered("a1", 1),
    ];
    assert_eq!(by(CloudTasks, Payload::Default, &healed), None);
    let silent = [&accepted[..], &[unanswered("a1", 2)]].concat();
    assert_eq!(by(Http, Payload::Default, &silent), Some(Stuck));
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
    let by = |sender, events: &[Event]| Judged::of(sender, Payload::Default, events);
    for sender in [Http, CloudTasks] {
        assert_eq!(by(sender, &events).how(), Some(Died));
    }
    // It may be started for each delivery.
    let mut judged = by(CloudTasks, &events);
    judged.ends_anyway = true;
    assert_eq!(judged.how(), None);
    // It may fall with what we killed.
    events.insert(3, event(What::Killed));
    assert_eq!(by(CloudTasks, &events).how(), None);
}

/// What becomes of two deliveries that were both accepted, seen so often.
fn of_two(
    scenario: &str,
    deliveries: &[Delivery],
    counts: &[(&str, &str, u64)],
) -> Option<BreachKind> {
    let accepted = |it: &Delivery| [sent(&it.id, 1), answered(&it.id, 1, 200)];
    let events: Vec<Event> = deliveries.iter().flat_map(accepted).collect();
    let counts = counts.iter();
    let counts =
        counts.map(|(effect, id, count)| (((*effect).to_owned(), (*id).to_owned()), *count));
    let evidence = Evidence {
        scenario: &toml::from_str(scenario).unwrap(),
        ends_anyway: false,
        deliveries,
        events: &events,
        answers: &[],
        counts: &counts.collect(),
    };
    judge(&evidence).map(|breach| breach.kind)
}

#[test]
fn each_tenant_of_an_id_is_owed_its_effect() {
    let first = Delivery::new("a1".to_owned(), 1);
    let both = [first.of_tenant(OTHER_TENANT), first];
    let how = |count| of_two(SCENARIO, &both, &[("row", "a1", count)]);
    assert_eq!(
        [1, 2, 3].map(how),
        [Some(EffectLost), None, Some(EffectTwice)]
    );
}

#[test]
fn newest_version_must_stand_and_older_ones_may_be_left_out() {
    let versioned = SCENARIO.replace("as = ", "body = '{entity} {version}'\nas = ")
        + "[[effect]]\nname = 'state'\nnewest = true";
    let older = Delivery::new("a1".to_owned(), 1);
    let mut newer = Delivery::new("a2".to_owned(), 2).about(Some("a1"));
    newer.version = 2;
    let both = [older, newer];
    let how = |older, stands| {
        let counts = [
            ("row", "a1", older),
            ("row", "a2", 0),
            ("state", "a1", stands),
        ];
        of_two(&versioned, &both, &counts)
    };
    assert_eq!(how(1, 2), None);
    assert_eq!(how(0, 2), None);
    assert_eq!(how(1, 1), Some(OldWins));
    assert_eq!(how(1, 0), Some(EffectLost));
    assert_eq!(how(2, 2), Some(EffectTwice));
    // Who is not told of versions owes the later one its effect.
    let counts = |newer| [("row", "a1", 0), ("row", "a2", newer)];
    assert_eq!(of_two(SCENARIO, &both, &counts(1)), None);
    assert_eq!(of_two(SCENARIO, &both, &counts(0)), Some(EffectLost));
}
