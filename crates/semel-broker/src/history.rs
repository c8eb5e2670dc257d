//! What was delivered to whom, and what came of it: every dispatch, up to a limit.

use crate::clock::Time;
use crate::http_client::Answer;
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

/// The last dispatches, oldest first.
#[derive(Debug)]
pub(crate) struct History {
    limit: usize,
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    dispatches: VecDeque<Dispatch>,
    /// The number of the first one that is still here.
    first: u64,
}

/// One dispatch.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Dispatch {
    /// Counts from 0 since the broker started.
    pub(crate) number: u64,
    /// Microseconds since 1970, by the broker's clock.
    pub(crate) at_us: i64,
    /// The queue's or subscription's full name.
    pub(crate) resource: String,
    /// The task's short id, or the message's id.
    pub(crate) id: String,
    /// Begins with 1.
    pub(crate) attempt: u32,
    /// A URL, or `pull`.
    pub(crate) target: String,
    /// What was made to go wrong.
    pub(crate) faults: Vec<&'static str>,
    #[serde(flatten)]
    pub(crate) result: DispatchResult,
    /// How long it took; nothing while it runs.
    pub(crate) took_us: Option<u64>,
}

/// What came of a dispatch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "result", rename_all = "kebab-case")]
pub(crate) enum DispatchResult {
    /// Not over yet.
    Running,
    /// The handler answered; whether that is a success is the sender's to say.
    Answered {
        status: u16,
        success: bool,
    },
    /// The handler answered, and a fault made the broker ignore it.
    AnswerLost {
        status: u16,
    },
    /// The deadline passed.
    TimedOut,
    /// No answer came.
    Unreachable {
        why: String,
    },
    /// A fault broke the connection.
    Cut,
    /// A subscriber who pulls acknowledged it, or refused it.
    Acknowledged,
    Refused,
}

/// What is known when a dispatch begins.
#[derive(Debug)]
pub(crate) struct DispatchStart<'a> {
    pub(crate) at: Time,
    pub(crate) resource: &'a str,
    pub(crate) id: &'a str,
    pub(crate) attempt: u32,
    pub(crate) target: &'a str,
    pub(crate) faults: Vec<&'static str>,
}

/// Which dispatches to show.
#[derive(Clone, Debug, Default)]
pub(crate) struct HistoryFilter {
    /// A full name, or the last part of one.
    pub(crate) resource: Option<String>,
    pub(crate) id: Option<String>,
    /// Only those with a higher number.
    pub(crate) after: Option<u64>,
    pub(crate) limit: usize,
}

// === impl DispatchResult ===

impl DispatchResult {
    /// What came of a call; with `lost`, a fault makes the broker ignore the answer.
    pub(crate) fn of(answer: &Answer, success: bool, lost: bool) -> Self {
        match answer {
            Answer::Status { code, .. } if lost => Self::AnswerLost { status: *code },
            Answer::Status { code, .. } => Self::Answered {
                status: *code,
                success,
            },
            Answer::TimedOut => Self::TimedOut,
            Answer::Unreachable(why) => Self::Unreachable { why: why.clone() },
            Answer::Cut => Self::Cut,
        }
    }
}

// === impl History ===

