//! JSON to messages. All mistakes are gathered, in the words of Google's front end; prost-reflect's own reader stops
//! at the first one and words it differently.

mod parameter;

use super::error::{ErrorResponse, Violation};
use super::route::Binding;
use super::scalar::{self, InvalidValue};
use crate::interface::{NotServed, Standing, is_not_served_type};
use prost_reflect::{self as reflect, DynamicMessage, EnumDescriptor, FieldDescriptor, Kind};
use prost_reflect::{MapKey, MessageDescriptor, ReflectMessage};
use serde_json::{Map, Value};
use std::fmt;

/// A request's message in the making.
#[derive(Debug)]
pub(crate) struct MessageReader {
    message: DynamicMessage,
    mistakes: Mistakes,
}

/// What was wrong so far.
#[derive(Debug, Default)]
struct Mistakes {
    violations: Vec<Violation>,
    not_served: Option<NotServed>,
    /// What nobody knows, by the message it was said of: `google.pubsub.v1.Topic.news`.
    unknown: Vec<String>,
}

/// Where in the message we are, from the inside out.
#[derive(Clone, Copy)]
struct FieldPath<'a> {
    within: Option<&'a Self>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Field(&'a str),
    Item(&'a str, usize),
}

const ROOT: FieldPath<'static> = FieldPath {
    within: None,
    step: Step::Root,
};

// === impl MessageReader ===

impl MessageReader {
    pub(crate) fn new(request: MessageDescriptor) -> Self {
        Self {
            message: DynamicMessage::new(request),
            mistakes: Mistakes::default(),
        }
    }

    /// Reads a body that is the message, or one field of it.
    pub(crate) fn body(&mut self, binding: &Binding, body: &[u8]) -> Result<(), ErrorResponse> {
        if matches!(binding, Binding::None) || body.trim_ascii().is_empty() {
            return Ok(());
        }
        let (message, mistakes) = (&mut self.message, &mut self.mistakes);
        match serde_json::from_slice(body) {
            Err(error) => return Err(ErrorResponse::malformed(body, &error)),
            Ok(Value::Object(object)) => match binding {
                Binding::Field(field) => {
                    mistakes.value(field, &Value::Object(object), ROOT, message)
                }
                Binding::None | Binding::Whole => mistakes.message(&object, ROOT, message),
            },
            Ok(_) => mistakes.unknown("", ROOT, "Root element must be a message."),
        }
        Ok(())
    }

    /// Puts the value of a path's variable where these fields lead.
    pub(crate) fn variable(&mut self, fields: &[FieldDescriptor], value: &str) {
        let value = Value::String(value.into());
        self.mistakes
            .nested(fields, &value, ROOT, &mut self.message);
    }

    /// The first field that is set and not served.
    pub(crate) fn not_served(&self) -> Option<&NotServed> {
        self.mistakes.not_served.as_ref()
    }

    /// The fields that were set and that nobody knows.
    pub(crate) fn unknown(&self) -> &[String] {
        &self.mistakes.unknown
    }

    /// The message, if there was no mistake.
    pub(crate) fn finish(self) -> Result<DynamicMessage, ErrorResponse> {
        match self.mistakes.violations.is_empty() {
            true => Ok(self.message),
            false => Err(ErrorResponse::violations(&self.mistakes.violations)),
        }
    }
}

// === impl Mistakes ===

impl Mistakes {
    /// Puts a text where fields lead, each but the last a message.
    fn nested(
        &mut self,
        fields: &[FieldDescriptor],
        value: &Value,
        path: FieldPath<'_>,
        into: &mut DynamicMessage,
    ) {
        match fields {
            [] => {}
            [last] if last.is_list() => self.item(last, value, path.field(last.name()), into),
            [last] => self.value(last, value, path, into),
            [first, rest @ ..] => {
                if let Some(inner) = into.get_field_mut(first).as_message_mut() {
                    self.nested(rest, value, path.field(first.name()), inner);
                }
            }
        }
    }

    fn message(
        &mut self,
        object: &Map<String, Value>,
        path: FieldPath<'_>,
        into: &mut DynamicMessage,
    ) {
        let message = into.descriptor();
        let mut chosen: Vec<String> = Vec::new();
        for (name, value) in object {
            let Some(field) = named(&message, name) else {
                let full = format!("{}.{name}", message.full_name());
                self.unknown.push(full);
                self.unknown(name, path, "Cannot find field.");
                continue;
            };
            if value.is_null() {
                continue;
            }
            let choice = field.containing_oneof().filter(|it| !it.is_synthetic());
            if let Some(choice) = choice {
                if chosen.iter().any(|it| it == choice.name()) {
                    let taken = format!(
                        "oneof field '{}' is already set. Cannot set '{name}'",
                        choice.name()
                    );
                    self.invalid(path, "oneof", &taken);
                    continue;
                }
                chosen.push(choice.name().to_owned());
            }
            self.value(&field, value, path, into);
        }
    }

