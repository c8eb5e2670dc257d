//! Events for tests.

use super::timeline::{Event, What};
use std::time::Duration;

pub(crate) fn event(what: What) -> Event {
    Event {
        at: Duration::ZERO,
        lane: "handler".to_owned(),
        what,
    }
}

pub(crate) fn sent(id: &str, attempt: u32) -> Event {
    let id = id.to_owned();
    event(What::Sent {
        id,
        attempt,
        to: None,
        variant: None,
    })
}

/// Known to the sender; only 200 is a success.
pub(crate) fn answered(id: &str, attempt: u32, status: u16) -> Event {
    event(What::Answered {
        id: id.to_owned(),
        attempt,
        status,
        accepted: status == 200,
        known: true,
    })
}

pub(crate) fn unanswered(id: &str, attempt: u32) -> Event {
    event(What::Unanswered {
        id: id.to_owned(),
        attempt,
        why: "the connection broke".to_owned(),
    })
}

/// To a dependency, or from it.
pub(crate) fn says(outward: bool, text: &str) -> Event {
    says_with(outward, text, &[])
}

/// The same with values.
pub(crate) fn says_with(outward: bool, text: &str, values: &[&str]) -> Event {
    event(What::Wire {
        boundary: 1,
        outward,
        process: "handler".to_owned(),
        says: text.to_owned(),
        values: values.iter().map(|&value| value.to_owned()).collect(),
    })
}

pub(crate) fn counted(id: &str, count: u64) -> Event {
    Event::effects(Duration::ZERO, "row".to_owned(), id.to_owned(), count)
}
