//! Deliveries from a file: what was really sent once, with a new identity for each trial.

mod rename;

use super::request::RequestParts;
use crate::error::Error;
use crate::scenario::endpoint::path_and_query;
use rename::Rename;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use url::Url;

/// Headers that belong to the connection or that the sender sets itself.
const HEADERS_LEFT_OUT: &[&str] = &[
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "accept-encoding",
];

/// Headers that name a delivery.
const IDENTITIES: &[&str] = &["idempotency-key", "x-cloudtasks-taskname", "ce-id"];

/// A request that was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordedRequest {
    parts: RequestParts,
    /// What the delivery was called then.
    identity: String,
}

#[derive(Deserialize)]
struct RawRequest {
    #[serde(default = "post")]
    method: String,
    url: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body: String,
}

#[derive(Deserialize)]
struct HarEntry {
    request: HarRequest,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HarRequest {
    method: String,
    url: String,
    #[serde(default)]
    headers: Vec<HarHeader>,
    post_data: Option<HarBody>,
}

#[derive(Deserialize)]
struct HarHeader {
    name: String,
    value: String,
}

#[derive(Deserialize)]
struct HarBody {
    #[serde(default)]
    text: String,
}

/// Reads a HAR file, or JSON lines.
pub(super) fn read(path: &Path) -> Result<Vec<RecordedRequest>, Error> {
    let wrong =
        |why: String| Error::Scenario(format!("deliver.recorded {}: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|why| wrong(why.to_string()))?;
    parse(&text).map_err(wrong)
}

fn parse(text: &str) -> Result<Vec<RecordedRequest>, String> {
    let lines = requests(text)?;
    if lines.is_empty() {
        return Err("it holds no request".to_owned());
    }
    let numbered = lines.into_iter().enumerate();
    numbered
        .map(|(at, line)| {
            line.recorded()
                .map_err(|why| format!("request {}: {why}", at + 1))
        })
        .collect()
}

/// A HAR file is one JSON object with a `log`; JSON lines are one object each.
fn requests(text: &str) -> Result<Vec<RawRequest>, String> {
    let whole = match serde_json::from_str::<Value>(text) {
        Ok(whole) => whole,
        Err(no_har) => {
            return lines(text).map_err(|no_lines| {
                format!(
                    "it is neither a HAR file ({no_har}) nor JSON lines (of method, url, headers, body; {no_lines})"
                )
            });
        }
    };
    match whole.pointer("/log/entries") {
        Some(Value::Array(entries)) => har(entries),
        None if whole.get("log").is_none() => lines(text),
        Some(_) | None => Err("as a HAR file it needs a list `log.entries`".to_owned()),
    }
}

fn har(entries: &[Value]) -> Result<Vec<RawRequest>, String> {
    let read = |(at, entry): (usize, &Value)| {
        HarEntry::deserialize(entry)
            .map(|entry| entry.request.into())
            .map_err(|why| format!("as a HAR file: log.entries[{at}]: {why}"))
    };
    entries.iter().enumerate().map(read).collect()
}

fn lines(text: &str) -> Result<Vec<RawRequest>, String> {
    let numbered = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty());
    let read = |(at, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|why| format!("line {}: {why}", at + 1))
    };
    numbered.map(read).collect()
}

// === impl RecordedRequest ===

impl RecordedRequest {
    /// The same request under another identity, wherever it was named.
    pub(super) fn named(&self, id: &str) -> RequestParts {
        let rename = Rename {
            from: &self.identity,
            to: id,
        };
        let headers = self.parts.headers.iter();
        RequestParts {
            method: self.parts.method.clone(),
            path: rename.path(&self.parts.path),
            headers: headers
                .map(|(name, value)| (name.clone(), rename.header(value)))
                .collect(),
            body: rename.body(&self.parts.body),
        }
    }
}

// === impl RawRequest ===

impl RawRequest {
    fn recorded(self) -> Result<RecordedRequest, String> {
        let headers: BTreeMap<String, String> = self
            .headers
            .into_iter()
            .map(|(name, value)| (name.to_lowercase(), value))
            .filter(|(name, _)| {
                !HEADERS_LEFT_OUT.contains(&name.as_str()) && !name.starts_with(':')
            })
            .collect();
        let named = IDENTITIES
            .iter()
            .find_map(|name| headers.get(*name).cloned());
        // The draft of Idempotency-Key quotes it, and payloads do not.
        let identity = named
            .or_else(|| message_id(&self.body))
            .map(|id| id.trim_matches('"').to_owned())
            .filter(|id| !id.is_empty());
        let identity = identity.ok_or(
            "neither Idempotency-Key, X-CloudTasks-TaskName, Ce-Id nor a messageId names it",
        )?;
        Ok(RecordedRequest {
            parts: RequestParts {
                method: self.method,
                path: path(&self.url)?,
                headers,
                body: self.body,
            },
            identity,
        })
    }
}

impl From<HarRequest> for RawRequest {
    fn from(request: HarRequest) -> Self {
        Self {
            method: request.method,
            url: request.url,
            headers: request
                .headers
                .into_iter()
                .map(|header| (header.name, header.value))
                .collect(),
            body: request.post_data.map(|body| body.text).unwrap_or_default(),
        }
    }
}

fn path(url: &str) -> Result<String, String> {
    if url.starts_with('/') {
        return Ok(url.to_owned());
    }
    let url = Url::parse(url).map_err(|why| format!("`{url}`: {why}"))?;
    Ok(path_and_query(&url).to_owned())
}

fn message_id(body: &str) -> Option<String> {
    let push: serde_json::Value = serde_json::from_str(body).ok()?;
    push.pointer("/message/messageId")?
        .as_str()
        .map(str::to_owned)
}

fn post() -> String {
    "POST".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_lines_are_read_and_renamed() {
        let text = r#"{"url": "http://x/orders/o-9?a=1", "headers": {"Idempotency-Key": "o-9", "Host": "x"}, "body": "{\"order\": \"o-9\"}"}"#;
        let read = parse(text).unwrap();
        let named = read[0].named("a7");
        assert_eq!(
            (named.method.as_str(), named.path.as_str()),
            ("POST", "/orders/a7?a=1")
        );
        assert_eq!(named.body, r#"{"order": "a7"}"#);
        assert_eq!(
            named.headers,
            BTreeMap::from([("idempotency-key".to_owned(), "a7".to_owned())])
        );
    }

    #[test]
    fn har_is_read() {
        let text = r#"{"log": {"entries": [{"request": {"method": "PUT", "url": "http://x/y",
            "headers": [{"name": "Ce-Id", "value": "e1"}], "postData": {"text": "e1!"}}}]}}"#;
        let named = parse(text).unwrap()[0].named("a7");
        assert_eq!((named.method.as_str(), named.body.as_str()), ("PUT", "a7!"));
    }

    #[test]
    fn quoted_key_is_known_without_its_quotes() {
        let text = r#"{"url": "/x", "headers": {"Idempotency-Key": "\"1\""}, "body": "{\"id\": \"1\", \"cents\": 1100}"}"#;
        let named = parse(text).unwrap()[0].named("a7");
        assert_eq!(named.headers["idempotency-key"], "\"a7\"");
        assert_eq!(named.body, r#"{"id": "a7", "cents": 1100}"#);
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said_of_the_form_it_has() {
        let said = |text| parse(text).unwrap_err();
        let cut = said("{\n \"log\": {\n  \"entries\": [");
        assert!(
            cut.contains("neither a HAR file") && cut.contains("line 3"),
            "{cut}"
        );
        let short = said("{\n\"log\": {\"entries\": [{\"request\": {\"url\": \"/\"}}]}}");
        assert!(
            short.contains("log.entries[0]") && short.contains("`method`"),
            "{short}"
        );
        assert!(said("{\"log\": {}}").contains("log.entries"));
    }

    #[test]
    fn request_without_an_identity_is_refused() {
        assert!(parse(r#"{"url": "/x"}"#).unwrap_err().contains("names it"));
        assert!(parse("").unwrap_err().contains("no request"));
        assert!(parse("{").unwrap_err().contains("line 1"));
    }
}
