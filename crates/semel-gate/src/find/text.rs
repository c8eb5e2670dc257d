//! From one text, as somebody types it into the box or behind `semel find`, to the keys that it may stand for.

use super::Question;
use crate::label::part_name;
use crate::settings::Route;
use semel::Key;

/// How many keys of one text are looked for: they grow with the routes and their parts.
pub(crate) const KEYS_LOOKED_MAX: usize = 256;

/// The keys that the text may stand for: itself, or what every route makes of it as its rule's only part; of several parts,
/// when it is written `name=value name=value`; of a client's key, when it is written `key-1 caller=mobile-2`.
pub(crate) fn keys_of_text<'a>(
    namespace: &str,
    routes: impl Iterator<Item = &'a Route>,
    text: &str,
) -> Vec<Key> {
    if let Ok(key) = text.parse() {
        return vec![key];
    }
    let named = named_parts(text.split_whitespace()).map(of_parts);
    let whole: Vec<_> = named.into_iter().chain(client(text)).collect();
    let mut keys = Vec::new();
    for route in routes {
        for question in only_parts(route, text).into_iter().chain(whole.clone()) {
            keys.extend(keys_of(namespace, route, question));
        }
    }
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Parts that are all written `name=value`.
pub(crate) fn named_parts<'a>(
    words: impl Iterator<Item = &'a str>,
) -> Option<Vec<(String, String)>> {
    let pair = |word: &str| {
        let (name, value) = word.split_once('=')?;
        Some((name.to_owned(), value.to_owned()))
    };
    words.map(pair).collect()
}

/// A client's key with whose it is: `key-1 caller=mobile-2`, and by which `method=`, if not by POST.
fn client(text: &str) -> Option<Question> {
    let (sent, facts) = text.split_once(" caller=")?;
    let (caller, method) = match facts.rsplit_once(" method=") {
        Some((caller, method)) => (caller, Some(method.to_owned())),
        None => (facts, None),
    };
    Some(Question {
        idempotency_key: Some(sent.trim().to_owned()),
        caller: Some(caller.to_owned()),
        method,
        ..Question::default()
    })
}

/// The text as the only part of each of the route's rules that have one.
fn only_parts(route: &Route, text: &str) -> Vec<Question> {
    let mut all = Vec::new();
    for source in &route.sources {
        if let [part] = route.terms(*source).key.parts() {
            let question = of_parts(vec![(part_name(part).to_owned(), text.to_owned())]);
            if !all.contains(&question) {
                all.push(question);
            }
        }
    }
    all
}

fn of_parts(parts: Vec<(String, String)>) -> Question {
    Question {
        parts,
        ..Question::default()
    }
}

fn keys_of(namespace: &str, route: &Route, question: Question) -> Vec<Key> {
    let question = Question {
        route: Some(route.name.clone()),
        ..question
    };
    let keys = question.keys(namespace, std::iter::once(route));
    // Parts of other rules, or of a caller whom nobody named, lead nowhere.
    keys.unwrap_or_default()
}
