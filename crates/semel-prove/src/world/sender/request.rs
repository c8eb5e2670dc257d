//! What each kind of sender puts into a request, and which answers it takes for a success.

use super::json::{self, Numbers};
use super::recorded::{self, RecordedRequest};
use super::{Delivery, Payload};
use crate::error::Error;
use crate::scenario::template::Variables;
use crate::scenario::{Deliver, SenderKind};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

/// Where an API client says its key.
const KEY_HEADER: &str = "idempotency-key";

/// Writes requests for one scenario.
#[derive(Debug)]
pub(super) struct RequestBuilder {
    pub(super) deliver: Deliver,
    variables: Variables,
    recorded: Vec<RecordedRequest>,
}

/// What is sent, but for what the sender adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RequestParts {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: String,
}

// === impl RequestBuilder ===

impl RequestBuilder {
    /// Reads what was recorded, if the scenario names a file.
    pub(super) fn new(
        deliver: &Deliver,
        variables: &Variables,
        directory: &Path,
    ) -> Result<Self, Error> {
        let recorded = match &deliver.recorded {
            Some(file) => recorded::read(&directory.join(variables.expand(file)))?,
            None => Vec::new(),
        };
        Ok(Self {
            deliver: deliver.clone(),
            variables: variables.clone(),
            recorded,
        })
    }

    pub(super) fn variables_for(&self, delivery: &Delivery) -> Variables {
        delivery.variables(&self.variables)
    }

    pub(super) fn body(&self, delivery: &Delivery) -> String {
        let special = match delivery.payload {
            Payload::Default | Payload::Keyless | Payload::Rewritten | Payload::Decimals => None,
            Payload::Other => self.deliver.other_body.as_ref(),
            Payload::Bad => self.deliver.bad_body.as_ref(),
        };
        let template = special.unwrap_or(&self.deliver.body);
        let body = self.variables_for(delivery).expand(template);
        let rewritten = match delivery.payload {
            Payload::Rewritten => json::rewritten(&body, Numbers::AsTheyAre),
            Payload::Decimals => json::rewritten(&body, Numbers::Decimal),
            Payload::Default | Payload::Keyless | Payload::Other | Payload::Bad => None,
        };
        rewritten.unwrap_or(body)
    }

    pub(super) fn request(
        &self,
        delivery: &Delivery,
        attempt: u32,
        to: SocketAddr,
    ) -> Result<Request<Full<Bytes>>, String> {
        let recorded = self.recorded_for(delivery);
        let parts = recorded.unwrap_or_else(|| self.written(delivery, attempt));
        let mut headers = parts.headers;
        headers.extend(sender_headers(
            self.deliver.sender,
            &delivery.message,
            attempt,
        ));
        headers.insert("host".to_owned(), to.to_string());
        headers.insert("connection".to_owned(), "close".to_owned());
        headers
            .entry("content-type".to_owned())
            .or_insert("application/json".to_owned());
        let variables = self.variables_for(delivery);
        let added = self.deliver.headers.iter();
        headers.extend(added.map(|(name, value)| (name.to_lowercase(), variables.expand(value))));
        if delivery.payload == Payload::Keyless {
            headers.remove(KEY_HEADER);
        }
        let mut request = Request::builder()
            .method(parts.method.as_str())
            .uri(parts.path);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        request
            .body(Full::new(Bytes::from(parts.body)))
            .map_err(|why| format!("this cannot be sent: {why}"))
    }

    /// One of the recorded requests, in turns; other payloads are never recorded.
    fn recorded_for(&self, delivery: &Delivery) -> Option<RequestParts> {
        if delivery.payload != Payload::Default || self.recorded.is_empty() {
            return None;
        }
        let at = usize::try_from(delivery.n).unwrap_or_default() % self.recorded.len();
        Some(self.recorded.get(at)?.named(&delivery.id))
    }

    fn written(&self, delivery: &Delivery, attempt: u32) -> RequestParts {
        let Deliver { method, sender, .. } = &self.deliver;
        let body = self.body(delivery);
        RequestParts {
            method: method.clone().unwrap_or_else(|| "POST".to_owned()),
            path: self.variables_for(delivery).expand(&self.deliver.path()),
            headers: BTreeMap::new(),
            body: if *sender == SenderKind::Pubsub {
                envelope(&delivery.message, attempt, &body, self.deliver.dead_letters)
            } else {
                body
            },
        }
    }
}

