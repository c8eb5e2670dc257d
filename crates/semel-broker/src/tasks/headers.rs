//! The headers of a request: which of a creator's are stored, and which go out.

use super::names;
use crate::clock::Time;
use crate::proto::tasks::{HttpTarget, StoredTask};
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue};
use std::collections::HashMap;

pub(super) const AGENT: &str = "Google-Cloud-Tasks";
pub(super) const APP_ENGINE_AGENT: &str = "AppEngine-Google; (+http://code.google.com/appengine)";

/// A header's name and value, with what separates and ends them, fit in this many bytes or it is dropped.
const HEADER_BYTES_MAX: usize = 8192;

/// Names that are the connection's, not the creator's.
const RESERVED: [&str; 12] = [
    "host",
    "content-length",
    "connection",
    "transfer-encoding",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "upgrade",
    "via",
    "x-forwarded-for",
    "accept-encoding",
];

/// What the headers tell about an attempt.
#[derive(Debug)]
pub(super) struct AttemptInfo<'a> {
    pub(super) queue: &'a str,
    pub(super) id: &'a str,
    /// How many dispatches came before.
    pub(super) before: u32,
    pub(super) stored: &'a StoredTask,
}

/// A creator's headers as they are stored.
pub(super) fn stored(headers: HashMap<String, String>, agent: &str) -> HashMap<String, String> {
    let stored = headers.into_iter().filter(|(name, _)| is_kept(name));
    let mut stored: HashMap<String, String> = stored
        .filter_map(|(name, value)| Some((name, cleaned(&value)?)))
        .filter(|(name, value)| name.len() + value.len() + 4 <= HEADER_BYTES_MAX)
        .collect();
    stored.insert("User-Agent".into(), agent.into());
    stored
}

/// Whether a queue may set this header.
pub(super) fn may_override(name: &str) -> bool {
    is_free(name, &["x-google", "x-appengine", "x-cloudtasks"])
}

/// The creator's headers, then the queue's over them.
pub(super) fn base(stored: &HashMap<String, String>, target: Option<&HttpTarget>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in stored {
        set(&mut headers, name, value);
    }
    for over in target.iter().flat_map(|target| &target.header_overrides) {
        if let Some(header) = &over.header {
            set(&mut headers, &header.key, &header.value);
        }
    }
    headers
}

/// Adds what Cloud Tasks says about an attempt; it wins over what is there.
pub(super) fn add_attempt_headers(headers: &mut HeaderMap, info: &AttemptInfo<'_>) {
    add_headers_with("x-cloudtasks-", "", headers, info);
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
}

/// The same for App Engine.
pub(super) fn add_app_engine_headers(headers: &mut HeaderMap, info: &AttemptInfo<'_>) {
    let reason = match info.stored.previous_response {
        Some(0) => "Instance Unavailable",
        Some(_) | None => "App Error",
    };
    add_headers_with("x-appengine-", reason, headers, info);
    headers.insert(USER_AGENT, HeaderValue::from_static(APP_ENGINE_AGENT));
    headers
        .entry(CONTENT_TYPE)
        .or_insert(HeaderValue::from_static("application/octet-stream"));
}

fn add_headers_with(prefix: &str, reason: &str, headers: &mut HeaderMap, info: &AttemptInfo<'_>) {
    let task = info.stored.task.as_ref();
    let eta = task.and_then(|task| task.schedule_time.as_ref());
    let eta = eta.map(Time::of).unwrap_or_default();
    let responses = task.map_or(0, |task| task.response_count);
    for name in ["taskpreviousresponse", "taskretryreason"] {
        headers.remove(format!("{prefix}{name}"));
    }
    let mut say = |name: &str, value: &str| set(headers, &format!("{prefix}{name}"), value);
    say("queuename", names::short(info.queue));
    say("taskname", info.id);
    say("taskretrycount", &info.before.to_string());
    say("taskexecutioncount", &responses.to_string());
    say("tasketa", &seconds(eta));
    if let Some(code) = info.stored.previous_response {
        say("taskpreviousresponse", &code.to_string());
        say("taskretryreason", reason);
    }
}

/// Seconds since 1970, with as many digits as it takes.
fn seconds(time: Time) -> String {
    let stamp = time.timestamp();
    let whole = stamp.seconds;
    let fraction = format!("{:06}", stamp.nanos / 1000);
    match fraction.trim_end_matches('0') {
        "" => whole.to_string(),
        fraction => format!("{whole}.{fraction}"),
    }
}

