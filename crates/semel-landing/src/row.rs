//! Rows: what lands of one delivery, by the columns of `docs/warehouse.md`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Value, json};

/// What lands of one delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The key: which deliveries are the same piece of work. `None` only beside a fault.
    pub event_id: Option<String>,
    /// Of the input. `None` only beside a fault.
    pub fingerprint: Option<String>,
    /// The sender's own id; empty where it has none.
    pub message_id: String,
    /// Who sent it.
    pub source: &'static str,
    /// When its sender published it.
    pub published_at: Timestamp,
    /// When it arrived.
    pub received_at: Timestamp,
    /// Random per arrival.
    pub delivery_id: String,
    /// The sender's count of attempts.
    pub attempt: Option<u64>,
    /// Which version of the event it is.
    pub version: i64,
    /// The message's data.
    pub payload: Bytes,
    /// What the handler said, where that lands, too.
    pub answer: Option<Answer>,
    /// Why it cannot stand among the others.
    pub fault: Option<Fault>,
    /// The span of its delivery, as `traceparent`. It does not land.
    pub span: Option<String>,
}

/// What a handler said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its body.
    pub body: Bytes,
}

/// Why a row cannot stand among the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// A short word for it, the anchor in `docs/errors.md`.
    pub word: &'static str,
    /// A sentence.
    pub detail: String,
}

// === impl Row ===

impl Row {
    /// A delivery of this payload that is known by nothing else yet.
    #[must_use]
    pub fn new(source: &'static str, payload: impl Into<Bytes>) -> Self {
        Self {
            event_id: None,
            fingerprint: None,
            message_id: String::new(),
            source,
            published_at: Timestamp::UNIX_EPOCH,
            received_at: Timestamp::UNIX_EPOCH,
            delivery_id: String::new(),
            attempt: None,
            version: 0,
            payload: payload.into(),
            answer: None,
            fault: None,
            span: None,
        }
    }

    /// The same under this key and fingerprint.
    #[must_use]
    pub fn named(mut self, event_id: impl Into<String>, fingerprint: impl Into<String>) -> Self {
        self.event_id = Some(event_id.into());
        self.fingerprint = Some(fingerprint.into());
        self
    }

    /// The same, among the faults if a database would refuse its payload or its answer as text.
    #[must_use]
    pub fn judged(mut self) -> Self {
        if self.fault.is_some() {
            return self;
        }
        let of = |word, what: &str| {
            let detail =
                format!("the {what} is not text (UTF-8 without NUL), so it is kept as bytes");
            Some(Fault { word, detail })
        };
        if text(&self.payload).is_none() {
            self.fault = of("payload-not-text", "payload");
        } else if self
            .answer
            .as_ref()
            .is_some_and(|it| text(&it.body).is_none())
        {
            self.fault = of("answer-not-text", "answer");
        }
        self
    }

    /// How much memory it takes, roughly.
    #[must_use]
    pub fn bytes(&self) -> usize {
        const HEAD: usize = 512;
        HEAD + self.payload.len() + self.answer.as_ref().map_or(0, |answer| answer.body.len())
    }

    /// The payload as text; empty if it is none, which [`Row::judged`] has seen before.
    #[must_use]
    pub fn payload_text(&self) -> &str {
        text(&self.payload).unwrap_or_default()
    }

    /// The row as a line of JSON.
    #[must_use]
    pub fn line(&self) -> String {
        let mut line = self.value().to_string();
        line.push('\n');
        line
    }

    fn value(&self) -> Value {
        let mut value = json!({
            "event_id": self.event_id,
            "fingerprint": self.fingerprint,
            "message_id": self.message_id,
            "source": self.source,
            "published_at": written(self.published_at),
            "received_at": written(self.received_at),
            "delivery_id": self.delivery_id,
            "attempt": self.attempt.map(|count| i64::try_from(count).unwrap_or(i64::MAX)),
        });
        let more = match &self.fault {
            Some(fault) => json!({
                "fault": fault.word,
                "detail": fault.detail,
                "payload_base64": STANDARD.encode(&self.payload),
                "answer_status": self.answer.as_ref().map(|answer| answer.status),
                "answer_base64": self.answer.as_ref().map(|answer| STANDARD.encode(&answer.body)),
            }),
            None => match &self.answer {
                None => json!({"version": self.version, "payload": self.payload_text()}),
                Some(answer) => json!({
                    "version": self.version,
                    "payload": self.payload_text(),
                    "answer_status": answer.status,
                    "answer": answer.text(),
                }),
            },
        };
        if let (Value::Object(all), Value::Object(more)) = (&mut value, more) {
            all.extend(more);
        }
        value
    }
}

/// A time as it is written everywhere: in UTC, with six digits.
#[must_use]
pub fn written(at: Timestamp) -> String {
    format!("{at:.6}")
}

/// Text that every database takes.
fn text(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    (!text.contains('\0')).then_some(text)
}

// === impl Answer ===

impl Answer {
    /// The body as text; empty if it is none, which [`Row::judged`] has seen before.
    #[must_use]
    pub fn text(&self) -> &str {
        text(&self.body).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(payload: &'static [u8]) -> Row {
        Row::new("pubsub", payload).named("v1_7", "f0").judged()
    }

    #[test]
    fn a_line_is_one_json_object_without_a_line_break() {
        let line = row(b"{\"a\":\n\"\\u0000\"}").line();
        assert_eq!(line.matches('\n').count(), 1);
        let value: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["payload"], "{\"a\":\n\"\\u0000\"}");
        assert_eq!(value["published_at"], "1970-01-01T00:00:00.000000Z");
        assert_eq!(value["attempt"], Value::Null);
        assert!(value.get("answer").is_none() && value.get("fault").is_none());
    }

    #[test]
    fn what_is_not_text_is_kept_as_bytes_among_the_faults() {
        for payload in [b"\xff".as_slice(), b"a\0b"] {
            let row = row(payload);
            let value: Value = serde_json::from_str(&row.line()).unwrap();
            assert_eq!(value["fault"], "payload-not-text");
            assert_eq!(value["payload_base64"], STANDARD.encode(payload));
            assert_eq!(value["event_id"], "v1_7");
        }
        let mut answered = row(b"{}");
        let body = Bytes::from_static(b"\xfe");
        answered.answer = Some(Answer { status: 200, body });
        let fault = answered.judged().fault.map(|fault| fault.word);
        assert_eq!(fault, Some("answer-not-text"));
    }
}
