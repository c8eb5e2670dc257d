//! How the settings of a route are written.

use super::tree::{Node, Value};
use super::values::{Read, Setting, Wrong, parsed};
use crate::store_url::StoreUrl;
use http::{HeaderName, Method};
use semel::key::{KeyRule, Part};
use semel::protocol::InDoubt;
use semel::work::{Backoff, Completes};
use semel_gate::path::{PathAllowance, PathPattern};
use semel_gate::settings::{Caller, FingerprintRule, Network, OnInvalid, Source};
use std::ops::RangeInclusive;
use std::time::Duration;

/// Who delivers to a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Senders {
    /// Brokers by the form of each request; API clients alone where the route names a `caller`.
    Auto,
    /// These.
    Named(Vec<Source>),
}

/// A JSON pointer.
#[derive(Debug)]
pub(crate) struct Pointer(pub(crate) String);

/// One status or a range of them.
#[derive(Debug)]
pub(crate) struct Statuses(pub(crate) RangeInclusive<u16>);

/// The routes, still to be read.
#[derive(Debug)]
pub(crate) struct Routes(pub(crate) Vec<Value>);

/// Senders that sign what they send: without a check of the signature anybody could be them.
const SIGNED: [&str; 4] = ["stripe", "github", "shopify", "standard-webhooks"];

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

impl Setting for Routes {
    fn read(value: &Value) -> Read<Self> {
        match &value.node {
            Node::List(routes) => Ok(Self(routes.clone())),
            Node::Table(_) => Wrong::says(value, "write [[route]] with two brackets"),
            Node::Text(_) | Node::Integer(_) | Node::Switch(_) | Node::Other(_) => {
                Wrong::kind(value)
            }
        }
    }
}

impl Setting for StoreUrl {
    fn read(value: &Value) -> Read<Self> {
        parsed(value)
    }
}

impl Setting for PathPattern {
    fn read(value: &Value) -> Read<Self> {
        parsed(value)
    }
}

impl Setting for Network {
    fn read(value: &Value) -> Read<Self> {
        parsed(value)
    }
}

impl Setting for PathAllowance {
    fn read(value: &Value) -> Read<Self> {
        word(
            value,
            &Self::ALL.map(|allowance| (allowance.word(), allowance)),
        )
    }
}

impl Setting for Method {
    fn read(value: &Value) -> Read<Self> {
        let text = String::read(value)?;
        let known = METHODS.iter().find(|method| method.as_str() == text);
        known.cloned().map_or_else(
            || {
                Wrong::says(
                    value,
                    format!("{text:?} is not a method: write {METHODS:?}"),
                )
            },
            Ok,
        )
    }
}

impl Setting for Senders {
    fn read(value: &Value) -> Read<Self> {
        let Node::List(items) = &value.node else {
            let text = String::read(value)?;
            return match text.as_str() {
                "auto" => Ok(Self::Auto),
                _ => Ok(Self::Named(vec![Source::read(value)?])),
            };
        };
        let sources = Vec::<Source>::read(value)?;
        if sources.is_empty() {
            return Wrong::says(value, "the list is empty: name at least one source");
        }
        let twice = |(n, source): &(usize, &Source)| sources.iter().take(*n).any(|s| s == *source);
        match sources.iter().enumerate().find(twice) {
            None => Ok(Self::Named(sources)),
            Some((n, source)) => Wrong::says(
                items.get(n).unwrap_or(value),
                format!("\"{source}\" is named twice"),
            ),
        }
    }
}

impl Setting for Source {
    fn read(value: &Value) -> Read<Self> {
        let text = String::read(value)?;
        unsigned(value, &text)?;
        let known = Self::ALL.into_iter().find(|source| source.word() == text);
        known.map_or_else(
            || {
                let help = "write \"auto\", \"api\", \"cloud-tasks\", \"pubsub\" or \"cloudevents\", or a list of \
                            the latter";
                Wrong::says(value, format!("{text:?} is not a source: {help}"))
            },
            Ok,
        )
    }
}

impl Setting for KeyRule {
    fn read(value: &Value) -> Read<Self> {
        if let Node::Text(text) = &value.node {
            unsigned(value, text)?;
            return parsed(value);
        }
        let parts = Vec::<String>::read(value)?;
        Self::new(parts.iter().map(String::as_str)).or_else(|error| Wrong::says(value, error))
    }
}

/// Refuses senders whose signatures nobody checks yet.
fn unsigned(value: &Value, text: &str) -> Read<()> {
    if SIGNED.contains(&text) {
        return Wrong::says(
            value,
            format!(
                "{text} is not supported yet: its signature would not be checked, so anybody could deliver"
            ),
        );
    }
    Ok(())
}