    /// A field's value: a list, a map, or a single one.
    fn value(
        &mut self,
        field: &FieldDescriptor,
        value: &Value,
        path: FieldPath<'_>,
        into: &mut DynamicMessage,
    ) {
        if let Some(not_served) = Standing::refusal(field) {
            if is_set(field, value) {
                self.not_served.get_or_insert(not_served);
            }
            return;
        }
        if is_not_served_type(field) {
            return;
        }
        let here = path.field(field.name());
        match (value, field.kind()) {
            (Value::Object(object), Kind::Message(pair)) if field.is_map() => {
                let item = pair.map_entry_value_field();
                for (index, (name, value)) in object.iter().enumerate() {
                    let entry = path.item(field.name(), index);
                    let read = self.single(&item, value, entry.field("value"));
                    if let (Some(read), Some(map)) = (read, into.get_field_mut(field).as_map_mut())
                    {
                        map.insert(MapKey::String(name.clone()), read);
                    }
                }
            }
            (Value::Array(items), _) if field.is_list() => {
                for (index, item) in items.iter().enumerate() {
                    self.item(field, item, path.item(field.name(), index), into);
                }
            }
            (value, _) if field.is_map() || field.is_list() => self.wrong_type(field, value, here),
            (Value::Array(_), _) => {
                let why = "Proto field is not repeating, cannot start list.";
                self.unknown(field.name(), path, why);
            }
            (value, _) => {
                if let Some(read) = self.single(field, value, here) {
                    into.set_field(field, read);
                }
            }
        }
    }

    /// One more item of a list.
    fn item(
        &mut self,
        field: &FieldDescriptor,
        value: &Value,
        path: FieldPath<'_>,
        into: &mut DynamicMessage,
    ) {
        let read = self.single(field, value, path);
        if let (Some(read), Some(list)) = (read, into.get_field_mut(field).as_list_mut()) {
            list.push(read);
        }
    }

    fn single(
        &mut self,
        field: &FieldDescriptor,
        value: &Value,
        path: FieldPath<'_>,
    ) -> Option<reflect::Value> {
        let kind = field.kind();
        if let (Kind::Message(message), Value::Object(object)) = (&kind, value)
            && !scalar::is_written_as_text(message)
        {
            let mut inner = DynamicMessage::new(message.clone());
            self.message(object, path, &mut inner);
            return Some(reflect::Value::Message(inner));
        }
        match scalar::read(&kind, value) {
            Ok(read) => return Some(read),
            Err(InvalidValue::Type) => self.wrong_type(field, value, path),
            Err(InvalidValue::Object) => {
                let within = path.within.copied().unwrap_or(ROOT);
                self.unknown(
                    field.name(),
                    within,
                    "Starting an object on a scalar field.",
                );
            }
            Err(InvalidValue::Text(why)) => self.invalid(path, &type_name(&kind), &why),
            Err(InvalidValue::Form(why)) => {
                let why = format!("Field '{}', {why}", field.json_name());
                self.invalid(path, &type_name(&kind), &why);
            }
        }
        None
    }

    fn wrong_type(&mut self, field: &FieldDescriptor, value: &Value, path: FieldPath<'_>) {
        self.invalid(path, &type_name(&field.kind()), &value.to_string());
    }

    fn invalid(&mut self, path: FieldPath<'_>, kind: &str, what: &str) {
        let path = path.to_string();
        self.violations.push(Violation {
            description: format!("Invalid value at '{path}' ({kind}), {what}"),
            field: path,
        });
    }

    fn unknown(&mut self, name: &str, path: FieldPath<'_>, why: &str) {
        let field = path.to_string();
        let at = if field.is_empty() {
            String::new()
        } else {
            format!(" at '{field}'")
        };
        self.violations.push(Violation {
            field,
            description: format!(
                "Invalid JSON payload received. Unknown name \"{name}\"{at}: {why}"
            ),
        });
    }
}

// === impl FieldPath ===

impl<'a> FieldPath<'a> {
    fn field<'b>(&'b self, name: &'b str) -> FieldPath<'b> {
        FieldPath {
            within: Some(self),
            step: Step::Field(name),
        }
    }

    fn item<'b>(&'b self, name: &'b str, index: usize) -> FieldPath<'b> {
        FieldPath {
            within: Some(self),
            step: Step::Item(name, index),
        }
    }
}

impl fmt::Display for FieldPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(within) = self.within {
            within.fmt(f)?;
            if !matches!(within.step, Step::Root) {
                f.write_str(".")?;
            }
        }
        match self.step {
            Step::Root => Ok(()),
            Step::Field(name) => f.write_str(name),
            Step::Item(name, index) => write!(f, "{name}[{index}]"),
        }
    }
}

/// Whether a field's value is more than what it has anyway.
fn is_set(field: &FieldDescriptor, value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(entries) => !field.is_map() || !entries.is_empty(),
    }
}

/// A field by either of its names.
fn named(message: &MessageDescriptor, name: &str) -> Option<FieldDescriptor> {
    let field = message.get_field_by_json_name(name);
    field.or_else(|| message.get_field_by_name(name))
}

/// As Google's front end names a type.
fn type_name(kind: &Kind) -> String {
    let message = kind.as_message().map(MessageDescriptor::full_name);
    match message.or(kind.as_enum().map(EnumDescriptor::full_name)) {
        Some(name) => format!("type.googleapis.com/{name}"),
        None => format!("TYPE_{kind:?}").to_uppercase(),
    }
}
