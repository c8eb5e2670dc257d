//! Calls of other services, as effects: each request that changes something, once per idempotency key where the service
//! honours it.

use crate::world::exchange::Exchange;
use std::collections::{BTreeMap, BTreeSet};

/// A request that changes something, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    name: Option<CallName>,
    /// Status and body, if it was answered as done.
    answer: Option<Vec<u8>>,
}

/// By what a service knows a call again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CallName {
    /// The header that holds its key, as `Idempotency-Key: a1`.
    Key(String),
    /// Its request line, where the method says that once more is the same: PUT and DELETE.
    Target(String),
}

/// What the scenario says of a service: whether calls under one key are one effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyPolicy {
    Honoured,
    Ignored,
    /// One, as long as all were answered the same: who does a thing again says another thing.
    ByAnswers,
}

/// How many effects these calls are.
pub(crate) fn count(calls: &[Call], policy: KeyPolicy) -> usize {
    let mut answers: BTreeMap<&CallName, (usize, BTreeSet<&[u8]>)> = BTreeMap::new();
    let mut unnamed = 0;
    for call in calls {
        let Some(name) = &call.name else {
            unnamed += 1;
            continue;
        };
        let (times, said) = answers.entry(name).or_default();
        *times += 1;
        said.extend(call.answer.as_deref());
    }
    let named = answers
        .iter()
        .map(|(name, (times, said))| match (policy, name) {
            (KeyPolicy::Ignored, _) => *times,
            // A second PUT is answered 200 instead of 201, a second DELETE 404.
            (KeyPolicy::Honoured, _) | (KeyPolicy::ByAnswers, CallName::Target(_)) => 1,
            (KeyPolicy::ByAnswers, CallName::Key(_)) => said.len().max(1),
        });
    unnamed + named.sum::<usize>()
}

// === impl CallName ===

impl CallName {
    fn of(request: &Exchange) -> Option<Self> {
        let line = &request.message.text;
        let key = request.message.values.first().cloned();
        let repeatable = line.starts_with("PUT ") || line.starts_with("DELETE ");
        let target = repeatable.then(|| Self::Target(line.clone()));
        key.map(Self::Key).or(target)
    }
}

/// The calls of a trial: the dependency, the request, and what is kept of both it and its answer.
pub(super) fn of_trial(exchanges: &[Exchange]) -> impl Iterator<Item = (usize, &Exchange, Call)> {
    let requests = exchanges.iter().enumerate();
    let calls = requests.filter(|(_, it)| it.is_request() && it.writes() && it.forwarded);
    calls.map(|(at, request)| {
        let mut later = exchanges.iter().skip(at + 1);
        let answer = later.find(|it| it.connection == request.connection);
        let answer = answer.filter(|it| !it.is_request());
        let call = Call {
            name: CallName::of(request),
            answer: answer.and_then(|it| done(&it.bytes)),
        };
        (request.boundary.signature.dependency, request, call)
    })
}

/// Status and body of a success; headers, as the date, differ anyway.
fn done(answer: &[u8]) -> Option<Vec<u8>> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let (head, body) = answer.split_at(end);
    let status = head.get(9..12)?;
    status.starts_with(b"2").then(|| [status, body].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(key: Option<&str>, answer: Option<&str>) -> Call {
        Call {
            name: key.map(|key| CallName::Key(key.to_owned())),
            answer: answer.map(|answer| answer.as_bytes().to_vec()),
        }
    }

    #[test]
    fn calls_under_one_key_are_one_unless_their_answers_differ() {
        use KeyPolicy::{ByAnswers, Honoured, Ignored};
        let (a, b) = (Some("Key: a"), Some("Key: b"));
        let replayed = [call(a, Some("1")), call(a, Some("1")), call(b, None)];
        let counts = |calls: &[Call]| [ByAnswers, Honoured, Ignored].map(|it| count(calls, it));
        assert_eq!(counts(&replayed), [2, 2, 3]);
        let again = [call(a, Some("1")), call(a, Some("2")), call(a, None)];
        assert_eq!(counts(&again), [2, 1, 3]);
        let unnamed = [call(None, Some("1")), call(None, Some("1"))];
        assert_eq!(counts(&unnamed), [2, 2, 2]);
        let put = |answer| Call {
            name: Some(CallName::Target("PUT /orders/1".to_owned())),
            ..call(None, Some(answer))
        };
        assert_eq!(counts(&[put("201"), put("200")]), [1, 1, 2]);
    }

    #[test]
    fn only_the_status_and_the_body_of_a_success_are_compared() {
        let first = done(b"HTTP/1.1 201 Created\r\nDate: 1\r\n\r\n{}");
        assert_eq!(first, done(b"HTTP/1.1 201 Created\r\nDate: 2\r\n\r\n{}"));
        assert!(first.is_some());
        assert_eq!(done(b"HTTP/1.1 409 Conflict\r\n\r\n"), None);
        assert_eq!(done(b"HTTP/1.1 201"), None);
    }
}
