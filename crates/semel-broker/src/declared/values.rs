//! Single values of a start-up file.

use crate::Fault;
use crate::clock::proto_span;
use crate::duration;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::time::Duration;
use url::Url;

/// `0.1s`, `500ms`, `10m`, `7d`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Span(pub(super) Duration);

/// Whole seconds.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "Span")]
pub(super) struct AckDeadline(pub(super) i32);

/// Where a handler is.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Address(pub(super) Url);

// === impl Span ===

impl Span {
    pub(super) fn proto(self) -> prost_types::Duration {
        proto_span(self.0)
    }
}

impl TryFrom<String> for Span {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        duration::parse(&text).map(Self).ok_or_else(|| {
            format!(
                "{text:?} is not a duration like \"0.1s\", \"500ms\", \"10m\", \"2h\" or \"7d\""
            )
        })
    }
}

// === impl AckDeadline ===

impl TryFrom<Span> for AckDeadline {
    type Error = &'static str;

    fn try_from(Span(span): Span) -> Result<Self, Self::Error> {
        let is_whole = span.subsec_nanos() == 0 && (10..=600).contains(&span.as_secs());
        let seconds = i32::try_from(span.as_secs()).ok().filter(|_| is_whole);
        let wrong = "an ack_deadline is 10 to 600 whole seconds, as in \"30s\"";
        seconds.map(Self).ok_or(wrong)
    }
}

// === impl Address ===

impl TryFrom<String> for Address {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let url = Url::parse(&text).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let wrong = || format!("{text:?} is not an address like \"http://127.0.0.1:3000/tasks\"");
        url.map(Self).ok_or_else(wrong)
    }
}

/// Faults, each written as a text.
pub(super) fn faults<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Fault>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    let faults = texts.iter().map(|text| text.parse());
    faults
        .map(|fault| fault.map_err(D::Error::custom))
        .collect()
}
