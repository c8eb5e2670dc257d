//! What a handler says at each attempt, and what changes from one to the next.

use super::BrokenAttack;
use super::statements::looks;
use crate::attacks::attack::Attack;
use crate::judge::timeline::{Event, What};
use crate::world::protocol::shape;
use std::collections::BTreeSet;

/// A shorter word that changes is a counter or a status, not an id.
const ID_CHARS_MIN: usize = 8;
/// A number this large that changes may be a time: in seconds, milliseconds or microseconds since 1970, or in
/// microseconds since 2000, as PostgreSQL sends it.
const TIMES: [(f64, f64); 4] = [
    (1.5e9, 2.5e9),
    (1.5e12, 2.5e12),
    (1.5e15, 2.5e15),
    (7e14, 1.1e15),
];

/// One request to a dependency.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'a> {
    pub(super) says: &'a str,
    pub(super) values: &'a [String],
}

/// A word that two attempts say differently in the same place of the same request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change<'a> {
    pub(super) says: &'a str,
    pub(super) first: &'a str,
    pub(super) then: &'a str,
}

/// What was asked at one attempt.
#[derive(Debug)]
struct Turn<'a> {
    delivery: Option<&'a str>,
    requests: Vec<Request<'a>>,
}

// === impl Request ===

impl<'a> Request<'a> {
    pub(super) fn of(event: &'a Event) -> Option<Self> {
        let What::Wire {
            outward: true,
            says,
            values,
            ..
        } = &event.what
        else {
            return None;
        };
        Some(Self { says, values })
    }

    /// The header that holds its idempotency key.
    pub(super) fn key_header(self) -> Option<&'a str> {
        let header = self.values.iter().find(|value| value.contains(": "));
        header.filter(|_| self.is_call()).map(String::as_str)
    }

    pub(super) fn is_call(self) -> bool {
        let mut methods = ["POST /", "PUT /", "PATCH /", "DELETE /"].iter();
        methods.any(|method| self.says.starts_with(method))
    }

    fn words(self) -> Vec<&'a str> {
        let apart = |c: char| c.is_whitespace() || matches!(c, '(' | ')' | ',' | '\'' | '"' | ';');
        let words = self.says.split(apart).filter(|word| !word.is_empty());
        words
            .chain(self.values.iter().map(String::as_str))
            .collect()
    }

    /// The first word that differs in another request of the same shape.
    fn change(self, other: Self, matters: impl Fn(&str) -> bool) -> Option<Change<'a>> {
        let (words, others) = (self.words(), other.words());
        if words.len() != others.len() {
            return None;
        }
        let mut pairs = words.into_iter().zip(others);
        let (first, then) = pairs.find(|(one, other)| one != other && matters(one))?;
        let says = self.says;
        Some(Change { says, first, then })
    }
}

// === impl BrokenAttack ===

impl<'a> BrokenAttack<'a> {
    /// A write that has another id at each attempt.
    pub(super) fn changed_id(&self) -> Option<Change<'a>> {
        self.changed(
            |request| super::writes(request.says) && !request.is_call(),
            is_made_up,
        )
    }

    /// A header that should name the same request at each attempt, and does not.
    pub(super) fn changed_header(&self) -> Option<Change<'a>> {
        let header = |word: &str| word.contains(": ");
        self.changed(|request| request.key_header().is_some(), header)
    }

    /// More keys for one call than an undisturbed run has calls of its kind, whichever attempt made them: one whose
    /// sender has given up may still try again beside the next.
    pub(super) fn another_key(&self) -> Option<Change<'a>> {
        let requests = self.timeline.iter().filter_map(Request::of);
        let calls: Vec<(&str, &str)> = requests
            .filter_map(|it| Some((it.says, it.key_header()?)))
            .collect();
        calls.iter().enumerate().find_map(|(at, &(says, then))| {
            let alike = |other: &str| shape(other) == shape(says);
            let earlier = calls.iter().take(at).filter(|(other, _)| alike(other));
            let earlier: BTreeSet<&str> = earlier.map(|(_, key)| *key).collect();
            let usual = self.clues.baseline.iter().filter(|it| alike(it)).count();
            let new = !earlier.contains(then) && earlier.len() >= usual.max(1);
            let first = earlier.first().filter(|_| new && self.disturbed())?;
            Some(Change { says, first, then })
        })
    }

    /// What is looked for has another name at each attempt.
    pub(super) fn changed_key(&self) -> Option<Change<'a>> {
        let sent = self.timeline.iter().find_map(Event::delivery);
        let names = |word: &str| sent.is_some_and(|id| word.contains(id)) || is_made_up(word);
        self.changed(|request| looks(request.says), names)
    }

    /// The same request, counted among its like, at an attempt and at the next one of the same delivery. Where every
    /// repeat takes effect, the plainest one shows it, too.
    fn changed(
        &self,
        which: impl Fn(&Request<'a>) -> bool,
        matters: impl Fn(&str) -> bool,
    ) -> Option<Change<'a>> {
        let repeat = self.clues.broken(Attack::Repeat);
        let repeat = repeat.filter(|_| self.every_repeat());
        let timelines = [Some(self.timeline), repeat.map(|it| &*it.timeline)];
        let mut timelines = timelines.into_iter().flatten();
        timelines.find_map(|timeline| changed(timeline, &which, &matters))
    }
}

