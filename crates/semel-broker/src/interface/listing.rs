//! The table as data: for `GET /_semel/interface`, the tests and `docs/broker.md`.

use super::{Standing, refused_method};
use crate::proto::POOL;
use prost_reflect::{FieldDescriptor, MessageDescriptor, MethodDescriptor, ServiceDescriptor};
use serde::Serialize;
use std::collections::BTreeSet;

/// A service of Google's.
#[derive(Debug, Serialize)]
pub(crate) struct ListedService {
    pub(crate) name: String,
    pub(crate) methods: Vec<ListedMethod>,
    /// What its requests may hold, in the order of their names.
    pub(crate) messages: Vec<ListedMessage>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ListedMethod {
    pub(crate) name: String,
    pub(crate) standing: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) why: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct ListedMessage {
    pub(crate) name: String,
    pub(crate) fields: Vec<ListedField>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ListedField {
    pub(crate) name: String,
    pub(crate) number: u32,
    pub(crate) standing: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) why: String,
}

/// All services, as they stand.
pub(crate) fn services() -> Vec<ListedService> {
    POOL.services().map(|it| ListedService::of(&it)).collect()
}

// === impl ListedService ===

impl ListedService {
    fn of(service: &ServiceDescriptor) -> Self {
        let mut seen = BTreeSet::new();
        let mut messages = Vec::new();
        for method in service.methods() {
            if refused_method(&method).is_none() {
                gather(&method.input(), &mut seen, &mut messages);
            }
        }
        messages.sort_by(|one, other| one.name.cmp(&other.name));
        Self {
            name: service.full_name().into(),
            methods: service.methods().map(|it| ListedMethod::of(&it)).collect(),
            messages,
        }
    }
}

/// A message and those within it, each once.
fn gather(
    message: &MessageDescriptor,
    seen: &mut BTreeSet<String>,
    messages: &mut Vec<ListedMessage>,
) {
    if message.package_name() == "google.protobuf" || !seen.insert(message.full_name().into()) {
        return;
    }
    messages.push(ListedMessage {
        name: message.full_name().into(),
        fields: message.fields().map(|it| ListedField::of(&it)).collect(),
    });
    let is_in_requests = |field: &FieldDescriptor| match Standing::of(field) {
        Standing::Served | Standing::Kept(_) | Standing::Ignored(_) => !field.is_map(),
        Standing::Output | Standing::Refused(_) => false,
    };
    for field in message.fields().filter(is_in_requests) {
        if let Some(inner) = field.kind().as_message() {
            gather(inner, seen, messages);
        }
    }
}

// === impl ListedMethod ===

impl ListedMethod {
    fn of(method: &MethodDescriptor) -> Self {
        let refused = refused_method(method);
        Self {
            name: method.name().into(),
            standing: if refused.is_some() {
                "refused"
            } else {
                "served"
            },
            why: refused.map(|it| it.why).unwrap_or_default(),
        }
    }
}

// === impl ListedField ===

impl ListedField {
    fn of(field: &FieldDescriptor) -> Self {
        let (standing, why) = match Standing::of(field) {
            Standing::Served => ("served", String::new()),
            Standing::Kept(why) => ("kept", why),
            Standing::Ignored(why) => ("ignored", why),
            Standing::Output => ("output", String::new()),
            Standing::Refused(why) => ("refused", why),
        };
        Self {
            name: field.name().into(),
            number: field.number(),
            standing,
            why,
        }
    }
}