fn set(headers: &mut HeaderMap, name: &str, value: &str) {
    let name = HeaderName::from_bytes(name.as_bytes());
    let value = HeaderValue::try_from(cleaned(value).unwrap_or_default());
    // What was stored can be sent, except for names that HTTP itself does not allow: these stay behind.
    if let (Ok(name), Ok(value)) = (name, value) {
        headers.insert(name, value);
    }
}

fn is_kept(name: &str) -> bool {
    is_free(name, &["x-google", "x-appengine"])
}

/// Whether a header's name is neither reserved nor begins like one of ours.
fn is_free(name: &str, ours: &[&str]) -> bool {
    let lower = name.to_ascii_lowercase();
    let reserved = RESERVED.contains(&lower.as_str()) || lower == "user-agent";
    let is_ours = ours.iter().any(|prefix| lower.starts_with(prefix));
    !reserved && !is_ours && is_header_name(name)
}

/// Whether production takes this for a header's name: more than HTTP allows.
fn is_header_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|it| it.is_ascii_graphic() && it != b':')
}

/// A value as it is stored: cut at a NUL, without line breaks; nothing if it cannot be sent or is empty.
fn cleaned(value: &str) -> Option<String> {
    let value = value.split('\0').next().unwrap_or_default();
    let value = value.replace(['\r', '\n'], "_");
    let sendable = |it: u8| it == b'\t' || it == b' ' || it.is_ascii_graphic();
    (!value.is_empty() && value.bytes().all(sendable)).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored_of(headers: &[(&str, &str)]) -> Vec<(String, String)> {
        let headers = pairs(headers).into_iter().collect();
        let mut stored: Vec<_> = stored(headers, AGENT).into_iter().collect();
        stored.sort();
        stored
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect()
    }

    #[test]
    fn reserved_headers_are_dropped() {
        let stored = stored_of(&[
            ("Authorization", "Bearer token"),
            ("Content-Type", "text/plain"),
            ("Trailer", "Expires"),
            ("User-Agent", "mine"),
            ("X-CloudTasks-TaskName", "spoofed"),
            ("X-Forwarded-Proto", "https"),
            ("X-Goog-Custom", "value"),
            ("Host", "elsewhere"),
            ("content-length", "7"),
            ("X-Google-Custom", "value"),
            ("X-AppEngine-Custom", "value"),
            ("Connection", "close"),
        ]);
        let expected = [
            ("Authorization", "Bearer token"),
            ("Content-Type", "text/plain"),
            ("Trailer", "Expires"),
            ("User-Agent", "Google-Cloud-Tasks"),
            ("X-CloudTasks-TaskName", "spoofed"),
            ("X-Forwarded-Proto", "https"),
            ("X-Goog-Custom", "value"),
        ];
        assert_eq!(stored, pairs(&expected));
    }

    #[test]
    fn values_are_cleaned() {
        let stored = stored_of(&[
            ("X-Crlf", "a\r\nb"),
            ("X-Newline", "a\nb"),
            ("X-Nul", "a\0b"),
            ("X-Space", " "),
            ("X-Tab", "a\tb"),
            ("X/Slash", "value"),
            ("X-Empty", ""),
            ("", "value"),
            ("X Space", "value"),
        ]);
        let expected = [
            ("User-Agent", "Google-Cloud-Tasks"),
            ("X-Crlf", "a__b"),
            ("X-Newline", "a_b"),
            ("X-Nul", "a"),
            ("X-Space", " "),
            ("X-Tab", "a\tb"),
            ("X/Slash", "value"),
        ];
        assert_eq!(stored, pairs(&expected));
    }

    #[test]
    fn a_header_that_is_too_long_is_dropped() {
        let stored = stored_of(&[("X-Kept", &"a".repeat(8182)), ("X-Long", &"a".repeat(8183))]);
        assert_eq!(stored.len(), 2);
        assert_eq!(stored[1].0, "X-Kept");
    }

    #[test]
    fn seconds_end_with_the_last_digit_that_counts() {
        assert_eq!(seconds(Time(1_700_000_000_000_000)), "1700000000");
        assert_eq!(seconds(Time(1_700_000_000_120_000)), "1700000000.12");
        assert_eq!(seconds(Time(1_700_000_000_123_456)), "1700000000.123456");
    }
}
