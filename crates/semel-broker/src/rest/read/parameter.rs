//! Parameters of a query: `pageSize`, or a way into messages, `queue.rateLimits.maxBurstSize`.

use super::{MessageReader, ROOT, named};
use crate::interface::{NotServed, Standing};
use prost_reflect::{FieldDescriptor, MessageDescriptor, ReflectMessage};

/// Why a parameter leads nowhere.
#[derive(Debug)]
enum Unbound {
    NotServed(NotServed),
    /// It leads through a list or map, of this name.
    Several(String),
    /// Nobody knows this field, by its full name.
    Unknown(String),
}

// === impl MessageReader ===

impl MessageReader {
    pub(crate) fn parameter(&mut self, name: &str, value: &str) {
        let why = match bound(&self.message.descriptor(), name) {
            Ok(fields) => return self.variable(&fields, value),
            Err(Unbound::NotServed(not_served)) => {
                // What is the same as nothing is taken.
                if !value.is_empty() {
                    self.mistakes.not_served.get_or_insert(not_served);
                }
                return;
            }
            Err(Unbound::Several(outer)) => format!(
                "'{outer}' is a message type. Parameters can only be bound to primitive types."
            ),
            Err(Unbound::Unknown(field)) => {
                self.mistakes.unknown.push(field);
                format!("Field '{name}' could not be found in request message.")
            }
        };
        let why = format!("Cannot bind query parameter. {why}");
        self.mistakes.unknown(name, ROOT, &why);
    }
}

/// The fields that lead to what a parameter names. What is inside a field that is not served is not known here.
fn bound(message: &MessageDescriptor, path: &str) -> Result<Vec<FieldDescriptor>, Unbound> {
    let mut within = Some(message.clone());
    let mut fields: Vec<FieldDescriptor> = Vec::new();
    for step in path.split('.') {
        let outer = fields.last();
        if let Some(outer) = outer.filter(|it| it.is_list() || it.is_map()) {
            return Err(Unbound::Several(outer.json_name().into()));
        }
        let Some(field) = within.as_ref().and_then(|it| named(it, step)) else {
            let message = within.as_ref().map(MessageDescriptor::full_name);
            let within = message.or(outer.map(FieldDescriptor::full_name));
            return Err(Unbound::Unknown(format!(
                "{}.{step}",
                within.unwrap_or_default()
            )));
        };
        if let Some(not_served) = Standing::refusal(&field) {
            return Err(Unbound::NotServed(not_served));
        }
        within = field.kind().as_message().cloned();
        fields.push(field);
    }
    Ok(fields)
}