/// The same in one timeline.
fn changed<'a>(
    timeline: &'a [Event],
    which: impl Fn(&Request<'a>) -> bool,
    matters: impl Fn(&str) -> bool,
) -> Option<Change<'a>> {
    let turns = turns(timeline);
    turns.iter().enumerate().find_map(|(number, first)| {
        let mut later = turns.iter().skip(number + 1);
        let then = &later.find(|it| it.delivery == first.delivery)?.requests;
        let asked = first.requests.iter().enumerate();
        asked.filter(|(_, it)| which(it)).find_map(|(at, one)| {
            let alike = |other: &&Request<'a>| shape(other.says) == shape(one.says);
            let before = first.requests.iter().take(at).filter(alike).count();
            let other = then.iter().filter(alike).nth(before)?;
            one.change(*other, &matters)
        })
    })
}

/// The requests of each attempt, if one came after the other: otherwise nobody knows which of them asked. What is said after a dependency has failed is another
/// attempt, whoever makes it.
fn turns(timeline: &[Event]) -> Vec<Turn<'_>> {
    let (mut turns, mut open) = (Vec::<Turn<'_>>::new(), 0_usize);
    for event in timeline {
        let sent = matches!(event.what, What::Sent { .. });
        open += usize::from(sent);
        if event.attempt_end().is_some() {
            open = open.saturating_sub(1);
        }
        if open > 1 {
            return Vec::new();
        }
        let last = turns.last().and_then(|turn| turn.delivery);
        if sent || matches!(event.what, What::Fails { .. }) {
            turns.push(Turn {
                delivery: event.delivery().or(last),
                requests: Vec::new(),
            });
        }
        if let (Some(turn), Some(request)) = (turns.last_mut(), Request::of(event)) {
            turn.requests.push(request);
        }
    }
    turns.retain(|turn| !turn.requests.is_empty());
    turns
}

/// Whether a word may be an id: long enough, and not a time.
fn is_made_up(word: &str) -> bool {
    let long = word.chars().filter(|c| c.is_alphanumeric()).count() >= ID_CHARS_MIN;
    long && !is_time(word)
}

fn is_time(word: &str) -> bool {
    if let Ok(number) = word.parse::<f64>() {
        return TIMES
            .iter()
            .any(|(from, to)| (*from..*to).contains(&number));
    }
    let of_a_date =
        |c: char| c.is_ascii_digit() || matches!(c, '-' | ':' | '.' | '+' | 'T' | 'Z' | ' ');
    word.chars().all(of_a_date)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_from_ids() {
        for time in [
            "2026-11-17T20:00:00.123Z",
            "1763409600.25",
            "1763409600123",
            "816724800000000",
        ] {
            assert!(!is_made_up(time), "{time}");
        }
        for id in [
            "6fa459ea-ee8a-3ca4-894e-db77e160355e",
            "01JCWXYZ23",
            "99887766554433221100",
        ] {
            assert!(is_made_up(id), "{id}");
        }
        assert!(!is_made_up("pending"));
    }
}
