//! Single values of a start-up file.

use crate::clock::proto_span;
use crate::duration;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;
use url::Url;

/// Anything that is written as a text.
#[derive(Debug)]
pub(super) struct Parsed<T>(pub(super) T);

/// `0.1s`, `500ms`, `10m`, `7d`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span(pub(super) Duration);

/// Whole seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckDeadline(pub(super) i32);

/// Where a handler is.
#[derive(Debug)]
pub(super) struct Address(pub(super) Url);

// === impl Parsed ===

impl<'de, T: FromStr<Err: Display>> Deserialize<'de> for Parsed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(D::Error::custom)
    }
}

// === impl Span ===

impl Span {
    pub(super) fn proto(self) -> prost_types::Duration {
        proto_span(self.0)
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        duration::parse(text).map(Self).ok_or_else(|| {
            format!(
                "{text:?} is not a duration like \"0.1s\", \"500ms\", \"10m\", \"2h\" or \"7d\""
            )
        })
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Parsed::deserialize(deserializer).map(|written| written.0)
    }
}

// === impl AckDeadline ===

impl<'de> Deserialize<'de> for AckDeadline {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Span(span) = Span::deserialize(deserializer)?;
        let is_whole = span.subsec_nanos() == 0 && (10..=600).contains(&span.as_secs());
        let seconds = i32::try_from(span.as_secs()).ok().filter(|_| is_whole);
        let wrong =
            || D::Error::custom("an ack_deadline is 10 to 600 whole seconds, as in \"30s\"");
        seconds.map(Self).ok_or_else(wrong)
    }
}

// === impl Address ===

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let url = Url::parse(text).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let wrong = || format!("{text:?} is not an address like \"http://127.0.0.1:3000/tasks\"");
        url.map(Self).ok_or_else(wrong)
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Parsed::deserialize(deserializer).map(|written| written.0)
    }
}
