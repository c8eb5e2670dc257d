//! Makes a timeline small: what does not matter is left out.

#[cfg(test)]
mod tests;

use crate::judge::timeline::{Event, What};
use std::collections::{BTreeMap, BTreeSet};

/// More refusals in a row say nothing new.
const REFUSALS_SHOWN: usize = 2;

/// Answers that every transaction gets.
const ROUTINE_ANSWERS: [&str; 3] = ["BEGIN", "COMMIT", "ROLLBACK"];

/// One attempt of one delivery.
type Attempt = (String, u32);

/// The events a person needs to see, in order.
pub(crate) fn shrink(events: &[Event]) -> Vec<Event> {
    let ids = concerned(events);
    let kept = events
        .iter()
        .filter(|event| event.delivery().is_none_or(|id| ids.contains(&id)));
    without_routine_answers(fold_refusals(kept.cloned().collect()))
}

/// The deliveries whose effects were counted.
fn concerned(events: &[Event]) -> Vec<&str> {
    let counted = |event: &&Event| matches!(event.what, What::Effects { .. });
    let counted = events.iter().filter(counted);
    counted.filter_map(Event::delivery).collect()
}

/// Keeps a delivery's first refusals and its last one. What is said on the wire goes with them only when nobody else can
/// have said it.
fn fold_refusals(events: Vec<Event>) -> Vec<Event> {
    let folded = folded(&events);
    let mut open: BTreeSet<Attempt> = BTreeSet::new();
    let keep = |event: &Event| {
        if let What::Sent { id, attempt, .. } = &event.what {
            let one = (id.clone(), *attempt);
            open.insert(one.clone());
            return !folded.contains(&one);
        }
        if let Some((id, attempt, _)) = event.attempt_end() {
            let one = (id.to_owned(), attempt);
            open.remove(&one);
            return !folded.contains(&one);
        }
        let on_the_wire = matches!(event.what, What::Wire { .. });
        !on_the_wire || open.is_empty() || !open.is_subset(&folded)
    };
    events.into_iter().filter(keep).collect()
}

/// The refusals that are left out.
fn folded(events: &[Event]) -> BTreeSet<Attempt> {
    let mut refused: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for (id, attempt) in events.iter().filter_map(refusal) {
        refused.entry(id).or_default().push(attempt);
    }
    let mut folded = BTreeSet::new();
    for (id, attempts) in refused {
        let last = attempts.len().saturating_sub(1);
        let middle = attempts.into_iter().take(last).skip(REFUSALS_SHOWN);
        folded.extend(middle.map(|attempt| (id.to_owned(), attempt)));
    }
    folded
}

fn refusal(event: &Event) -> Option<(&str, u32)> {
    let (id, attempt, accepted) = event.attempt_end()?;
    (!accepted).then_some((id, attempt))
}

/// That a transaction was answered is not news, unless its process was stopped right then.
fn without_routine_answers(events: Vec<Event>) -> Vec<Event> {
    let stops: Vec<bool> = events.iter().map(stops).collect();
    let next = stops.into_iter().skip(1).chain([false]);
    let kept = events.into_iter().zip(next);
    kept.filter(|(event, stopped)| *stopped || !is_routine_answer(event))
        .map(|(event, _)| event)
        .collect()
}

fn stops(event: &Event) -> bool {
    matches!(event.what, What::Killed | What::Ended | What::Paused)
}

fn is_routine_answer(event: &Event) -> bool {
    matches!(&event.what, What::Wire { outward: false, says, .. } if ROUTINE_ANSWERS.contains(&says.as_str()))
}