/// Which answers end a sender's retries.
pub(super) fn accepts(sender: SenderKind, status: u16) -> bool {
    match sender {
        SenderKind::CloudTasks | SenderKind::Cloudevents => (200..300).contains(&status),
        SenderKind::Pubsub => matches!(status, 102 | 200 | 201 | 202 | 204),
        SenderKind::Http => status < 500 && !matches!(status, 409 | 425 | 429),
        SenderKind::Command => status == 0,
    }
}

/// What a sender says about itself and the delivery.
fn sender_headers(sender: SenderKind, id: &str, attempt: u32) -> BTreeMap<String, String> {
    let before = (attempt - 1).to_string();
    let said: Vec<(&str, &str)> = match sender {
        SenderKind::CloudTasks => vec![
            ("user-agent", "Google-Cloud-Tasks"),
            ("x-cloudtasks-queuename", "prove"),
            ("x-cloudtasks-taskname", id),
            ("x-cloudtasks-taskretrycount", &before),
            ("x-cloudtasks-taskexecutioncount", &before),
            ("x-cloudtasks-tasketa", "1700000000.000000"),
        ],
        SenderKind::Pubsub => vec![("user-agent", "CloudPubSub-Google")],
        SenderKind::Cloudevents => vec![
            ("ce-id", id),
            ("ce-source", "//prove"),
            ("ce-specversion", "1.0"),
            ("ce-type", "semel.prove"),
            ("ce-time", "2026-01-01T00:00:00Z"),
        ],
        SenderKind::Http => vec![(KEY_HEADER, id)],
        SenderKind::Command => Vec::new(),
    };
    said.into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// A push of Pub/Sub. It counts attempts only where the subscription has a dead-letter topic.
fn envelope(id: &str, attempt: u32, data: &str, dead_letters: bool) -> String {
    let mut push = serde_json::json!({
        "message": {
            "data": STANDARD.encode(data),
            "messageId": id,
            "message_id": id,
            "publishTime": "2026-01-01T00:00:00Z",
            "publish_time": "2026-01-01T00:00:00Z",
            "attributes": {},
        },
        "subscription": "projects/prove/subscriptions/prove",
    });
    if dead_letters && let Some(push) = push.as_object_mut() {
        push.insert("deliveryAttempt".to_owned(), attempt.into());
    }
    push.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senders_differ_in_what_they_accept() {
        assert!(accepts(SenderKind::CloudTasks, 206) && !accepts(SenderKind::CloudTasks, 302));
        assert!(accepts(SenderKind::Pubsub, 102) && !accepts(SenderKind::Pubsub, 206));
        assert!(accepts(SenderKind::Http, 422) && !accepts(SenderKind::Http, 409));
        assert!(accepts(SenderKind::Command, 0) && !accepts(SenderKind::Command, 1));
    }

    #[test]
    fn path_of_the_target_is_delivered_to() {
        let path = |more: &str| {
            let deliver: Deliver = toml::from_str(&format!("as = 'http'\n{more}")).unwrap();
            let builder =
                RequestBuilder::new(&deliver, &Variables::default(), Path::new("/")).unwrap();
            let delivery = Delivery::new("a7".to_owned(), 1);
            let to = SocketAddr::from(([127, 0, 0, 1], 1));
            let request = builder.request(&delivery, 1, to).unwrap();
            request.uri().to_string()
        };
        assert_eq!(path("target = 'http://h:1/charge?x=1'"), "/charge?x=1");
        assert_eq!(path("target = 'http://h:1'\npath = '/{id}'"), "/a7");
        assert_eq!(path(""), "/");
    }

    #[test]
    fn push_keeps_its_message_id_and_counts_only_with_dead_letters() {
        let push = |dead_letters| {
            let push = envelope("a7", 2, "{}", dead_letters);
            serde_json::from_str::<serde_json::Value>(&push).unwrap()
        };
        let first = push(false);
        assert_eq!(first["message"]["messageId"], "a7");
        assert_eq!(first["message"]["data"], "e30=");
        assert!(first.get("deliveryAttempt").is_none());
        assert_eq!(push(true)["deliveryAttempt"], 2);
    }

    #[test]
    fn retry_count_rises_and_the_task_name_stays() {
        let headers = sender_headers(SenderKind::CloudTasks, "a7", 3);
        assert_eq!(headers["x-cloudtasks-taskname"], "a7");
        assert_eq!(headers["x-cloudtasks-taskretrycount"], "2");
    }
}
