//! A delivery: one arrival of a task, event or request, read once and the same for every source.

use crate::settings::{Source, Webhook};
use crate::source::refuse;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, Request};
use jiff::Timestamp;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What a sender meant by a request.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// Who delivered.
    pub source: Source,
    /// The sender's own names for this arrival: information, never the key.
    pub transport: Transport,
    /// The message itself: Pub/Sub's decoded `data`, an event's data, otherwise the body.
    pub payload: Bytes,
    /// Pub/Sub's attributes.
    pub attributes: BTreeMap<String, String>,
    /// The context attributes of a CloudEvent, by their plain names: `id`, `source`, `type`.
    pub ce: BTreeMap<String, String>,
}

/// The sender's own names for one arrival.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transport {
    /// Cloud Tasks: the queue's short name.
    pub queue: Option<String>,
    /// Cloud Tasks: the task's short name.
    pub task_name: Option<String>,
    /// Cloud Tasks: how many dispatches came before this one.
    pub retry_count: Option<u64>,
    /// Cloud Tasks: how many of them were answered other than 5xx.
    pub execution_count: Option<u64>,
    /// Cloud Tasks: what the handler answered last.
    pub previous_response: Option<u64>,
    /// Pub/Sub: the whole name of the subscription.
    pub subscription: Option<String>,
    /// Pub/Sub: the message id; CloudEvents: the event's id; webhooks: the id in their headers.
    pub message_id: Option<String>,
    /// Pub/Sub: the ordering key.
    pub ordering_key: Option<String>,
    /// Pub/Sub: which delivery it is, when the subscription counts.
    pub delivery_attempt: Option<u64>,
    /// Pub/Sub: pushed without its envelope, which never says which attempt it is.
    pub is_unwrapped: bool,
    /// Pub/Sub: when the message was published; CloudEvents: the event's time.
    pub published_at: Option<Timestamp>,
    /// The W3C trace context of whoever made the message: Pub/Sub's attribute `googclient_traceparent` or
    /// `traceparent`, an event's `traceparent`, else the header `traceparent`.
    pub traceparent: Option<String>,
    /// The `tracestate` beside it.
    pub tracestate: Option<String>,
    /// The header `traceparent`, where the message itself has a trace: it is that of the way to the gate.
    pub proxy_traceparent: Option<String>,
}

/// Why a delivery can have no key. Sending the same again fails again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct Invalid {
    /// A short word for it, the anchor in `docs/errors.md`.
    pub code: &'static str,
    /// What is wrong, what to do; nothing of another request.
    pub detail: String,
}

// === impl Transport ===

impl Transport {
    /// Which attempt of its sender this is, from 1, if the sender counts.
    #[must_use]
    pub fn attempt(&self) -> Option<u64> {
        let of_task = self.retry_count.map(|before| before.saturating_add(1));
        of_task.or(self.delivery_attempt)
    }

    /// What its sender calls it: the task, message or event.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.task_name.as_deref().or(self.message_id.as_deref())
    }

    /// The queue or subscription that it came from.
    #[must_use]
    pub fn from(&self) -> Option<&str> {
        self.queue.as_deref().or(self.subscription.as_deref())
    }
}

// === impl Delivery ===

impl Delivery {
    /// A payload of this sender, without a name or an attribute yet.
    #[must_use]
    pub fn new(source: Source, payload: Bytes) -> Self {
        Self {
            source,
            transport: Transport::default(),
            payload,
            attributes: BTreeMap::new(),
            ce: BTreeMap::new(),
        }
    }

    /// A value beside the payload, by the name that key rules use: `header:x-id`, `attribute:a`,
    /// `ce:id`, `message-id`, `task-name`, `queue`, `subscription`.
    ///
    /// # Errors
    /// When a header is there twice, or is not text: two readers could see two values.
    pub fn value<'a>(
        &'a self,
        request: &'a Request<Bytes>,
        name: &str,
    ) -> Result<Option<Cow<'a, str>>, Invalid> {
        let plain = match name.split_once(':') {
            Some(("header", "idempotency-key")) => {
                return crate::source::api::idempotency_key(request.headers());
            }
            // Svix spells the same header in its own way.
            Some(("header", "webhook-id")) if self.source == Source::Webhook(Webhook::Standard) => {
                self.transport.message_id.as_ref()
            }
            Some(("header", header)) => return single_header(request.headers(), header),
            Some(("attribute", attribute)) => self.attributes.get(attribute),
            Some(("ce", attribute)) => self.ce.get(attribute),
            Some(_) => None,
            None => match name {
                "message-id" => self.transport.message_id.as_ref(),
                "task-name" => self.transport.task_name.as_ref(),
                "queue" => self.transport.queue.as_ref(),
                "subscription" => self.transport.subscription.as_ref(),
                _ => None,
            },
        };
        Ok(plain.map(|text| Cow::Borrowed(text.as_str())))
    }
}

/// The path of a request, with its query.
pub(crate) fn path_and_query(request: &Request<Bytes>) -> &str {
    let both = request.uri().path_and_query();
    both.map_or("/", |both| both.as_str())
}

/// The one value of a header.
pub(crate) fn single_header<'a>(
    headers: &'a HeaderMap,
    name: &str,
) -> Result<Option<Cow<'a, str>>, Invalid> {
    let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else {
        return Ok(None);
    };
    let mut values = headers.get_all(&name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(refuse(
            "header-repeated",
            format!(
                "the header {name} is there more than once, so two readers could see two values: send it once"
            ),
        ));
    }
    match std::str::from_utf8(value.as_bytes()) {
        Ok(text) => Ok(Some(Cow::Borrowed(text))),
        Err(_) => Err(refuse(
            "header-not-text",
            format!("the header {name} is not UTF-8: send text"),
        )),
    }
}

// === impl Invalid ===

impl Invalid {
    /// With this word and these sentences.
    #[must_use]
    pub fn new(code: &'static str, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
        }
    }
}
