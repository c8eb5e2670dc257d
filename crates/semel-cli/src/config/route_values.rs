//! How the settings of a route are written.

use super::tree::{Node, Value};
use super::values::{Read, Wrong, at_least_one, duration, list, parsed, text};
use http::{HeaderName, Method, Uri};
use semel::key::{KeyRule, Part};
use semel::protocol::InDoubt;
use semel::work::{Backoff, Completes};
use semel_gate::path::PathAllowance;
use semel_gate::settings::{
    Caller, DownstreamKeys, FingerprintRule, KeyMissing, OnExhausted, OnInvalid, Probe, Promise,
    RecordKeeping, Source, Webhook,
};
use std::ops::RangeInclusive;

/// Who delivers to a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Senders {
    /// Brokers by the form of each request; API clients alone where the route names a `caller`.
    Auto,
    /// These.
    Named(Vec<Source>),
}

/// Methods that can carry work or ask about it.
const METHODS: [Method; 7] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::OPTIONS,
];

/// Which statuses can be failures.
const FAILURES: RangeInclusive<u16> = 300..=599;

// === impl Senders ===

impl Senders {
    /// The sender of signed webhooks that has the route to itself.
    pub(crate) fn webhook(&self) -> Option<Webhook> {
        match self {
            Self::Named(sources) => sources.iter().find_map(|source| match source {
                Source::Webhook(webhook) => Some(*webhook),
                Source::Api | Source::CloudTasks | Source::PubSub | Source::CloudEvents => None,
            }),
            Self::Auto => None,
        }
    }
}

/// The routes, still to be read.
pub(crate) fn routes(value: &Value) -> Read<Vec<Value>> {
    match &value.node {
        Node::List(routes) => Ok(routes.clone()),
        Node::Table(_) => Wrong::says(value, "write [[route]] with two brackets"),
        Node::Text(_) | Node::Integer(_) | Node::Switch(_) | Node::Other(_) => Wrong::kind(value),
    }
}

pub(crate) fn path_allowance(value: &Value) -> Read<PathAllowance> {
    word(value, &PathAllowance::ALL.map(|it| (it.word(), it)))
}

pub(crate) fn method(value: &Value) -> Read<Method> {
    let text = text(value)?;
    let known = METHODS.iter().find(|method| method.as_str() == text);
    Wrong::unless(value, known.cloned(), || {
        format!("{text:?} is not a method: write {METHODS:?}")
    })
}

pub(crate) fn senders(value: &Value) -> Read<Senders> {
    let Node::List(items) = &value.node else {
        let text = text(value)?;
        return match text.as_str() {
            "auto" => Ok(Senders::Auto),
            _ => Ok(Senders::Named(vec![source(value)?])),
        };
    };
    let sources = list(broker_or_client)(value)?;
    if sources.is_empty() {
        return Wrong::says(value, "the list is empty: name at least one source");
    }
    let twice = |(n, source): &(usize, &Source)| sources.iter().take(*n).any(|s| s == *source);
    match sources.iter().enumerate().find(twice) {
        None => Ok(Senders::Named(sources)),
        Some((n, source)) => Wrong::says(
            items.get(n).unwrap_or(value),
            format!("\"{source}\" is named twice"),
        ),
    }
}

fn source(value: &Value) -> Read<Source> {
    let text = text(value)?;
    let webhooks = Webhook::ALL.into_iter().map(Source::Webhook);
    let known = Source::ALL
        .into_iter()
        .chain(webhooks)
        .find(|source| source.word() == text);
    Wrong::unless(value, known, || {
        let help = "write \"auto\", \"api\", \"cloud-tasks\", \"pubsub\" or \"cloudevents\", or a list of \
                    the latter; or \"stripe\", \"github\", \"shopify\" or \"standard-webhooks\"";
        format!("{text:?} is not a source: {help}")
    })
}

/// A source that shares its route with others.
fn broker_or_client(value: &Value) -> Read<Source> {
    let source = source(value)?;
    let shares = !matches!(source, Source::Webhook(_));
    Wrong::unless(value, shares.then_some(source), || {
        format!(
            "{source} signs what it sends, and has its route to itself: write source = \"{source}\""
        )
    })
}

pub(crate) fn key_missing(value: &Value) -> Read<KeyMissing> {
    word(
        value,
        &[("refuse", KeyMissing::Refuse), ("pass", KeyMissing::Pass)],
    )
}

/// A key's rule. The one of a sender that signs is for that sender: anybody else could name its events.
pub(crate) fn key_rule(value: &Value, senders: &Senders) -> Read<KeyRule> {
    if let Node::Text(text) = &value.node {
        let named = Webhook::ALL.into_iter().find(|it| it.word() == text);
        let foreign = named.filter(|it| senders.webhook() != Some(*it));
        let says = || {
            format!(
                "nobody would check who sends: write source = {text:?}, which checks its signature"
            )
        };
        Wrong::unless(value, foreign.is_none().then_some(()), says)?;
        return parsed(value);
    }
    let parts = list(text)(value)?;
    let several = parts.iter().find(|part| part.contains(",/"));
    Wrong::unless(value, several.is_none().then_some(()), || {
        format!(
            "{:?} is one pointer: write each part of the list as a separate text",
            several.map_or("", String::as_str)
        )
    })?;
    KeyRule::new(parts.iter().map(String::as_str)).or_else(|error| Wrong::says(value, error))
}

