//! Makes a timeline small: what does not matter is left out.

use crate::verdict::{Event, What};

/// More refusals in a row say nothing new.
const REFUSALS_SHOWN: usize = 2;

/// The events a person needs to see, in order.
pub(crate) fn shrink(events: &[Event]) -> Vec<Event> {
    let ids = concerned(events);
    let kept = events
        .iter()
        .filter(|event| id(event).is_none_or(|id| ids.contains(&id)));
    fold_refusals(kept.cloned().collect())
}

/// The deliveries whose effects were counted.
fn concerned(events: &[Event]) -> Vec<&str> {
    events
        .iter()
        .filter(|event| matches!(event.what, What::Effects { .. }))
        .filter_map(id)
        .collect()
}

fn id(event: &Event) -> Option<&str> {
    match &event.what {
        What::Sent { id, .. }
        | What::Answered { id, .. }
        | What::Unanswered { id, .. }
        | What::Effects { id, .. } => Some(id),
        What::Wire { .. } | What::Killed | What::Started | What::Paused | What::Resumed => None,
    }
}

/// Keeps the first refusals of a row and its last one, with what belongs to them.
fn fold_refusals(events: Vec<Event>) -> Vec<Event> {
    let refused = refused(&events);
    let skipped: Vec<u32> = match refused.as_slice() {
        [head @ .., _last] => head.iter().copied().skip(REFUSALS_SHOWN).collect(),
        [] => Vec::new(),
    };
    let mut current = None;
    let keep = |event: &Event| {
        if let What::Sent { attempt, .. } = &event.what {
            current = Some(*attempt);
        }
        let hidden = current.is_some_and(|attempt| skipped.contains(&attempt));
        !hidden
            || matches!(
                event.what,
                What::Effects { .. } | What::Killed | What::Started | What::Resumed
            )
    };
    events.into_iter().filter(keep).collect()
}

fn refused(events: &[Event]) -> Vec<u32> {
    let one = |event: &Event| match &event.what {
        What::Answered {
            attempt,
            accepted: false,
            ..
        }
        | What::Unanswered { attempt, .. } => Some(*attempt),
        What::Answered { .. }
        | What::Sent { .. }
        | What::Wire { .. }
        | What::Killed
        | What::Started
        | What::Paused
        | What::Resumed
        | What::Effects { .. } => None,
    };
    events.iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn event(what: What) -> Event {
        Event {
            at: Duration::ZERO,
            lane: String::new(),
            what,
        }
    }

    fn refused(id: &str, attempt: u32) -> [Event; 3] {
        [
            event(What::Sent {
                id: id.to_owned(),
                attempt,
            }),
            event(What::Wire {
                boundary: attempt,
                outward: true,
                says: "SELECT".to_owned(),
            }),
            event(What::Answered {
                id: id.to_owned(),
                attempt,
                status: 409,
                accepted: false,
                known: true,
            }),
        ]
    }

    fn counted(id: &str) -> Event {
        event(What::Effects {
            effect: "row".to_owned(),
            id: id.to_owned(),
            count: 0,
        })
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
        events.push(counted("a1"));
        let shrunk = shrink(&events);
        assert_eq!(attempts(&shrunk), [1, 2, 11]);
        assert_eq!(shrunk.len(), 10);
        assert_eq!(shrunk.last(), Some(&counted("a1")));
    }

    #[test]
    fn deliveries_that_were_not_counted_are_left_out() {
        let mut events: Vec<Event> = refused("a1", 1).to_vec();
        events.extend(refused("b2", 1));
        events.push(counted("b2"));
        let shrunk = shrink(&events);
        assert!(
            !shrunk.iter().any(|event| id(event) == Some("a1")),
            "{shrunk:?}"
        );
        assert_eq!(attempts(&shrunk), [1]);
    }
}