impl Setting for Caller {
    fn read(value: &Value) -> Read<Self> {
        let text = String::read(value)?;
        if text == "shared" {
            return Ok(Self::Shared);
        }
        let name = text
            .strip_prefix("header:")
            .map(|name| name.parse::<HeaderName>());
        match name {
            Some(Ok(name)) => Ok(Self::Header(name.as_str().into())),
            Some(Err(_)) => Wrong::says(value, format!("{text:?} names no header")),
            None => Wrong::says(
                value,
                format!(
                    "{text:?} tells no callers apart: write \"header:NAME\", or \"shared\" for one trusted client"
                ),
            ),
        }
    }
}

impl Setting for FingerprintRule {
    fn read(value: &Value) -> Read<Self> {
        let Node::Text(text) = &value.node else {
            let names = Vec::<Beside>::read(value)?;
            return Ok(Self::With(names.into_iter().map(|name| name.0).collect()));
        };
        match text.as_str() {
            "full" => Ok(Self::Full),
            "payload" => Ok(Self::Payload),
            "off" => Ok(Self::Off),
            _ => one_of(
                value,
                text,
                "\"full\", \"payload\", \"off\" or a list of names",
            ),
        }
    }
}

/// The name of a value beside the payload.
struct Beside(String);

impl Setting for Beside {
    fn read(value: &Value) -> Read<Self> {
        match parsed::<Part>(value)? {
            Part::Named(name) => Ok(Self(name)),
            part @ (Part::Pointer(_) | Part::Body) => Wrong::says(
                value,
                format!(
                    "{part} is in the payload, which is compared already: name values beside it"
                ),
            ),
        }
    }
}

/// The name of an attribute, or how such names begin.
#[derive(Debug)]
pub(crate) struct AttributeNames(pub(crate) String);

impl Setting for AttributeNames {
    fn read(value: &Value) -> Read<Self> {
        let text = String::read(value)?;
        let name = text.strip_suffix('*').unwrap_or(&text);
        if text.is_empty() || name.contains('*') {
            return Wrong::says(
                value,
                format!(
                    "{text:?} names no attribute: write \"published_at\", or \"trace_*\" for all that begin so"
                ),
            );
        }
        Ok(Self(text))
    }
}

impl Setting for Pointer {
    fn read(value: &Value) -> Read<Self> {
        let text = String::read(value)?;
        match text.parse() {
            Ok(Part::Pointer(pointer)) => Ok(Self(pointer)),
            Ok(Part::Named(_) | Part::Body) | Err(_) => Wrong::says(
                value,
                format!("{text:?} is not a JSON pointer: write \"/order_id\""),
            ),
        }
    }
}

impl Setting for InDoubt {
    fn read(value: &Value) -> Read<Self> {
        word(value, &[("retry", Self::Retry), ("park", Self::Park)])
    }
}

impl Setting for Completes {
    fn read(value: &Value) -> Read<Self> {
        word(value, &[("gate", Self::Run), ("handler", Self::Handler)])
    }
}

impl Setting for OnInvalid {
    fn read(value: &Value) -> Read<Self> {
        word(value, &[("letter", Self::Letter), ("reject", Self::Reject)])
    }
}

/// One of a few words.
fn word<T: Clone>(value: &Value, words: &[(&str, T)]) -> Read<T> {
    let text = String::read(value)?;
    if let Some((_, meaning)) = words.iter().find(|(word, _)| *word == text) {
        return Ok(meaning.clone());
    }
    let words: Vec<_> = words.iter().map(|(word, _)| format!("{word:?}")).collect();
    let between = if words.len() == 2 { " or " } else { ", " };
    one_of(value, &text, &words.join(between))
}

fn one_of<T>(value: &Value, text: &str, words: &str) -> Read<T> {
    Wrong::says(value, format!("{text:?} is unknown: write {words}"))
}

impl Setting for Statuses {
    fn read(value: &Value) -> Read<Self> {
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
        range.filter(fits).map_or_else(
            || {
                Wrong::says(
                    value,
                    "write statuses from 300 to 599, as 422 or \"400-499\"",
                )
            },
            |range| Ok(Self(range)),
        )
    }
}

impl Setting for Backoff {
    fn read(value: &Value) -> Read<Self> {
        let Node::Table(members) = &value.node else {
            let first = Duration::read(value)?;
            return Ok(Self { first, max: first });
        };
        let read = |name: &str| {
            let member = members.iter().find(|member| member.name == name);
            member.map_or_else(
                || Wrong::kind(value),
                |member| Duration::read(&member.value),
            )
        };
        let (first, max) = (read("first")?, read("max")?);
        if members.len() > 2 {
            return Wrong::says(value, "there is only `first` and `max`");
        }
        if max < first {
            return Wrong::says(value, "`max` is shorter than `first`");
        }
        Ok(Self { first, max })
    }
}