pub(crate) fn caller(value: &Value) -> Read<Caller> {
    let text = text(value)?;
    if text == "shared" {
        return Ok(Caller::Shared);
    }
    if let Some(claim) = text.strip_prefix("jwt:") {
        let says = || "\"jwt:\" names no claim: write \"jwt:sub\" or \"jwt:email\"";
        let claim = (!claim.is_empty()).then(|| Caller::Claim(claim.into()));
        return Wrong::unless(value, claim, says);
    }
    let name = text
        .strip_prefix("header:")
        .map(|name| name.parse::<HeaderName>());
    match name {
        Some(Ok(name)) => Ok(Caller::Header(name.as_str().into())),
        Some(Err(_)) => Wrong::says(value, format!("{text:?} names no header")),
        None => {
            let help = "write \"jwt:sub\" (a claim of the verified token), \"header:NAME\", or \"shared\" for one \
                        trusted client";
            Wrong::says(value, format!("{text:?} tells no callers apart: {help}"))
        }
    }
}

pub(crate) fn fingerprint(value: &Value) -> Read<FingerprintRule> {
    let Node::Text(text) = &value.node else {
        let names = list(beside)(value)?;
        return Ok(FingerprintRule::With(names));
    };
    match text.as_str() {
        "full" => Ok(FingerprintRule::Full),
        "payload" => Ok(FingerprintRule::Payload),
        "off" => Ok(FingerprintRule::Off),
        _ => {
            let words = "\"full\", \"payload\", \"off\" or a list of names";
            Wrong::says(value, format!("{text:?} is unknown: write {words}"))
        }
    }
}

/// The name of a value beside the payload.
fn beside(value: &Value) -> Read<String> {
    match parsed::<Part>(value)? {
        Part::Named(name) => Ok(name),
        part @ (Part::Pointer(_) | Part::Form(_) | Part::Body) => {
            let why = "is in the payload, which is compared already: name values beside it";
            Wrong::says(value, format!("{part} {why}"))
        }
    }
}

/// The name of an attribute, or how such names begin.
pub(crate) fn attribute_names(value: &Value) -> Read<String> {
    let text = text(value)?;
    let name = text.strip_suffix('*').unwrap_or(&text);
    let good = !text.is_empty() && !name.contains('*');
    Wrong::unless(value, good.then(|| text.clone()), || {
        format!(
            "{text:?} names no attribute: write \"published_at\", or \"trace_*\" for all that begin so"
        )
    })
}

/// A part of a payload that must be there.
pub(crate) fn required(value: &Value) -> Read<String> {
    let text = text(value)?;
    let part = match text.parse() {
        Ok(part @ (Part::Pointer(_) | Part::Form(_))) => Some(part.to_string()),
        Ok(Part::Named(_) | Part::Body) | Err(_) => None,
    };
    Wrong::unless(value, part, || {
        format!(
            "{text:?} is not a JSON pointer: write \"/order_id\", or \"form:NAME\" for a field of a form"
        )
    })
}

/// A plain JSON pointer, as databases know it too.
pub(crate) fn pointer(value: &Value) -> Read<String> {
    let text = text(value)?;
    let is_plain = |pointer: &String| !pointer.contains("~json") && !pointer.ends_with("?null");
    let pointer = match text.parse() {
        Ok(Part::Pointer(pointer)) => Some(pointer).filter(is_plain),
        Ok(Part::Form(_) | Part::Named(_) | Part::Body) | Err(_) => None,
    };
    Wrong::unless(value, pointer, || {
        format!("{text:?} is not a plain JSON pointer: write \"/version\"")
    })
}

pub(crate) fn record(value: &Value) -> Read<RecordKeeping> {
    word(
        value,
        &[
            ("store", RecordKeeping::Store),
            ("none", RecordKeeping::None),
        ],
    )
}

pub(crate) fn in_doubt(value: &Value) -> Read<InDoubt> {
    word(
        value,
        &[
            ("retry", InDoubt::Retry),
            ("park", InDoubt::Park),
            ("probe", InDoubt::Probe),
        ],
    )
}

/// How a handler is asked what became of a run: a method and a path with the key in it.
pub(crate) fn probe(value: &Value) -> Read<(Method, String)> {
    let text = text(value)?;
    let (method, path) = text.split_once(' ').unwrap_or(("", &text));
    let method = [Method::GET, Method::POST]
        .into_iter()
        .find(|it| it.as_str() == method);
    let named = path.matches(Probe::KEY).count() == 1;
    let plain = path.replace(Probe::KEY, "");
    let is_path =
        path.starts_with('/') && !plain.contains(['{', '}']) && plain.parse::<Uri>().is_ok();
    let probe = method
        .filter(|_| named && is_path)
        .map(|method| (method, path.to_owned()));
    Wrong::unless(value, probe, || {
        format!(
            "{text:?} does not ask for a key: write \"GET /effects/{{key}}\", or POST, with {{key}} once in a path of the handler"
        )
    })
}

