//! What a record remembers of attempts that are over, and its steps, as JSON and in words.

use super::moment;
use crate::label::Label;
use bytes::Bytes;
use semel::Outcome;
use semel::clock::Time;
use semel::protocol::{Record, State, StepRecord, Superseded};
use serde_json::{Value, json};

/// The words that an operator's or a keeper's act begins with, where a history says who.
const ACTS: [&str; 4] = ["redrive", "release", "resolve", "park"];

/// The attempts that were superseded, the oldest first, each with the gate that ran it.
pub(crate) fn history_json(record: &Record) -> Value {
    let mut entries = Vec::new();
    for (entry, by) in record.history.iter().zip(begun_by(record)) {
        let is_act = is_act(&by);
        entries.push(json!({
            "fence": entry.fence.0,
            "began_at": moment(Time(entry.fence.0)),
            "gate": Some(&by).filter(|by| !is_act && !by.is_empty()),
            "act": Some(&by).filter(|_| is_act),
            "state": entry.state.word(),
            "in_doubt": entry.in_doubt,
            "ended": ended(entry),
            "status": status(&entry.result),
            "until": moment(entry.until),
            "lasted_s": lasted(entry).as_secs_f64(),
            "at": moment(entry.at),
            "by": text(&entry.by),
        }));
    }
    Value::Array(entries)
}

pub(crate) fn steps_json(steps: &[(String, StepRecord)]) -> Value {
    let step = |(name, step): &(String, StepRecord)| json!({"name": name, "fence": step.fence.0, "done": step.result.is_some()});
    steps.iter().map(step).collect()
}

/// Who began what each entry of a history is about: the gate of the label, then whoever superseded the one before. Unknown, and
/// so empty, where the beginning of the history is gone.
pub(crate) fn begun_by(record: &Record) -> Vec<String> {
    let history = &record.history;
    let is_whole = history.first().is_none_or(|it| it.fence == record.born);
    let first = Label::read(&record.label).filter(|_| is_whole);
    let first = first.map_or_else(String::new, |label| label.gate);
    let later = history.iter().map(|it| text(&it.by));
    std::iter::once(first).chain(later).collect()
}

/// How an attempt ended, in a few words.
pub(crate) fn ended(entry: &Superseded) -> String {
    let with = |words: &str| match status(&entry.result) {
        Some(status) => format!("{words} with {status}"),
        None => words.to_owned(),
    };
    match (entry.state, entry.in_doubt) {
        (State::Running, _) => "lapsed: nobody renewed its lease".to_owned(),
        (State::Waiting, true) => with("ended in doubt"),
        (State::Waiting, false) if entry.result.is_empty() => {
            "given back: nothing of it was begun".to_owned()
        }
        (State::Waiting, false) => with("failed, to be tried again"),
        (State::Failed, _) => with("failed for good"),
        (State::Parked, _) => with("parked"),
        (State::Succeeded, _) => with("succeeded"),
    }
}

/// How long it lasted: until its end, or until it was superseded.
pub(crate) fn lasted(entry: &Superseded) -> std::time::Duration {
    entry.until.min(entry.at).since(Time(entry.fence.0))
}

/// Whether this names an act, and not a gate. A gate must not be called so: its runs would be read as acts.
#[must_use]
pub fn is_act(by: &str) -> bool {
    let mut words = by.splitn(3, ' ');
    let act = words.next().is_some_and(|word| ACTS.contains(&word));
    act && words.next().is_none_or(|word| word == "by")
}

/// The status of an outcome, of which only the beginning may be kept.
pub(crate) fn status(result: &Bytes) -> Option<u16> {
    if let Ok(outcome) = Outcome::decode(result) {
        return Some(outcome.status);
    }
    let text = String::from_utf8_lossy(result);
    let (_, rest) = text.split_once("\"status\":")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

fn text(bytes: &Bytes) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_act_is_told_from_a_gates_name() {
        assert!(is_act("release by page: stuck") && is_act("redrive"));
        assert!(!is_act("gate-3") && !is_act("release-gate") && !is_act(""));
        assert!(!is_act("park gate"));
    }

    #[test]
    fn the_status_is_read_of_what_is_left_of_an_outcome() {
        let whole = Outcome::new(503, "x".repeat(500)).encode();
        assert_eq!(status(&whole), Some(503));
        assert_eq!(status(&whole.slice(..96)), Some(503));
        assert_eq!(status(&Bytes::from_static(b"\xff")), None);
    }
}
