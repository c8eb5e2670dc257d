use super::*;
use crate::judge::samples::{answered, counted, event, says, sent};

fn refused(id: &str, attempt: u32) -> [Event; 3] {
    [
        sent(id, attempt),
        says(true, "SELECT"),
        answered(id, attempt, 409),
    ]
}

fn attempts(events: &[Event]) -> Vec<u32> {
    let sent = |event: &Event| {
        let What::Sent { attempt, .. } = event.what else {
            return None;
        };
        Some(attempt)
    };
    events.iter().filter_map(sent).collect()
}

#[test]
fn many_refusals_are_folded_to_the_first_and_the_last() {
    let mut events: Vec<Event> = (1..=11)
        .flat_map(|attempt| refused("a1", attempt))
        .collect();
    events.push(counted("a1", 0));
    let shrunk = shrink(&events);
    assert_eq!(attempts(&shrunk), [1, 2, 11]);
    assert_eq!(shrunk.len(), 10);
    assert_eq!(shrunk.last(), Some(&counted("a1", 0)));
}

#[test]
fn deliveries_that_were_not_counted_are_left_out() {
    let mut events: Vec<Event> = refused("a1", 1).to_vec();
    events.extend(refused("b2", 1));
    events.push(counted("b2", 0));
    let shrunk = shrink(&events);
    assert!(
        !shrunk.iter().any(|event| event.delivery() == Some("a1")),
        "{shrunk:?}"
    );
    assert_eq!(attempts(&shrunk), [1]);
}

#[test]
fn successes_among_many_refusals_are_kept_with_what_they_said() {
    let all: Vec<[Event; 3]> = (1..=16).map(|attempt| refused("a1", attempt)).collect();
    // All at once: everybody is sent first, the first and the twelfth succeed, the others are refused.
    let mut events: Vec<Event> = all.iter().map(|[sent, _, _]| sent.clone()).collect();
    for [_, _, answered] in all.iter().skip(1).filter(|[_, _, end]| end != &all[11][2]) {
        events.push(answered.clone());
    }
    events.push(says(true, "INSERT"));
    events.extend([
        answered("a1", 1, 200),
        answered("a1", 12, 200),
        counted("a1", 0),
    ]);
    let shrunk = shrink(&events);
    assert_eq!(attempts(&shrunk), [1, 2, 3, 12, 16]);
    for one in [
        says(true, "INSERT"),
        answered("a1", 1, 200),
        answered("a1", 12, 200),
    ] {
        assert!(shrunk.contains(&one), "{one:?}: {shrunk:#?}");
    }
}

#[test]
fn refusals_of_one_delivery_do_not_hide_another() {
    let mut events: Vec<Event> = (1..=6).flat_map(|attempt| refused("a1", attempt)).collect();
    let mut other = refused("b2", 3).to_vec();
    other[2] = answered("b2", 3, 200);
    events.splice(9..9, other.clone());
    events.extend([counted("a1", 0), counted("b2", 0)]);
    let shrunk = shrink(&events);
    assert!(other.iter().all(|one| shrunk.contains(one)), "{shrunk:#?}");
}

#[test]
fn answers_to_transactions_are_left_out_unless_they_were_the_last_thing_said() {
    let events = [
        says(true, "BEGIN"),
        says(false, "BEGIN"),
        says(true, "COMMIT"),
        says(false, "COMMIT"),
        event(What::Killed),
    ];
    let kept = [
        says(true, "BEGIN"),
        says(true, "COMMIT"),
        says(false, "COMMIT"),
        event(What::Killed),
    ];
    assert_eq!(shrink(&events), kept);
}