pub(crate) fn completes(value: &Value) -> Read<Completes> {
    word(
        value,
        &[("gate", Completes::Run), ("handler", Completes::Handler)],
    )
}

pub(crate) fn promise(value: &Value) -> Read<Promise> {
    word(value, &Promise::ALL.map(|it| (it.word(), it)))
}

pub(crate) fn downstream(value: &Value) -> Read<()> {
    word(value, &[("deduplicates", ())])
}

/// Declares that the subscription is never sought back.
pub(crate) fn never_seeks(value: &Value) -> Read<()> {
    word(value, &[("never", ())])
}

/// Declares that callers which name their tasks use no name again.
pub(crate) fn task_names(value: &Value) -> Read<()> {
    word(value, &[("never reused", ())])
}

pub(crate) fn downstream_keys(value: &Value) -> Read<DownstreamKeys> {
    word(
        value,
        &[
            ("key", DownstreamKeys::Key),
            ("steps", DownstreamKeys::Steps),
        ],
    )
}

pub(crate) fn on_invalid(value: &Value) -> Read<OnInvalid> {
    word(
        value,
        &[
            ("letter", OnInvalid::Letter),
            ("reject", OnInvalid::Reject),
            ("land", OnInvalid::Land),
        ],
    )
}

pub(crate) fn on_exhausted(value: &Value) -> Read<OnExhausted> {
    word(
        value,
        &[("letter", OnExhausted::Letter), ("nack", OnExhausted::Nack)],
    )
}

/// Number of times that a sender delivers; `None`: no limit.
pub(crate) fn sender_attempts(value: &Value) -> Read<Option<u32>> {
    if let Node::Text(_) = &value.node {
        return word(value, &[("unlimited", None)]);
    }
    let attempts = at_least_one(value)?;
    let attempts =
        u32::try_from(attempts).or_else(|_| Wrong::says(value, "the number is too large"));
    attempts.map(Some)
}

/// Where a sender says how often it delivers.
pub(crate) const fn attempts_of(source: Source) -> &'static str {
    match source {
        Source::CloudTasks => "the queue's maxAttempts (100 by default), or \"unlimited\"",
        Source::PubSub => {
            "the subscription's max_delivery_attempts, or \"unlimited\" when it has no dead-letter policy"
        }
        Source::Api | Source::CloudEvents => {
            "a number, or \"unlimited\" when only a time limits it"
        }
        Source::Webhook(_) => "a number",
    }
}

/// One of a few words.
pub(super) fn word<T: Clone>(value: &Value, words: &[(&str, T)]) -> Read<T> {
    let text = text(value)?;
    let known = words.iter().find(|(word, _)| *word == text);
    Wrong::unless(value, known.map(|(_, meaning)| meaning.clone()), || {
        let words: Vec<_> = words.iter().map(|(word, _)| format!("{word:?}")).collect();
        let between = if words.len() == 2 { " or " } else { ", " };
        format!("{text:?} is unknown: write {}", words.join(between))
    })
}

/// One status or a range of them.
pub(crate) fn statuses(value: &Value) -> Read<RangeInclusive<u16>> {
    let range = match &value.node {
        Node::Integer(status) => u16::try_from(*status).ok().map(|status| status..=status),
        Node::Text(text) => text.split_once('-').and_then(|(first, last)| {
            let ends = first.parse().ok().zip(last.parse().ok());
            ends.map(|(first, last)| first..=last)
        }),
        Node::Switch(_) | Node::List(_) | Node::Table(_) | Node::Other(_) => {
            return Wrong::kind(value);
        }
    };
    let fits = |range: &RangeInclusive<u16>| {
        !range.is_empty() && FAILURES.contains(range.start()) && FAILURES.contains(range.end())
    };
    Wrong::unless(
        value,
        range.filter(fits),
        || "write statuses from 300 to 599, as 422 or \"400-499\"",
    )
}

pub(crate) fn backoff(value: &Value) -> Read<Backoff> {
    let Node::Table(members) = &value.node else {
        let first = duration(value)?;
        return Ok(Backoff { first, max: first });
    };
    let read = |name: &str| {
        let member = members.iter().find(|member| member.name == name);
        member.map_or_else(|| Wrong::kind(value), |member| duration(&member.value))
    };
    let (first, max) = (read("first")?, read("max")?);
    if members.len() > 2 {
        return Wrong::says(value, "there is only `first` and `max`");
    }
    if max < first {
        return Wrong::says(value, "`max` is shorter than `first`");
    }
    Ok(Backoff { first, max })
}