impl History {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            entries: Mutex::default(),
        }
    }

    /// Notes down that a dispatch begins; the number is for [`History::end`].
    pub(crate) fn begin(&self, begun: DispatchStart<'_>) -> u64 {
        let mut entries = self.entries.lock().expect("nobody panics holding it");
        let number = entries.first + entries.dispatches.len() as u64;
        entries.dispatches.push_back(Dispatch {
            number,
            at_us: begun.at.0,
            resource: begun.resource.into(),
            id: begun.id.into(),
            attempt: begun.attempt,
            target: begun.target.into(),
            faults: begun.faults,
            result: DispatchResult::Running,
            took_us: None,
        });
        if entries.dispatches.len() > self.limit {
            entries.dispatches.pop_front();
            entries.first += 1;
        }
        number
    }

    /// Notes down what came of it.
    pub(crate) fn end(&self, number: u64, result: DispatchResult, took: Duration) {
        let mut entries = self.entries.lock().expect("nobody panics holding it");
        let Some(place) = number.checked_sub(entries.first) else {
            return;
        };
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        if let Some(dispatch) = entries.dispatches.get_mut(place) {
            dispatch.result = result;
            dispatch.took_us = u64::try_from(took.as_micros()).ok();
        }
    }

    /// The dispatches that are wanted, oldest first, and how many older ones were let go.
    pub(crate) fn list(&self, wanted: &HistoryFilter) -> (Vec<Dispatch>, u64) {
        let entries = self.entries.lock().expect("nobody panics holding it");
        let list = entries.dispatches.iter().filter(|it| wanted.matches(it));
        (list.take(wanted.limit).cloned().collect(), entries.first)
    }

    /// The last of those that are wanted, newest first.
    pub(crate) fn latest(&self, wanted: &HistoryFilter) -> Vec<Dispatch> {
        let entries = self.entries.lock().expect("nobody panics holding it");
        let list = entries.dispatches.iter().rev();
        let list = list.filter(|it| wanted.matches(it));
        list.take(wanted.limit).cloned().collect()
    }

    /// How many dispatches there were, those that were let go included.
    pub(crate) fn count(&self) -> u64 {
        let entries = self.entries.lock().expect("nobody panics holding it");
        entries.first + entries.dispatches.len() as u64
    }

    /// Forgets everything; numbers go on.
    pub(crate) fn clear(&self) {
        let mut entries = self.entries.lock().expect("nobody panics holding it");
        entries.first += entries.dispatches.len() as u64;
        entries.dispatches.clear();
    }
}

// === impl HistoryFilter ===

impl HistoryFilter {
    fn matches(&self, dispatch: &Dispatch) -> bool {
        let last_part = dispatch.resource.rsplit('/').next();
        let resource = self.resource.as_deref();
        let of_resource = |it| it == dispatch.resource || Some(it) == last_part;
        resource.is_none_or(of_resource)
            && self.id.as_ref().is_none_or(|id| *id == dispatch.id)
            && self.after.is_none_or(|after| dispatch.number > after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(history: &History, id: &str) -> u64 {
        history.begin(DispatchStart {
            at: Time(1),
            resource: "projects/p/locations/l/queues/q",
            id,
            attempt: 1,
            target: "http://127.0.0.1:1/",
            faults: Vec::new(),
        })
    }

    fn ids(history: &History, wanted: &HistoryFilter) -> Vec<String> {
        let (list, _) = history.list(wanted);
        list.into_iter().map(|dispatch| dispatch.id).collect()
    }

    #[test]
    fn the_oldest_are_let_go_and_counted() {
        let history = History::new(2);
        let first = begin(&history, "a");
        begin(&history, "b");
        let last = begin(&history, "c");
        history.end(first, DispatchResult::TimedOut, Duration::ZERO);
        history.end(last, DispatchResult::Cut, Duration::from_millis(2));
        let all = HistoryFilter {
            limit: 10,
            ..HistoryFilter::default()
        };
        let (list, let_go) = history.list(&all);
        assert_eq!(let_go, 1);
        assert_eq!(list[0].result, DispatchResult::Running);
        assert_eq!(list[1].result, DispatchResult::Cut);
        assert_eq!(list[1].took_us, Some(2000));
        let json = serde_json::to_value(&list[1]).unwrap();
        assert_eq!(json["result"], "cut");
    }

    #[test]
    fn only_what_is_wanted_is_shown() {
        let history = History::new(10);
        for id in ["a", "b", "a"] {
            begin(&history, id);
        }
        let wanted = |resource: &str, id: Option<&str>, after| HistoryFilter {
            resource: Some(resource.into()),
            id: id.map(Into::into),
            after,
            limit: 10,
        };
        assert_eq!(ids(&history, &wanted("q", Some("a"), None)), ["a", "a"]);
        assert_eq!(ids(&history, &wanted("q", None, Some(0))), ["b", "a"]);
        assert!(ids(&history, &wanted("other", None, None)).is_empty());
        history.clear();
        assert_eq!(begin(&history, "d"), 3);
    }
}
