//! Saying that something is not served, and remembering to whom it was said.

use crate::clock::{Clock, Time};
use crate::proto::rpc::{self, ErrorInfo};
use crate::status::{detailed, error_info};
use prost::Message;
use prost_reflect::{FieldDescriptor, MethodDescriptor};
use serde::Serialize;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use tonic::{Code, Status};

/// How many different refusals are remembered; of more the oldest is forgotten. There are about so many fields.
const REFUSALS_MAX: usize = 256;

/// What programs read.
const REASON: &str = "NOT_SERVED_HERE";
const DOMAIN: &str = "semel";

/// Something that Google serves and this broker does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotServed {
    /// The full name of the field or method.
    pub(crate) name: String,
    pub(crate) why: String,
}

/// What was refused lately, each thing once.
#[derive(Debug)]
pub(crate) struct Refusals {
    clock: Clock,
    seen: Mutex<HashMap<(String, String), Seen>>,
}

#[derive(Debug)]
struct Seen {
    message: String,
    count: u64,
    last: Time,
}

/// What the admin API shows of it.
#[derive(Debug, Serialize)]
pub(crate) struct RefusalsShown {
    /// The latest first.
    refusals: Vec<RefusalShown>,
}

#[derive(Debug, Serialize)]
struct RefusalShown {
    /// What was called: `google.pubsub.v1.Publisher.CreateTopic`.
    method: String,
    /// The field that was set, or the method itself.
    name: String,
    message: String,
    count: u64,
    /// Microseconds since 1970, by the broker's clock.
    last_us: i64,
}

// === impl NotServed ===

impl NotServed {
    pub(crate) fn field(field: &FieldDescriptor, why: impl Into<String>) -> Self {
        Self {
            name: field.full_name().into(),
            why: why.into(),
        }
    }

    pub(crate) fn method(method: &MethodDescriptor, why: impl Into<String>) -> Self {
        Self {
            name: method.full_name().into(),
            why: why.into(),
        }
    }

    /// What the caller is told. The code is not that of a mistake: production takes the same request.
    pub(crate) fn status(&self) -> Status {
        let Self { name, why } = self;
        let message = format!("{} is not served here: {why}", short(name));
        let info = error_info(REASON, DOMAIN, [("name", name.as_str())]);
        detailed(Code::Unimplemented, &message, vec![info])
    }
}

/// A name without its package: `Topic.kms_key_name`.
fn short(name: &str) -> &str {
    let is_type = |part: &&str| part.starts_with(|it: char| it.is_ascii_uppercase());
    let package = name.split('.').take_while(|part| !is_type(part));
    let bytes: usize = package.map(|part| part.len() + 1).sum();
    name.get(bytes..)
        .filter(|it| !it.is_empty())
        .unwrap_or(name)
}

/// Whether a refusal is one of these.
pub(crate) fn is_not_served(status: &Status) -> bool {
    name_of(status).is_some()
}

/// What was not served.
fn name_of(status: &Status) -> Option<String> {
    if status.code() != Code::Unimplemented {
        return None;
    }
    let details = rpc::Status::decode(status.details()).ok()?.details;
    let info = ErrorInfo::decode(details.first()?.value.as_slice()).ok()?;
    let mut metadata = info.metadata;
    metadata.remove("name").filter(|_| info.reason == REASON)
}

// === impl Refusals ===

impl Refusals {
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            clock,
            seen: Mutex::default(),
        }
    }

    /// Remembers a refusal, if it is one of what is not served.
    pub(crate) fn note(&self, method: &str, status: &Status) {
        if let Some(name) = name_of(status) {
            self.remember(method, &name, status.message());
        }
    }

    pub(crate) fn remember(&self, method: &str, name: &str, message: &str) {
        let last = self.clock.now();
        let mut seen = self.seen();
        let key = (method.to_owned(), name.to_owned());
        if !seen.contains_key(&key) && seen.len() >= REFUSALS_MAX {
            let oldest = seen.iter().min_by_key(|(_, it)| it.last);
            let oldest = oldest.map(|(key, _)| key.clone());
            oldest.and_then(|key| seen.remove(&key));
        }
        let entry = seen.entry(key).or_insert_with(|| Seen {
            message: message.into(),
            count: 0,
            last,
        });
        entry.count += 1;
        entry.last = last;
    }

    pub(crate) fn shown(&self) -> RefusalsShown {
        let seen = self.seen();
        let mut latest: Vec<_> = seen.iter().collect();
        latest.sort_by_key(|(key, it)| (std::cmp::Reverse(it.last), (*key).clone()));
        let shown = latest.into_iter().map(|((method, name), it)| RefusalShown {
            method: method.clone(),
            name: name.clone(),
            message: it.message.clone(),
            count: it.count,
            last_us: it.last.0,
        });
        RefusalsShown {
            refusals: shown.collect(),
        }
    }

    pub(crate) fn clear(&self) {
        self.seen().clear();
    }

    fn seen(&self) -> MutexGuard<'_, HashMap<(String, String), Seen>> {
        self.seen.lock().expect("nobody panics holding it")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_their_package() {
        for (name, shown) in [
            ("google.pubsub.v1.Topic.kms_key_name", "Topic.kms_key_name"),
            (
                "google.cloud.tasks.v2.CloudTasks.Nothing",
                "CloudTasks.Nothing",
            ),
            ("google.longrunning", "google.longrunning"),
        ] {
            assert_eq!(short(name), shown);
        }
    }

    #[tokio::test]
    async fn each_refusal_is_remembered_once_and_the_oldest_forgotten() {
        let refusals = Refusals::new(Clock::start(std::time::Duration::ZERO));
        let refused = |number: usize| {
            let name = format!("a.B.field_{number}");
            let why = "why".to_owned();
            NotServed { name, why }.status()
        };
        for number in 0..=REFUSALS_MAX {
            refusals.note("a.Service.Call", &refused(number));
            refusals.note("a.Service.Call", &refused(number));
        }
        refusals.note("a.Service.Call", &Status::unimplemented("something else"));
        let shown = refusals.shown().refusals;
        assert_eq!(shown.len(), REFUSALS_MAX);
        assert!(
            shown
                .iter()
                .all(|it| it.count == 2 && it.message.contains("not served here"))
        );
    }
}
